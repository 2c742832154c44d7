/** Keys that verify, over WebCrypto. Comparison of MACs is WebCrypto's own, which takes constant time. */
import { fromBase64, type Bytes } from "./bytes.js";

/** Verifies one signature. It never throws for a bad signature. */
export interface VerifyingKey {
  verify(message: Bytes, signature: Bytes): Promise<boolean>;
}

export function hmacKey(hash: "SHA-1" | "SHA-256", secret: Bytes): VerifyingKey {
  if (secret.length === 0) throw new Error("a secret must not be empty");
  let key: Promise<CryptoKey> | undefined;
  return {
    async verify(message, signature) {
      key ??= crypto.subtle.importKey("raw", secret, { name: "HMAC", hash }, false, ["verify"]);
      return crypto.subtle.verify("HMAC", await key, signature, message);
    },
  };
}

export function ed25519Key(publicKey: Bytes): VerifyingKey {
  if (publicKey.length !== 32) throw new Error("an Ed25519 public key has 32 bytes");
  let key: Promise<CryptoKey> | undefined;
  return {
    async verify(message, signature) {
      key ??= crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
      return signature.length === 64 && crypto.subtle.verify({ name: "Ed25519" }, await key, signature, message);
    },
  };
}

/** An RSA key (PKCS #1 v1.5, SHA-256) out of the PEM of a certificate or of a public key. */
export function rsaKey(pem: string): VerifyingKey {
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const info = publicKeyInfo(pem);
  let key: Promise<CryptoKey> | undefined;
  return {
    async verify(message, signature) {
      key ??= crypto.subtle.importKey("spki", info, algorithm, false, ["verify"]);
      return crypto.subtle.verify(algorithm.name, await key, signature, message);
    },
  };
}

function publicKeyInfo(pem: string): Bytes {
  const match = /-----BEGIN (CERTIFICATE|PUBLIC KEY)-----([\s\S]+?)-----END \1-----/.exec(pem);
  const der = match?.[2] === undefined ? undefined : fromBase64(match[2].replace(/\s+/g, ""));
  if (match === null || der === undefined) throw new Error("not the PEM of a certificate or a public key");
  if (match[1] === "PUBLIC KEY") return der;
  // Certificate ::= SEQUENCE { TBSCertificate ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity,
  // subject, subjectPublicKeyInfo … } … }
  const certificate = element(der, 0);
  const body = element(der, certificate.content);
  let at = body.content;
  if (der[at] === 0xa0) at = element(der, at).end;
  for (let skipped = 0; skipped < 5; skipped++) at = element(der, at).end;
  return der.slice(at, element(der, at).end);
}

function element(der: Bytes, at: number): { content: number; end: number } {
  let length = der[at + 1] ?? 0;
  let content = at + 2;
  if (length > 0x80) {
    const digits = length & 0x7f;
    length = 0;
    for (let i = 0; i < digits && digits <= 4; i++) length = length * 256 + (der[content + i] ?? 0);
    content += digits;
  }
  const end = content + length;
  if (end > der.length) throw new Error("the certificate is cut off");
  return { content, end };
}

/** SHA-256 or SHA-512 over WebCrypto. */
export async function digest(hash: "SHA-256" | "SHA-512", message: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(hash, message));
}
