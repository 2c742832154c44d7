/**
 * A profile knows one sender's dialect: what is signed, what identifies a delivery, how it wants to be answered. It
 * holds the secrets. It keeps no state: nonces and keys are remembered by the receiver's store.
 */
import type { Bytes } from "../crypto/bytes.js";
import type { Fields } from "../fields.js";

/** A request as it arrived. */
export interface Message {
  readonly method: string;
  /** The address as the sender used it. */
  readonly url: string;
  readonly fields: Fields;
  /** The raw bytes, before any decoding. */
  readonly body: Bytes;
}

export interface Check {
  /** The receiver's clock in Unix seconds. */
  readonly now: number;
  /** Largest age and lead of a signed time in seconds; undefined: freshness is not checked. */
  readonly tolerance: number | undefined;
}

/** What verification found. */
export interface Authentication {
  /** The authenticated producer: configured, never taken from the request (EDS-KEY-6). */
  readonly principal: string;
  /** The signed time in Unix seconds, where the scheme has one. */
  readonly signedAt?: number;
  /** A value that occurs in one attempt only and is refused when it is seen again. */
  readonly nonce?: string;
  /** What, with the body, tells one attempt from another. It stands in for a nonce where deduplication is off. */
  readonly once?: string;
  /** Names of header fields that the signature covers; undefined if the scheme covers none. */
  readonly covered?: ReadonlySet<string>;
}

/** What a delivery is about. */
export interface Identity {
  /** What duplicates share. */
  readonly key: string;
  /** The event's id, in the sender's form. */
  readonly eventId: string;
  /** "" if the sender does not say. */
  readonly eventType: string;
  readonly deliveryId?: string;
  readonly attempt?: number;
}

export interface KeyPolicy {
  readonly minLength: number;
  readonly maxLength: number;
  /** Take a key without quotes as well. */
  readonly lenient: boolean;
}

/** What goes back to the sender. */
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
  /** Whether deduplication cannot be turned off: for dialects whose documents demand it (CCW CT-32). */
  readonly alwaysDedup?: boolean;
  /** The signature covers the address. Where it does not, host and query are whatever a request claims. */
  readonly signsTarget?: boolean;
  /** The shortest deduplication window in seconds that needs no agreement. */
  readonly windowFloor: number;
  /** How long a holder may take before its key is free again, in seconds. */
  readonly lease: number;
  /** Whether a repeat is held against the first body by default. */
  readonly fingerprint: boolean;
  /** Whether errors are problem details; else they are `{"error": …}`. */
  readonly problems: boolean;
  /** What a sender is told with a 401. Defaults to the reason. */
  readonly refusal?: string;
  /** Where the key comes from, for people. */
  readonly keySource: string;
  /** Verifies, or throws a WebhookSignatureError. */
  authenticate(message: Message, check: Check): Promise<Authentication>;
  /** Reads the identity of an authenticated message, or throws a DeliveryError. */
  identify(message: Message, authentication: Authentication, policy: KeyPolicy): Promise<Identity> | Identity;
  /** The answer to an accepted delivery when the handler does not say otherwise. */
  success(identity: Identity): Answer;
  /** Answers an authenticated handshake that is no event. */
  handshake?(message: Message): Answer | undefined;
}

export const day = 24 * 60 * 60;
