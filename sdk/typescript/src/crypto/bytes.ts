/** Bytes and their text forms. Decoders are strict and return undefined for malformed input; none of them throws. */

/** Bytes over an ArrayBuffer, as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function utf8(text: string): Bytes {
  return encoder.encode(text) as Bytes;
}

/** Decodes UTF-8; invalid bytes become U+FFFD. */
export function text(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Decodes UTF-8; undefined for invalid bytes. */
export function strictText(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Throws a TypeError for anything else: a parsed body cannot be verified, and that is the caller's mistake, not a
 * forgery.
 */
export function asBytes(data: string | Uint8Array | ArrayBuffer): Bytes {
  if (typeof data === "string") return utf8(data);
  if (ArrayBuffer.isView(data)) {
    const view = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
    return data.buffer instanceof ArrayBuffer ? view : view.slice(); // WebCrypto accepts no shared memory
  }
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw new TypeError("the raw body is needed, as text or bytes: not what a body parser has made of it");
}

export function concat(...parts: readonly Uint8Array[]): Bytes {
  const joined = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Whether two byte strings are equal, in a time that depends only on their length (CCW-SIG-17). */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!;
  return difference === 0;
}

export function hex(bytes: Uint8Array): string {
  let out = "";
  for (const b of bytes) out += b.toString(16).padStart(2, "0");
  return out;
}

export function fromHex(digits: string): Bytes | undefined {
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits)) return undefined;
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

export function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x2000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x2000));
  return btoa(binary);
}

/** Decodes base64 with or without padding, of either alphabet. */
export function fromBase64(encoded: string): Bytes | undefined {
  const bare = encoded.replace(/-/g, "+").replace(/_/g, "/").replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(bare) || bare.length % 4 === 1) return undefined;
  try {
    return Uint8Array.from(atob(bare), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

let crcTable: Uint32Array | undefined;

/** CRC-32 as in zlib, which PayPal signs in place of the body. */
export function crc32(bytes: Uint8Array): number {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  let crc = 0xffffffff;
  for (const b of bytes) crc = crcTable[(crc ^ b) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
