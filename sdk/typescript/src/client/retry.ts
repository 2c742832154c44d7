import { GodwitError } from "./errors.js";

/**
 * How a request is repeated if its response was lost or it may be accepted later. The repeat is the same request under the same
 * key, so the server carries it out once. Responses that need a correction (400, 401, 403, 404, 422 and the like) are not repeated.
 */
export interface Retry {
  /** The largest number of repeats. Defaults to 10. */
  readonly max?: number;
  /** Milliseconds for all repeats together; must be shorter than the server remembers keys. Defaults to 30,000. */
  readonly elapsed?: number;
  /** The largest delay before the first repeat in milliseconds; it doubles with each further one. Defaults to 250. */
  readonly base?: number;
  /** The largest delay in milliseconds. Defaults to 10,000. */
  readonly cap?: number;
}

/** Makes a request, and repeats it if that is allowed and may help. */
export async function insist<T>(retry: Retry | undefined, signal: AbortSignal | undefined, request: () => Promise<T>): Promise<T> {
  const began = performance.now();
  for (let n = 0; ; n++) {
    try {
      return await request();
    } catch (error) {
      if (retry === undefined || n >= (retry.max ?? 10) || signal?.aborted || !passes(error)) throw error;
      const wait = delay(retry, n, error);
      if (performance.now() + wait - began > (retry.elapsed ?? 30_000) || !(await slept(wait, signal))) throw error;
    }
  }
}

/** Whether the same request may succeed later. */
function passes(error: unknown): boolean {
  // Without a complete response the server may have received the request. fetch reports that as a TypeError, a timeout as a DOMException.
  if (!(error instanceof GodwitError)) return error instanceof TypeError || error instanceof DOMException || error instanceof SyntaxError;
  if (error.status === 409) return error.code === "idempotency-in-progress";
  return error.status >= 500 || [408, 421, 425, 429].includes(error.status);
}

/** A random part of a window that doubles, and at least what the server asks for. */
function delay(retry: Retry, n: number, error: unknown): number {
  const window = Math.min((retry.base ?? 250) * 2 ** Math.min(n, 30), retry.cap ?? 10_000);
  const asked = error instanceof GodwitError ? retryAfter(error.retryAfter) : 0;
  return Math.random() * window + asked;
}

function retryAfter(value: string | undefined): number {
  if (value === undefined) return 0;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(at - Date.now(), 0);
}

/** Waits; false if the caller gave up meanwhile. */
function slept(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (whole: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      resolve(whole);
    };
    const abort = (): void => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal?.addEventListener("abort", abort);
  });
}
