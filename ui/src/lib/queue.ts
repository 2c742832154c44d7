/** Runs work for each item, a few at a time, until all ran or the signal ends it. */
export async function each<T>(items: readonly T[], at: number, signal: AbortSignal, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const run = async (): Promise<void> => {
    while (next < items.length && !signal.aborted) {
      const item = items[next++]!;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(at, items.length) }, run));
}
