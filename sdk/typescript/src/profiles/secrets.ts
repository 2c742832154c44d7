/** Configured secrets, and the parts that signature schemes have in common. */
import { concat, hex, text, utf8, type Bytes } from "../crypto/bytes.js";
import { digest, hmacKey, type VerifyingKey } from "../crypto/keys.js";
import { DeliveryError, WebhookSignatureError } from "../errors.js";
import type { Check, Message } from "./profile.js";

/** One secret or several: during a rotation both are accepted. */
export type Secrets = string | readonly string[];

export interface SharedSecretOptions {
  /** The accepted secrets. Required. */
  readonly secrets: Secrets;
  /** The name of the sender. Deduplication is per principal. Defaults to the profile's name. */
  readonly principal?: string;
}

/** A receiver without a way to authenticate cannot be made (EDS-KEY-7). */
export function secretList(profile: string, secrets: Secrets | undefined): readonly string[] {
  const list = typeof secrets === "string" ? [secrets] : [...(secrets ?? [])];
  if (list.length === 0 || list.some((secret) => typeof secret !== "string" || secret === "")) {
    throw new Error(`${profile}: at least one secret is required, and none may be empty`);
  }
  return list;
}

/** HMAC keys of the secrets' UTF-8 text, prefix included (CCW-SIG-3, OJS-SIG-3). */
export function textKeys(profile: string, secrets: Secrets | undefined, hash: "SHA-1" | "SHA-256" = "SHA-256"): VerifyingKey[] {
  return secretList(profile, secrets).map((secret) => hmacKey(hash, utf8(secret)));
}

/** Whether any of the keys made any of the signatures. */
export async function anyVerifies(keys: readonly VerifyingKey[], message: Bytes, signatures: readonly Bytes[]): Promise<boolean> {
  if (signatures.length === 0) return false;
  let good = false;
  for (const key of keys) if (await key.verify(message, ...signatures)) good = true;
  return good;
}

/** Reads Unix seconds: digits only, so that `12x` is not 12 (CCW-SIG-9). */
export function unixSeconds(value: string | undefined): number {
  if (value === undefined || !/^[0-9]{1,15}$/.test(value)) {
    throw new WebhookSignatureError("Invalid timestamp", "malformed-timestamp");
  }
  return Number(value);
}

/** Refuses times that are too old or too far ahead; the limit itself is accepted. */
export function checkFresh(signedAt: number, check: Check): void {
  if (check.tolerance === undefined) return;
  if (check.now - signedAt > check.tolerance) throw new WebhookSignatureError("Timestamp outside tolerance", "too-old");
  if (signedAt - check.now > check.tolerance) throw new WebhookSignatureError("Timestamp outside tolerance", "from-future");
}

export function mismatch(): WebhookSignatureError {
  return new WebhookSignatureError("Signature mismatch", "mismatch");
}

/** The bytes `<prefix><body>` of schemes that sign a text before the body. */
export function prefixed(prefix: string, body: Bytes): Bytes {
  return concat(utf8(prefix), body);
}

/** The body as a JSON object, or undefined. */
export function jsonObject(body: Bytes): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text(body));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export function requireObject(body: Bytes): Record<string, unknown> {
  const value = jsonObject(body);
  if (value === undefined) throw new DeliveryError("payload-malformed", "the body is not a JSON object");
  return value;
}

/** A member that is a non-empty text, else undefined. */
export function textMember(object: Record<string, unknown> | undefined, name: string): string | undefined {
  const value = object?.[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A dedup key comes from outside and is stored, so its length is limited. */
export function boundedKey(value: string | undefined, source: string): string {
  if (value === undefined || value === "") throw new DeliveryError("key-missing", `${source} is missing`);
  if (value.length > 255 || !/^[\x20-\x7e]+$/.test(value)) {
    throw new DeliveryError("key-malformed", `${source} must be 1 to 255 printable ASCII characters`);
  }
  return value;
}

/** The key of deliveries without an id: equal bytes are the same delivery. */
export async function bodyKey(message: Message): Promise<string> {
  return `sha256:${hex(await digest("SHA-256", message.body))}`;
}

export function positiveInteger(value: string | undefined): number | undefined {
  return value !== undefined && /^[1-9][0-9]{0,8}$/.test(value) ? Number(value) : undefined;
}
