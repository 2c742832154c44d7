/** A handler's result for a delivery. undefined means accepted. */
import { asBytes, utf8, type Bytes } from "../crypto/bytes.js";

export type Result = Accepted | RetryAfter | Reject;

/** The event is processed; the sender need not send it again. */
export interface Accepted {
  readonly kind: "accepted";
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Bytes | undefined;
}

/** The event cannot be processed now; the sender should retry, not before the given time. */
export interface RetryAfter {
  readonly kind: "retry-after";
  readonly status: 503 | 429;
  readonly seconds: number;
  readonly reason: string;
}

/** The event will never be accepted as it is; the sender need not retry. */
export interface Reject {
  readonly kind: "reject";
  readonly status: number;
  readonly reason: string;
}

export interface AcceptedOptions {
  /** Defaults to the profile's own. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Accepts, optionally with your own answer: text, bytes, or a value that is sent as JSON. */
export function accepted(body?: unknown, options: AcceptedOptions = {}): Accepted {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = value;
  let bytes: Bytes | undefined;
  if (typeof body === "string") {
    bytes = utf8(body);
    headers["content-type"] ??= "text/plain; charset=utf-8";
  } else if (body instanceof Uint8Array || body instanceof ArrayBuffer) {
    bytes = asBytes(body);
    headers["content-type"] ??= "application/octet-stream";
  } else if (body !== undefined) {
    bytes = utf8(JSON.stringify(body));
    headers["content-type"] ??= "application/json";
  }
  return { kind: "accepted", status: options.status, headers, body: bytes };
}

/** Asks the sender to retry after so many seconds: with 503, or with 429 if it sends too much. */
export function retryAfter(seconds: number, reason = "try again later", status: 503 | 429 = 503): RetryAfter {
  return { kind: "retry-after", seconds, reason, status };
}

/** Refuses for good, with a status from 400 to 499. The refusal is kept and repeated to every repeat. */
export function reject(status = 422, reason = "Rejected"): Reject {
  return { kind: "reject", status, reason };
}

/** The statuses that ask a sender to retry: they do not fit a final refusal. */
const transientStatuses = new Set([408, 425, 429]);

/** Returns what is wrong with a result, or undefined: handlers may be plain JavaScript. */
export function resultFault(result: Result, allowMultiStatus: boolean): string | undefined {
  switch (result?.kind) {
    case "accepted": {
      const status = result.status ?? 200;
      if (!Number.isInteger(status) || status < 200 || status > 299) return `accepted with status ${status}`;
      if (status === 207 && !allowMultiStatus) return "answered 207 without an agreement on its meaning";
      if (result.body !== undefined && !(result.body instanceof Uint8Array)) return "accepted with a body that is no bytes";
      return undefined;
    }
    case "retry-after":
      if (!Number.isFinite(result.seconds) || result.seconds < 0) return "retryAfter without a number of seconds";
      return result.status === 503 || result.status === 429 ? undefined : `retryAfter with status ${String(result.status)}`;
    case "reject": {
      const { status } = result;
      const fits = Number.isInteger(status) && status >= 400 && status <= 499 && !transientStatuses.has(status);
      return fits ? undefined : `reject with status ${status}`;
    }
    default:
      return "handler returned something else than accepted(), retryAfter() or reject()";
  }
}

/** Headers of a handler that the server sets, or that do not belong to an accepted delivery (EDS-RAF-1). */
const neverSent = new Set(["retry-after", "connection", "keep-alive", "content-length", "transfer-encoding"]);

/**
 * A handler's headers in a form that can be sent, names in lower case. An invalid one is left out and reported: the
 * effect has happened, and an answer that cannot be sent would make it happen again.
 */
export function soundHeaders(headers: Readonly<Record<string, string>> | undefined, unfit: (name: string) => void): Record<string, string> {
  const sound: Record<string, string> = {};
  for (const [given, value] of Object.entries(headers ?? {})) {
    const name = given.toLowerCase();
    if (neverSent.has(name)) continue;
    if (/^[a-z0-9!#$%&'*+\-.^_`|~]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(String(value))) sound[name] = String(value);
    else unfit(name);
  }
  return sound;
}
