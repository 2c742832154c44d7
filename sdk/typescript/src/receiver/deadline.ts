/** Waits with a limit. */

/** The longest wait of a timer: with a longer one timers fire at once. */
export const longestWait = 2 ** 31 - 1;

/** Runs work with a limit in milliseconds; then it throws. A later result is passed to `late`. */
export async function within<T>(ms: number, what: string, work: Promise<T>, late?: (value: T) => void): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;
  const end = new Promise<never>((_, fail) => {
    timer = setTimeout(() => {
      over = true;
      fail(new Error(`${what} took longer than ${ms} ms`));
    }, ms);
  });
  work.then((value) => (over ? late?.(value) : undefined)).catch(() => undefined);
  try {
    return await Promise.race([work, end]);
  } finally {
    clearTimeout(timer);
  }
}
