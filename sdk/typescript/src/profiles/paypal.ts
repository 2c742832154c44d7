/**
 * PayPal's offline scheme: RSA with SHA-256 over `<transmission id>|<transmission time>|<webhook id>|<CRC-32 of the
 * body>`. You supply the certificate, pinned or by a function; it is never fetched from the address that the request
 * names.
 */
import { crc32, fromBase64, utf8 } from "../crypto/bytes.js";
import { rsaKey, type VerifyingKey } from "../crypto/keys.js";
import { WebhookSignatureError } from "../errors.js";
import type { Profile } from "./profile.js";
import { anyVerifies, boundedKey, checkFresh, mismatch, requireObject, textMember } from "./secrets.js";
import { one, required, vendor } from "./vendors.js";

export interface PayPalOptions {
  /** The id of the webhook in PayPal's dashboard: it is signed, but not sent. Required. */
  readonly webhookId: string;
  /**
   * PEM of the accepted certificates (or public keys); or a function that returns the certificate for an address, whose
   * host was checked to be PayPal's. Required.
   */
  readonly certificate: string | readonly string[] | ((url: string) => Promise<string | undefined> | string | undefined);
  /** The name of the sender. Deduplication is per principal. Defaults to paypal. */
  readonly principal?: string;
}

export function paypal(options: PayPalOptions): Profile {
  if (!options.webhookId) throw new Error("paypal: webhookId is required");
  const { certificate } = options;
  const pinned = typeof certificate === "function" ? [] : [certificate ?? []].flat().map(rsaKey);
  if (typeof certificate !== "function" && pinned.length === 0) throw new Error("paypal: a certificate is required");
  const cache = new Map<string, VerifyingKey>();
  const keysFor = async (url: string): Promise<readonly VerifyingKey[]> => {
    if (typeof certificate !== "function") return pinned;
    const pem = await certificate(url);
    if (!pem) throw new WebhookSignatureError("the certificate is not known", "unknown-key");
    const key = cache.get(pem) ?? rsaKey(pem);
    if (cache.size < 16) cache.set(pem, key);
    return [key];
  };
  return {
    ...vendor,
    name: "paypal",
    signsTime: true,
    keySource: "the member id of the event",
    async authenticate(message, check) {
      const id = required(message, "paypal-transmission-id");
      const time = required(message, "paypal-transmission-time");
      const signature = one(fromBase64(required(message, "paypal-transmission-sig")));
      if (required(message, "paypal-auth-algo").toUpperCase() !== "SHA256WITHRSA") {
        throw new WebhookSignatureError("the algorithm is not SHA256withRSA", "algorithm-mismatch");
      }
      const url = certificateUrl(required(message, "paypal-cert-url"));
      const signedAt = rfc3339(time);
      checkFresh(signedAt, check); // before anything is looked up
      const keys = await keysFor(url);
      const signed = utf8(`${id}|${time}|${options.webhookId}|${crc32(message.body)}`);
      if (!(await anyVerifies(keys, signed, signature))) throw mismatch();
      return { principal: options.principal ?? "paypal", signedAt, once: `${id} ${time}` };
    },
    identify(message) {
      const event = requireObject(message.body);
      const key = boundedKey(textMember(event, "id"), "the event's id");
      return { key, eventId: key, eventType: textMember(event, "event_type") ?? "" };
    },
  };
}

/** The certificate must be one of PayPal's, over TLS, so that a request cannot lead the function to another host. */
function certificateUrl(value: string): string {
  const match = /^https:\/\/([a-z0-9.-]+)(?::443)?\/[^\s#]*$/i.exec(value);
  const host = match?.[1]?.toLowerCase();
  if (host === undefined || !(host === "paypal.com" || host.endsWith(".paypal.com"))) {
    throw new WebhookSignatureError("the certificate is not at paypal.com", "unknown-key");
  }
  return value;
}

function rfc3339(value: string): number {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) ? Date.parse(value) : NaN;
  if (Number.isNaN(ms)) throw new WebhookSignatureError("Invalid timestamp", "malformed-timestamp");
  return Math.floor(ms / 1000);
}
