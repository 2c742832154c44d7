/** The part that OJS and CYBERCUBE share: `sha256=<hex>` of `<timestamp>.<raw body>`, several separated by commas. */
import { fromHex, type Bytes } from "../crypto/bytes.js";
import type { VerifyingKey } from "../crypto/keys.js";
import { WebhookSignatureError } from "../errors.js";
import type { Authentication, Check, Message } from "./profile.js";
import { anyVerifies, checkFresh, mismatch, prefixed, unixSeconds } from "./secrets.js";

export interface TimestampedScheme {
  readonly signatureField: string;
  readonly timestampField: string;
  readonly principal: string;
  readonly keys: readonly VerifyingKey[];
  /**
   * Whether the first entry must be `sha256=` (CCW-SIG-8); otherwise entries of other schemes are skipped (OJS-ROT-5).
   */
  readonly strictPrefix: boolean;
}

const scheme = "sha256=";

/** The MACs in a header. Entries that are not the hex of 32 bytes are dropped: they match nothing (CCW-SIG-12). */
export function readMacs(header: string | undefined, strictPrefix: boolean): Bytes[] {
  const entries = (header ?? "").split(",").map((entry) => entry.trim());
  const known = entries.filter((entry) => entry.startsWith(scheme));
  if (known.length === 0 || (strictPrefix && !entries[0]!.startsWith(scheme))) {
    throw new WebhookSignatureError("Invalid signature format", header ? "malformed" : "missing");
  }
  return known.map((entry) => fromHex(entry.slice(scheme.length))).filter((mac) => mac !== undefined && mac.length === 32) as Bytes[];
}

/** The order of checks is the standard's: format, time, tolerance, MAC (CCW-SIG-14). */
export async function authenticateTimestamped(s: TimestampedScheme, message: Message, check: Check): Promise<Authentication> {
  const macs = readMacs(message.fields.get(s.signatureField), s.strictPrefix);
  const timestamp = message.fields.get(s.timestampField);
  const signedAt = unixSeconds(timestamp);
  checkFresh(signedAt, check);
  if (!(await anyVerifies(s.keys, prefixed(`${timestamp}.`, message.body), macs))) throw mismatch();
  return { principal: s.principal, signedAt, once: timestamp! };
}
