/** Content-Digest (RFC 9530). */
import { base64, equalBytes, type Bytes } from "../crypto/bytes.js";
import { digest } from "../crypto/keys.js";
import { WebhookSignatureError } from "../errors.js";
import { isInnerList, parseDictionary } from "./structured.js";

const algorithms = { "sha-256": "SHA-256", "sha-512": "SHA-512" } as const;

/** The value of Content-Digest for a body. */
export async function contentDigest(body: Bytes): Promise<string> {
  return `sha-256=:${base64(await digest("SHA-256", body))}:`;
}

/**
 * Checks Content-Digest against the body. Digests with sha-256 or sha-512 must match, and one of the two must be
 * present; other algorithms are broken or checksums and are ignored. With `only`, just the members named there count: a
 * signature may cover single members.
 */
export async function verifyContentDigest(lines: readonly string[], body: Bytes, only?: readonly string[]): Promise<void> {
  let known = 0;
  for (const [name, member] of parseDictionary(lines)) {
    const hash = algorithms[name as keyof typeof algorithms];
    if (hash === undefined || (only !== undefined && !only.includes(name))) continue;
    if (isInnerList(member) || !(member.value instanceof Uint8Array)) {
      throw new WebhookSignatureError(`Content-Digest: ${name} is not a byte sequence`, "malformed");
    }
    if (!equalBytes(member.value, await digest(hash, body))) {
      throw new WebhookSignatureError(`Content-Digest: ${name} differs from the body's`, "digest-mismatch");
    }
    known++;
  }
  if (known === 0) throw new WebhookSignatureError("Content-Digest has no sha-256 or sha-512", "digest-mismatch");
}
