/**
 * Vendors whose scheme is a shared secret: GitHub, Stripe, Shopify, Slack. Their documentation as of 2026 is the
 * source; if it has changed since, follow the vendor.
 *
 * GitHub and Shopify sign no time, and the header that identifies a delivery is not signed either: deduplication is the
 * only defence against a replay, and only against an unchanged one.
 */
import { fromBase64, fromHex, text, type Bytes } from "../crypto/bytes.js";
import { WebhookSignatureError } from "../errors.js";
import { emptyAnswer } from "./answers.js";
import { day, type Answer, type Message, type Profile } from "./profile.js";
import {
  anyVerifies,
  bodyKey,
  boundedKey,
  checkFresh,
  jsonObject,
  mismatch,
  positiveInteger,
  prefixed,
  requireObject,
  textKeys,
  textMember,
  unixSeconds,
  type SharedSecretOptions,
} from "./secrets.js";

/** What vendors have in common. */
export const vendor = {
  methods: ["POST"],
  windowFloor: day,
  lease: 60,
  fingerprint: true,
  problems: false,
  success: (): Answer => emptyAnswer(200),
} as const;

/** One signature, or the refusal that fits. */
export function one(signature: Bytes | undefined): readonly Bytes[] {
  return signature === undefined ? [] : [signature];
}

export function required(message: Message, name: string): string {
  const value = message.fields.get(name);
  if (!value) throw new WebhookSignatureError(`${name} is missing`, "missing");
  return value;
}

/** GitHub: `X-Hub-Signature-256: sha256=<hex>` over the body; the delivery's GUID is the key. */
export function github(options: SharedSecretOptions): Profile {
  const keys = textKeys("github", options.secrets);
  return {
    ...vendor,
    name: "github",
    signsTime: false,
    keySource: "the header X-GitHub-Delivery",
    async authenticate(message) {
      const header = required(message, "x-hub-signature-256");
      if (!header.startsWith("sha256=")) throw new WebhookSignatureError("Invalid signature format", "malformed");
      if (!(await anyVerifies(keys, message.body, one(fromHex(header.slice(7)))))) throw mismatch();
      return { principal: options.principal ?? "github" };
    },
    identify(message) {
      const key = boundedKey(message.fields.get("x-github-delivery"), "X-GitHub-Delivery");
      return { key, deliveryId: key, eventId: key, eventType: message.fields.get("x-github-event") ?? "" };
    },
  };
}

/**
 * Stripe: `Stripe-Signature: t=<time>,v1=<hex>[,v1=…]` over `<t>.<body>`. The same event may be sent again with another
 * count of `pending_webhooks`, so bodies are not compared.
 */
export function stripe(options: SharedSecretOptions): Profile {
  const keys = textKeys("stripe", options.secrets);
  return {
    ...vendor,
    name: "stripe",
    signsTime: true,
    fingerprint: false,
    keySource: "the member id of the event",
    async authenticate(message, check) {
      const pairs = required(message, "stripe-signature")
        .split(",")
        .map((pair) => pair.trim().split("="));
      const timestamp = pairs.find(([name]) => name === "t")?.[1];
      const signedAt = unixSeconds(timestamp);
      const macs = pairs.filter(([name]) => name === "v1").flatMap(([, value]) => one(fromHex(value ?? "")));
      checkFresh(signedAt, check);
      if (!(await anyVerifies(keys, prefixed(`${timestamp}.`, message.body), macs))) throw mismatch();
      return { principal: options.principal ?? "stripe", signedAt, once: timestamp! };
    },
    identify(message) {
      const event = requireObject(message.body);
      const key = boundedKey(textMember(event, "id"), "the event's id");
      return { key, eventId: key, eventType: textMember(event, "type") ?? "" };
    },
  };
}

/** Shopify: `X-Shopify-Hmac-Sha256` is base64 over the body; the event's id is the key, else the webhook's. */
export function shopify(options: SharedSecretOptions): Profile {
  const keys = textKeys("shopify", options.secrets);
  return {
    ...vendor,
    name: "shopify",
    signsTime: false,
    keySource: "the header X-Shopify-Event-Id, else X-Shopify-Webhook-Id",
    async authenticate(message) {
      const header = required(message, "x-shopify-hmac-sha256");
      if (!(await anyVerifies(keys, message.body, one(fromBase64(header))))) throw mismatch();
      return { principal: options.principal ?? "shopify" };
    },
    identify(message) {
      const deliveryId = message.fields.get("x-shopify-webhook-id");
      const key = boundedKey(message.fields.get("x-shopify-event-id") || deliveryId, "X-Shopify-Event-Id");
      const eventType = message.fields.get("x-shopify-topic") ?? "";
      return { key, eventId: key, eventType, ...(deliveryId === undefined ? {} : { deliveryId }) };
    },
  };
}

/** Slack: `X-Slack-Signature: v0=<hex>` over `v0:<time>:<body>`. An authentic challenge is answered. */
export function slack(options: SharedSecretOptions): Profile {
  const keys = textKeys("slack", options.secrets);
  return {
    ...vendor,
    name: "slack",
    signsTime: true,
    keySource: "the member event_id; the digest of the body where there is none",
    async authenticate(message, check) {
      const header = required(message, "x-slack-signature");
      if (!header.startsWith("v0=")) throw new WebhookSignatureError("Invalid signature format", "malformed");
      const timestamp = message.fields.get("x-slack-request-timestamp");
      const signedAt = unixSeconds(timestamp);
      checkFresh(signedAt, check);
      const signed = prefixed(`v0:${timestamp}:`, message.body);
      if (!(await anyVerifies(keys, signed, one(fromHex(header.slice(3)))))) throw mismatch();
      return { principal: options.principal ?? "slack", signedAt, once: timestamp! };
    },
    async identify(message) {
      const envelope = jsonObject(message.body);
      const key = textMember(envelope, "event_id") ?? (await bodyKey(message));
      const inner = envelope?.["event"];
      const event = typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>) : undefined;
      const retry = positiveInteger(message.fields.get("x-slack-retry-num"));
      return {
        key: boundedKey(key, "event_id"),
        eventId: key,
        eventType: textMember(event, "type") ?? textMember(envelope, "type") ?? "",
        attempt: (retry ?? 0) + 1,
      };
    },
    handshake(message) {
      const envelope = jsonObject(message.body);
      const challenge = textMember(envelope, "challenge");
      if (envelope?.["type"] !== "url_verification" || challenge === undefined) return undefined;
      return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: new TextEncoder().encode(challenge) as Bytes };
    },
  };
}

/** The parameters of a form, as text. */
export function formParams(body: Bytes): URLSearchParams {
  return new URLSearchParams(text(body));
}
