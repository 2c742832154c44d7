/** A limit of requests in a window of time, after the sample of CYBERCUBE's standard (CCW-LIM-12). */
export interface RateLimitOptions {
  /** Length of the window in seconds. Defaults to 60. */
  readonly windowSeconds?: number;
  /** Requests allowed in a window. Defaults to 1000. */
  readonly max?: number;
  /** Milliseconds since 1970. Defaults to Date.now. */
  readonly clock?: () => number;
}

export interface RateLimitVerdict {
  readonly allowed: boolean;
  /** `RateLimit-Limit`, `-Remaining` and `-Reset`; with `Retry-After` when the request is over the limit. */
  readonly headers: Readonly<Record<string, string>>;
}

const maxKeys = 10_000;

/** Counts by key, such as the sender's address, in windows that begin with a key's first request. */
export class RateLimiter {
  readonly #windowMs: number;
  readonly #max: number;
  readonly #clock: () => number;
  readonly #windows = new Map<string, { count: number; until: number }>();

  constructor(options: RateLimitOptions = {}) {
    this.#windowMs = (options.windowSeconds ?? 60) * 1000;
    this.#max = options.max ?? 1000;
    this.#clock = options.clock ?? Date.now;
    if (!(this.#windowMs > 0) || !(this.#max > 0)) throw new Error("rateLimit: windowSeconds and max must be above 0");
  }

  take(key = ""): RateLimitVerdict {
    const now = this.#clock();
    let window = this.#windows.get(key);
    if (window === undefined || window.until <= now) {
      window = { count: 0, until: now + this.#windowMs };
      this.#windows.delete(key); // to the end: windows are in the order in which they end
      this.#sweep(now);
      this.#windows.set(key, window);
    }
    window.count++;
    const reset = String(Math.ceil((window.until - now) / 1000));
    const allowed = window.count <= this.#max;
    return {
      allowed,
      headers: {
        "ratelimit-limit": String(this.#max),
        "ratelimit-remaining": String(Math.max(0, this.#max - window.count)),
        "ratelimit-reset": reset,
        ...(allowed ? {} : { "retry-after": reset }),
      },
    };
  }

  /** Keys come from outside: windows that have ended are dropped, and beyond the limit the oldest. */
  #sweep(now: number): void {
    for (const [key, window] of this.#windows) {
      if (window.until > now && this.#windows.size < maxKeys) return;
      this.#windows.delete(key);
    }
  }
}

/** The body of a request over the limit. */
export const rateLimitExceeded = { error: "Rate limit exceeded" } as const;

/** Limits the requests to a Fetch handler. */
export function rateLimit(
  handler: (request: Request) => Promise<Response>,
  options: RateLimitOptions & { readonly key?: (request: Request) => string } = {},
): (request: Request) => Promise<Response> {
  const limiter = new RateLimiter(options);
  return async (request) => {
    const verdict = limiter.take(options.key?.(request) ?? "");
    if (!verdict.allowed) return Response.json(rateLimitExceeded, { status: 429, headers: verdict.headers });
    const response = await handler(request);
    const headers = new Headers(response.headers);
    for (const [name, value] of Object.entries(verdict.headers)) headers.set(name, value);
    return new Response(response.body, { status: response.status, headers });
  };
}
