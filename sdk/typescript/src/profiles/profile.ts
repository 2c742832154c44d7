/**
 * A profile implements one sender's dialect: how requests are verified, how deliveries are identified, how they are
 * answered. It holds the secrets. It keeps no state: the receiver's store remembers nonces and keys.
 */
import type { Bytes } from "../crypto/bytes.js";
import type { Fields } from "../fields.js";

/** A request as it arrived. */
export interface Message {
  readonly method: string;
  /** The address that the sender used. */
  readonly url: string;
  readonly fields: Fields;
  /** The raw bytes, before any decoding. */
  readonly body: Bytes;
}

export interface Check {
  /** The receiver's clock in Unix seconds. */
  readonly now: number;
  /** Largest age and lead of a signed time in seconds; undefined: the time is not checked. */
  readonly tolerance: number | undefined;
}

/** The result of a successful verification. */
export interface Authentication {
  /** The authenticated producer. It is configured, never taken from the request (EDS-KEY-6). */
  readonly principal: string;
  /** The signed time in Unix seconds, where the scheme has one. */
  readonly signedAt?: number;
  /** Unique to an attempt and refused when seen again. */
  readonly nonce?: string;
  /**
   * Distinguishes, with the body, one attempt from another. It takes the place of a nonce where deduplication is off.
   */
  readonly once?: string;
  /** Header fields that the signature covers; undefined if the scheme covers none. */
  readonly covered?: ReadonlySet<string>;
}

/** The identity of a delivery and its event. */
export interface Identity {
  /** The value that duplicates share. */
  readonly key: string;
  /** The event's id, in the sender's form. */
  readonly eventId: string;
  /** "" if the sender does not send it. */
  readonly eventType: string;
  readonly deliveryId?: string;
  readonly attempt?: number;
}

export interface KeyPolicy {
  readonly minLength: number;
  readonly maxLength: number;
  /** Also accept a key without quotes. */
  readonly lenient: boolean;
}

/** The response to the sender. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Bytes | null;
}

export interface Profile {
  readonly name: string;
  readonly methods: readonly string[];
  /** Whether a time is signed, so that freshness can be checked. */
  readonly signsTime: boolean;
  /** Whether deduplication cannot be turned off: for dialects whose documents require it (CCW CT-32). */
  readonly alwaysDedup?: boolean;
  /** The signature covers the address. If it does not, host and query can be forged. */
  readonly signsTarget?: boolean;
  /** The shortest deduplication window in seconds that needs no agreement. */
  readonly windowFloor: number;
  /** How long a handler may hold a key, in seconds. */
  readonly lease: number;
  /** Whether a repeat is compared with the first body by default. */
  readonly fingerprint: boolean;
  /** Whether errors are problem details, otherwise `{"error": …}`. */
  readonly problems: boolean;
  /** The text of a 401. Defaults to the reason. */
  readonly refusal?: string;
  /** The source of the key, for people. */
  readonly keySource: string;
  /** Verifies, or throws a WebhookSignatureError. */
  authenticate(message: Message, check: Check): Promise<Authentication>;
  /** Reads the identity of an authenticated message, or throws a DeliveryError. */
  identify(message: Message, authentication: Authentication, policy: KeyPolicy): Promise<Identity> | Identity;
  /** The answer to an accepted delivery if the handler gives no other. */
  success(identity: Identity): Answer;
  /** Answers an authenticated handshake that is not an event. */
  handshake?(message: Message): Answer | undefined;
}

export const day = 24 * 60 * 60;
