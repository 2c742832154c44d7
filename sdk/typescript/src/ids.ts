/** Ids as the dialects render them: an event has the same 128 bits in each. */
import { utf8 } from "./crypto/bytes.js";
import { sha256 } from "./crypto/sha256.js";

const codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const base32Alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Whether a public id such as WEB-X2M8KD-Z has the right check character (CCW-API-4). */
export function isPublicId(id: string): boolean {
  const match = /^([A-Z]{3})-([A-HJ-NP-Z2-9]{6})-([A-HJ-NP-Z2-9])$/.exec(id.trim().toUpperCase());
  return match !== null && codeAlphabet[sha256(utf8(`${match[1]}|${match[2]}`))[0]! % 32] === match[3];
}

/** `evt_` and base32, the form of CYBERCUBE, to `evt_` and UUID, the form of the others; undefined for other text. */
export function eventIdToUuid(id: string): string | undefined {
  if (/^evt_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id;
  const match = /^evt_([0-7][0-9A-HJKMNP-TV-Z]{25})$/.exec(id);
  if (match === null) return undefined;
  const value = [...match[1]!].reduce((n, c) => (n << 5n) | BigInt(base32Alphabet.indexOf(c)), 0n);
  const digits = value.toString(16).padStart(32, "0");
  return `evt_${digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")}`;
}

/** The reverse. */
export function eventIdToBase32(id: string): string | undefined {
  const uuid = eventIdToUuid(id);
  if (uuid === undefined) return undefined;
  let value = BigInt(`0x${uuid.slice(4).replaceAll("-", "")}`);
  let text = "";
  for (let i = 0; i < 26; i++, value >>= 5n) text = base32Alphabet[Number(value & 31n)]! + text;
  return `evt_${text}`;
}
