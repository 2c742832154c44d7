/** An authenticated delivery, as the handler sees it. */
import { base64, fromBase64, text, type Bytes } from "../crypto/bytes.js";
import { Fields } from "../fields.js";
import type { Identity } from "../profiles/profile.js";

export class Delivery<T = unknown> {
  /** Name of the profile. */
  readonly profile: string;
  /** The authenticated producer. */
  readonly principal: string;
  /** The deduplication key: the value that duplicates share. */
  readonly key: string;
  readonly eventId: string;
  /** "" if the sender does not send it. */
  readonly eventType: string;
  readonly deliveryId: string | undefined;
  /** 1 for the first, if the sender sends it. */
  readonly attempt: number | undefined;
  /** Method and address as the sender used them. */
  readonly method: string;
  readonly url: string;
  /** Header fields. Only those that the profile signs are authentic. */
  readonly headers: Fields;
  readonly contentType: string;
  /** The payload, byte for byte. */
  readonly body: Bytes;
  /** The signed time, where the scheme has one. */
  readonly signedAt: Date | undefined;
  readonly receivedAt: Date;

  constructor(parts: DeliveryParts) {
    this.profile = parts.profile;
    this.principal = parts.principal;
    this.key = parts.identity.key;
    this.eventId = parts.identity.eventId;
    this.eventType = parts.identity.eventType;
    this.deliveryId = parts.identity.deliveryId;
    this.attempt = parts.identity.attempt;
    this.method = parts.method ?? "POST";
    this.url = parts.url;
    this.headers = parts.headers;
    this.contentType = parts.headers.get("content-type") ?? "";
    this.body = parts.body;
    this.signedAt = parts.signedAt;
    this.receivedAt = parts.receivedAt;
  }

  /** The payload as text. */
  text(): string {
    return text(this.body);
  }

  /** The payload as JSON; throws a SyntaxError if it is not JSON. The type is not checked. */
  json(): T {
    return JSON.parse(this.text()) as T;
  }
}

export interface DeliveryParts {
  readonly profile: string;
  readonly principal: string;
  readonly identity: Identity;
  readonly method?: string;
  readonly url: string;
  readonly headers: Fields;
  readonly body: Bytes;
  readonly signedAt?: Date;
  readonly receivedAt: Date;
}

/**
 * A delivery as plain JSON, kept until a worker processes it. Receivers in the other languages read and write it as
 * well.
 */
export interface StoredDelivery {
  readonly profile: string;
  readonly principal: string;
  readonly identity: Identity;
  readonly method?: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly signed_at?: string;
  readonly received_at: string;
}

/** Fields that hold credentials. They are not needed after verification, so they are not kept. */
const credentials = /authorization|cookie|signature|secret|token|hmac|transmission-sig|api-?key|password/i;

export function isCredential(field: string): boolean {
  return credentials.test(field);
}

export function storedDelivery(delivery: Delivery): StoredDelivery {
  const { profile, principal, key, eventId, eventType, deliveryId, attempt, method, url, signedAt } = delivery;
  return {
    profile,
    principal,
    identity: {
      key,
      eventId,
      eventType,
      ...(deliveryId === undefined ? {} : { deliveryId }),
      ...(attempt === undefined ? {} : { attempt }),
    },
    method,
    url,
    headers: [...delivery.headers].filter(([name]) => !isCredential(name)),
    body: base64(delivery.body),
    ...(signedAt === undefined ? {} : { signed_at: signedAt.toISOString() }),
    received_at: delivery.receivedAt.toISOString(),
  };
}

export function restoredDelivery(stored: StoredDelivery): Delivery {
  const body = fromBase64(stored.body);
  if (body === undefined) throw new Error("stored delivery has a damaged body");
  return new Delivery({
    ...stored,
    headers: new Fields(stored.headers),
    body,
    receivedAt: new Date(stored.received_at),
    ...(stored.signed_at === undefined ? {} : { signedAt: new Date(stored.signed_at) }),
  });
}
