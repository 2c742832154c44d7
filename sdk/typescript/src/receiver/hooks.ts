/**
 * Where a receiver tells what it does: metrics, logs, alerts. No hook ever gets a payload, a secret or a signature, and
 * one that throws changes nothing about the answer.
 */
import type { SignatureReason } from "../errors.js";
import { Fields } from "../fields.js";
import { isCredential } from "./delivery.js";

export interface Hooks {
  /** Every request that reaches the receiver (CCW-RCV-14). */
  onReceipt?(receipt: Receipt): void;
  /** A request that did not prove itself (CCW-RCV-10). */
  onVerificationFailure?(failure: VerificationFailure): void;
  /** A repeat: of something done, of something still going on, or of a key with another payload. */
  onDuplicate?(duplicate: Duplicate): void;
  /** Every answer. */
  onResult?(result: ResultReport): void;
  /** Something of ours failed: the store, the handler, the inbox. */
  onError?(error: unknown, where: string): void;
  /** The configuration is weaker than it could be. Told once, when the receiver is made. */
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

/** Header fields fit for a log. */
export function sanitizedHeaders(fields: Fields): Record<string, string> {
  const safe: Record<string, string> = {};
  for (const [name, value] of fields) safe[name] = isCredential(name) ? "[redacted]" : value.slice(0, 256);
  return safe;
}

/** Calls a hook; what it throws is dropped, because a broken metric must not lose an event. */
export function tell(hook: () => void): void {
  try {
    hook();
  } catch {
    // See above.
  }
}
