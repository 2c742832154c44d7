/** Keys for verification, over WebCrypto. */
import { equalBytes, fromBase64, type Bytes } from "./bytes.js";

/** Whether any of the signatures is valid. It does not throw for an invalid one. */
export interface VerifyingKey {
  verify(message: Bytes, ...signatures: readonly Bytes[]): Promise<boolean>;
}

/** A message carries one signature per key; more are tried in vain, and each costs time. */
const maxSignatures = 16;

export function hmacKey(hash: "SHA-1" | "SHA-256", secret: Bytes): VerifyingKey {
  if (secret.length === 0) throw new Error("a secret must not be empty");
  let key: Promise<CryptoKey> | undefined;
  return {
    // The MAC is computed once and compared in constant time with each signature of the header.
    async verify(message, ...signatures) {
      key ??= crypto.subtle.importKey("raw", secret, { name: "HMAC", hash }, false, ["sign"]);
      const mac = new Uint8Array(await crypto.subtle.sign("HMAC", await key, message));
      let good = false;
      for (const signature of signatures) if (equalBytes(mac, signature)) good = true;
      return good;
    },
  };
}

export function ed25519Key(publicKey: Bytes): VerifyingKey {
  if (publicKey.length !== 32) throw new Error("an Ed25519 public key has 32 bytes");
  return publicVerifier({ name: "Ed25519" }, (algorithm) => crypto.subtle.importKey("raw", publicKey, algorithm, false, ["verify"]));
}

/** An RSA key (PKCS #1 v1.5, SHA-256) from the PEM of a certificate or of a public key. */
export function rsaKey(pem: string): VerifyingKey {
  const info = publicKeyInfo(pem);
  const rsa = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  return publicVerifier(rsa, (algorithm) => crypto.subtle.importKey("spki", info, algorithm, false, ["verify"]));
}

function publicVerifier<A extends { name: string }>(algorithm: A, importKey: (algorithm: A) => Promise<CryptoKey>): VerifyingKey {
  let key: Promise<CryptoKey> | undefined;
  return {
    async verify(message, ...signatures) {
      key ??= importKey(algorithm);
      for (const signature of signatures.slice(0, maxSignatures)) {
        if (await crypto.subtle.verify(algorithm.name, await key, signature, message)) return true;
      }
      return false;
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
