/** Waits that end. */

/** The longest wait of a timer: beyond it, timers go off at once. */
export const longestWait = 2 ** 31 - 1;

/** Runs work that must not take longer than so many milliseconds; then it throws. What comes too late is given to `late`. */
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
