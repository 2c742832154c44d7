/** The server's explanation of a failure (problem details, RFC 9457). */
export class GodwitError extends Error {
  constructor(
    readonly status: number,
    /** Stable: use this in code. */
    readonly code: string,
    message: string,
    readonly requestId: string | undefined,
    /** The header Retry-After as sent. */
    readonly retryAfter: string | undefined,
    readonly fields: readonly { readonly field: string; readonly detail: string }[],
  ) {
    super(message);
    this.name = "GodwitError";
  }
}
