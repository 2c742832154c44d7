/**
 * Where a receiver tells what it does: metrics, logs, alerts. No hook ever gets a payload, a secret or a signature, and
 * one that throws, at once or later, changes nothing about the answer. What went wrong and nobody hears is told on the
 * console: a handler that fails must not fail unseen.
 */
import type { SignatureReason } from "../errors.js";
import { Fields } from "../fields.js";
import { isCredential } from "./delivery.js";

export interface Hooks {
  /** Every request that reaches the receiver (CCW-RCV-14). */
  onReceipt?(receipt: Receipt): void;
  /** A request that did not prove itself (CCW-RCV-10). Defaults to the console. */
  onVerificationFailure?(failure: VerificationFailure): void;
  /** A repeat: of something done, of something still going on, or of a key with another payload. */
  onDuplicate?(duplicate: Duplicate): void;
  /** Every answer, once. */
  onResult?(result: ResultReport): void;
  /** Something of ours failed: the store, the handler, the inbox. Defaults to the console. */
  onError?(error: unknown, where: string): void;
  /** The configuration is weaker than it could be. Told once, when the receiver is made. Defaults to the console. */
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
  /** How many there were in the last minute, this one included: many of them are an attack or a lost secret. */
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

/** The hooks of an application, and the console in place of those that tell of trouble and are not given. */
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

/** Calls a hook; what it throws is dropped, because a broken metric must not lose an event. */
export function tell(hook: () => unknown): void {
  const dropped = (): undefined => undefined;
  try {
    const told = hook();
    if (told instanceof Promise) told.catch(dropped); // an async function fits, too
  } catch {
    dropped();
  }
}

/** Counts what happened in the last minute, in slots of a second: a flood costs no more than a trickle. */
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
