/** Source addresses: whether a request came from the published ranges (CCW-HTTP-17). */

/** The document at /.well-known/webhook-ips, its ranges, or its text form. */
export type SourceDocument = { readonly production: readonly string[] } | readonly string[] | string;

/**
 * Whether an address is in one of the published ranges. It complements verification and does not replace it. Behind a
 * proxy, pass the address that the trusted proxy reports.
 */
export function isAllowedSource(ip: string, document: SourceDocument): boolean {
  const address = parseAddress(ip);
  if (address === undefined) return false;
  return ranges(document).some((range) => contains(range, address));
}

function ranges(document: SourceDocument): readonly string[] {
  if (typeof document === "string") {
    return document
      .split("\n")
      .map((line) => line.replace(/#.*/, "").trim())
      .filter((line) => line !== "");
  }
  return "production" in document ? document.production : document;
}

function contains(range: string, address: Address): boolean {
  const [base = "", length] = range.split("/");
  const network = parseAddress(base);
  if (network === undefined || network.bits !== address.bits) return false;
  const prefix = length === undefined ? network.bits : /^[0-9]{1,3}$/.test(length) ? Number(length) : -1;
  if (prefix < 0 || prefix > network.bits) return false;
  const shift = BigInt(network.bits - prefix);
  return network.value >> shift === address.value >> shift;
}

interface Address {
  readonly value: bigint;
  readonly bits: 32 | 128;
}

function parseAddress(text: string): Address | undefined {
  const v4 = parseV4(text);
  if (v4 !== undefined) return { value: v4, bits: 32 };
  const v6 = parseV6(text.replace(/^\[|\]$/g, "").replace(/%.*$/, ""));
  if (v6 === undefined) return undefined;
  // An IPv4 address as sockets of IPv6 show it.
  if (v6 >> 32n === 0xffffn) return { value: v6 & 0xffffffffn, bits: 32 };
  return { value: v6, bits: 128 };
}

function parseV4(text: string): bigint | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return undefined;
  let value = 0n;
  for (const part of match.slice(1)) {
    if (Number(part) > 255 || (part.length > 1 && part.startsWith("0"))) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return value;
}

function parseV6(text: string): bigint | undefined {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (dotted !== null) {
    const v4 = parseV4(dotted[2]!);
    if (v4 === undefined) return undefined;
    text = `${dotted[1]}${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`;
  }
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head = [], tail = []] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array<string>(missing).fill("0"), ...tail];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n);
}
