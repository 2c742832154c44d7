/** The idempotency key: its syntax, its scope, and the fingerprint of its payload. */
import { concat, hex, utf8, type Bytes } from "./crypto/bytes.js";
import { digest } from "./crypto/keys.js";
import { DeliveryError } from "./errors.js";
import { isInnerList, parseItem, parseList, StructuredFieldError } from "./httpsig/structured.js";
import type { KeyPolicy } from "./profiles/profile.js";

/** 16 to 255 printable ASCII characters, as a structured-field String only (IKH K-3). */
export const defaultKeyPolicy: KeyPolicy = { minLength: 16, maxLength: 255, lenient: false };

/**
 * Reads Idempotency-Key: one field line that holds one String (RFC 9651). Parameters are ignored (IKH K-2). With
 * `lenient`, a bare value is taken too and compares equal to its quoted form (EDS T-1).
 */
export function parseKey(lines: readonly string[], policy: KeyPolicy): string {
  if (lines.length === 0) throw new DeliveryError("key-missing", "Idempotency-Key is required");
  if (lines.length > 1) throw new DeliveryError("key-malformed", "Idempotency-Key must occur once");
  const key = readKey(lines[0]!, policy.lenient);
  if (key.length < policy.minLength || key.length > policy.maxLength) {
    throw new DeliveryError("key-length", `Idempotency-Key must have ${policy.minLength} to ${policy.maxLength} characters`);
  }
  return key;
}

function readKey(line: string, lenient: boolean): string {
  if (lenient && /^[A-Za-z0-9!#$%&'*+\-.^_`|~:/=@]+$/.test(line)) return line;
  try {
    const { value } = parseItem([line]);
    if (typeof value === "string") return value;
  } catch (error) {
    if (!(error instanceof StructuredFieldError)) throw error;
    throw new DeliveryError("key-malformed", `Idempotency-Key must be a string in double quotes: ${describe(line, error)}`);
  }
  throw new DeliveryError("key-malformed", "Idempotency-Key must be a string in double quotes");
}

function describe(line: string, error: StructuredFieldError): string {
  try {
    const members = parseList([line]);
    if (members.length > 1 && members.every((m) => !isInnerList(m))) return "it has several values";
  } catch {
    // Not a list either: the first complaint stands.
  }
  return error.message;
}

/**
 * The id under which a delivery is remembered: a digest over principal, URI and key, each preceded by its length, so
 * that different triples have different digests (EDS-KEY-5, IKH-SEC-6). The sender's own text does not reach the store.
 */
export async function scopeOf(principal: string, uri: string, key: string): Promise<string> {
  return digestOf([utf8(principal), utf8(uri), utf8(key)]);
}

/** SHA-256 of media type and body, which a sender must not change under one key. */
export async function fingerprintOf(contentType: string, body: Bytes): Promise<string> {
  const mediaType = contentType.split(";", 1)[0]!.trim().toLowerCase();
  return digestOf([utf8(mediaType), body]);
}

/** SHA-256 over parts, each preceded by its length, so that different lists have different digests. */
export async function digestOf(parts: readonly Bytes[]): Promise<string> {
  const framed = parts.flatMap((part) => {
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(part.length));
    return [length, part];
  });
  return hex(await digest("SHA-256", concat(...framed)));
}
