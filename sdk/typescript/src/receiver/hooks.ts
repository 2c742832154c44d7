/**
 * Hooks of a receiver, for metrics, logs and alerts. No hook gets a payload, a secret or a signature. A hook that
 * throws, at once or later, does not change the answer. Failures without a hook are written to the console: a handler
 * must not fail unseen.
 */
import type { SignatureReason } from "../errors.js";
import { Fields } from "../fields.js";
import { isCredential } from "./delivery.js";

export interface Hooks {
  /** Every request that reaches the receiver (CCW-RCV-14). */
  onReceipt?(receipt: Receipt): void;
  /** A request that is not authentic (CCW-RCV-10). Defaults to the console. */
  onVerificationFailure?(failure: VerificationFailure): void;
  /** A repeat: of a completed request, of one in progress, or of a key with another payload. */
  onDuplicate?(duplicate: Duplicate): void;
  /** Every answer, once. */
  onResult?(result: ResultReport): void;
  /** An internal failure: of the store, the handler, the inbox. Defaults to the console. */
  onError?(error: unknown, where: string): void;
  /** A setting is weaker than it could be. Called once, when the receiver is made. Defaults to the console. */
  onWarning?(message: string): void;
  /** Counts: `webhook.verification.failed` (CCW-RCV-11). */
  count?(metric: string): void;
}

export interface Receipt {
  readonly profile: string;
  readonly method: string;
  readonly path: string;
  readonly ip: string | undefined;
}

export interface VerificationFailure {
  readonly profile: string;
  readonly error: string;
  readonly reason: SignatureReason;
  readonly ip: string | undefined;
  /** The header fields; values of credentials are replaced. */
  readonly headers: Readonly<Record<string, string>>;
  /** The number of failures in the last minute, this one included. Many of them mean an attack or a lost secret. */
  readonly recent: number;
}

export interface Duplicate {
  readonly profile: string;
  readonly principal: string;
  readonly eventId: string;
  readonly kind: "completed" | "in-progress" | "other-payload";
}

export interface ResultReport {
  readonly profile: string;
  readonly status: number;
  readonly kind: "accepted" | "retry-after" | "reject" | "failed" | "timeout" | "replayed" | "refused";
  readonly principal?: string;
  readonly eventId?: string;
  readonly eventType?: string;
  readonly reason?: string;
}

/** The hooks of an application, and the console for missing hooks about failures. */
export function heard(hooks: Hooks): Hooks {
  return {
    onReceipt: (receipt) => hooks.onReceipt?.(receipt),
    onDuplicate: (duplicate) => hooks.onDuplicate?.(duplicate),
    onResult: (result) => hooks.onResult?.(result),
    count: (metric) => hooks.count?.(metric),
    onVerificationFailure(failure) {
      if (hooks.onVerificationFailure !== undefined) return hooks.onVerificationFailure(failure);
      console.warn(`webhook receiver: verification failed: ${failure.reason}`, failure);
    },
    onError(error, where) {
      if (hooks.onError !== undefined) return hooks.onError(error, where);
      console.error(`webhook receiver: ${where} failed:`, error);
    },
    onWarning(message) {
      if (hooks.onWarning !== undefined) return hooks.onWarning(message);
      console.warn(`webhook receiver: ${message}`);
    },
  };
}

/** Header fields fit for a log. */
export function sanitizedHeaders(fields: Fields): Record<string, string> {
  const safe: Record<string, string> = {};
  for (const [name] of fields) safe[name] = isCredential(name) ? "[redacted]" : fields.get(name)!.slice(0, 256);
  return safe;
}

/** Calls a hook. What it throws is dropped: a broken metric must not lose an event. */
export function tell(hook: () => unknown): void {
  const dropped = (): undefined => undefined;
  try {
    const told = hook();
    if (told instanceof Promise) told.catch(dropped); // an async function is allowed
  } catch {
    dropped();
  }
}

/** Counts events in the last minute, in slots of a second, at constant cost. */
export class LastMinute {
  readonly #slots = Array.from({ length: 60 }, () => ({ second: -Infinity, count: 0 }));

  add(now: number): number {
    const second = Math.floor(now / 1000);
    const slot = this.#slots[((second % 60) + 60) % 60]!;
    if (slot.second !== second) Object.assign(slot, { second, count: 0 });
    slot.count++;
    return this.#slots.reduce((sum, { second: at, count }) => (at > second - 60 && at <= second ? sum + count : sum), 0);
  }
}
