/** The receiver library of CYBERCUBE's standard, section 11.2, with its exact names, and the function of section 3.4. */
import { asBytes, concat, equalBytes, fromHex, hex, text, utf8, type Bytes } from "../crypto/bytes.js";
import { hmacSha256 } from "../crypto/sha256.js";
import { WebhookSignatureError } from "../errors.js";

export interface WebhookEvent {
  id: string;
  type: string;
  api_version: string;
  created_at: string;
  data: {
    // The standard's own type: what the resource looks like is the sender's to say.
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    object: any;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    previous_attributes?: any;
  };
  account_id: string;
  livemode: boolean;
}

export interface ConstructOptions {
  /** Largest difference between the signed time and ours, in seconds. 0 is honoured; null is the default, 300. */
  tolerance?: number | null | undefined;
}

/** Verifies and parses webhooks, synchronously. During a rotation pass both secrets. */
export class CybercubeWebhooks {
  readonly #secrets: readonly Bytes[];
  readonly #clock: () => number;

  /** @param clock milliseconds since 1970; defaults to Date.now */
  constructor(secret: string | readonly string[], clock: () => number = Date.now) {
    const secrets = typeof secret === "string" ? [secret] : [...(secret ?? [])];
    if (secrets.length === 0 || secrets.some((s) => typeof s !== "string" || !s.startsWith("whsec_"))) {
      throw new Error("Invalid webhook secret format");
    }
    this.#secrets = secrets.map(utf8);
    this.#clock = clock;
  }

  /**
   * Verifies the raw body and parses it. Throws a {@link WebhookSignatureError} if it is not authentic, and a
   * SyntaxError if it is not JSON.
   */
  constructEvent(
    payload: string | Uint8Array,
    signature: string | readonly string[] | undefined,
    timestamp: string | readonly string[] | undefined,
    options: ConstructOptions = {},
  ): WebhookEvent {
    const body = asBytes(payload);
    const error = verdict(body, field(signature), field(timestamp), this.#secrets, options.tolerance ?? 300, this.#clock());
    if (error !== undefined) throw error;
    return JSON.parse(text(body)) as WebhookEvent;
  }
}

export interface VerificationResult {
  valid: boolean;
  error?: string;
}

/** The verify function of section 3.4 (CCW-SIG-7). The secret may be several. */
export function verifyWebhookSignature(
  payload: string | Uint8Array,
  signature: string | undefined,
  timestamp: string | undefined,
  secret: string | readonly string[],
  tolerance = 300,
  clock: () => number = Date.now,
): VerificationResult {
  const secrets = (typeof secret === "string" ? [secret] : secret).map(utf8);
  const error = verdict(asBytes(payload), field(signature), field(timestamp), secrets, tolerance, clock());
  if (error === undefined) return { valid: true };
  const outside = error.reason === "too-old" || error.reason === "from-future";
  return { valid: false, error: outside ? "Timestamp outside tolerance window" : error.message };
}

/** `sha256=<hex>` over `<timestamp>.<payload>` (CCW-SIG-16). */
export function signWebhook(payload: string | Uint8Array, secret: string, timestamp: number): string {
  return `sha256=${hex(mac(asBytes(payload), utf8(secret), String(timestamp)))}`;
}

function mac(body: Bytes, secret: Bytes, timestamp: string): Bytes {
  return hmacSha256(secret, concat(utf8(`${timestamp}.`), body));
}

/** Node gives repeated headers as an array; a repeated header is not a signature. */
function field(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value : Array.isArray(value) ? value.join(",") : "";
}

/**
 * Format, time, tolerance, MAC: in this order (CCW-SIG-14). A tolerance that is not a number would accept every time,
 * so it is an error of the caller.
 */
function verdict(
  body: Bytes,
  signature: string,
  timestamp: string,
  secrets: readonly Bytes[],
  tolerance: number,
  now: number,
): WebhookSignatureError | undefined {
  if (!(tolerance >= 0)) throw new RangeError("tolerance is a number of seconds, 0 or more");
  if (!signature.startsWith("sha256=")) {
    return new WebhookSignatureError("Invalid signature format", signature === "" ? "missing" : "malformed");
  }
  if (!/^[0-9]{1,15}$/.test(timestamp)) return new WebhookSignatureError("Invalid timestamp", "malformed-timestamp");
  const age = Math.floor(now / 1000) - Number(timestamp);
  if (Math.abs(age) > tolerance) {
    return new WebhookSignatureError("Timestamp outside tolerance", age > 0 ? "too-old" : "from-future");
  }
  const expected = secrets.map((secret) => mac(body, secret, timestamp));
  const entries = signature.split(",").map((entry) => entry.trim());
  let good = false;
  for (const entry of entries) {
    const received = entry.startsWith("sha256=") ? fromHex(entry.slice(7)) : undefined;
    if (received !== undefined) for (const bytes of expected) if (equalBytes(bytes, received)) good = true;
  }
  return good ? undefined : new WebhookSignatureError("Signature mismatch", "mismatch");
}
