/**
 * The `eds` profile: deliveries after the Event and Webhook Delivery Semantics draft, signed with HTTP Message Signatures
 * (RFC 9421) and identified by Idempotency-Key.
 */
import { asBytes, fromBase64 } from "../crypto/bytes.js";
import { ed25519Key, hmacKey } from "../crypto/keys.js";
import { parseKey } from "../key.js";
import { component } from "../httpsig/components.js";
import { deliveryComponents, verifySignatures, type SignatureKey } from "../httpsig/verify.js";
import { emptyAnswer } from "./answers.js";
import { day, type Authentication, type Message, type Profile } from "./profile.js";
import { positiveInteger } from "./secrets.js";

export interface EdsKey {
  /** The keyid of the signatures. */
  readonly id: string;
  /** The key's owner. Several keys of one owner are one principal, so that a rotation keeps it (EDS-KEY-6). */
  readonly principal: string;
  /** The shared secret: base64 text as the server shows it, or bytes. */
  readonly secret?: string | Uint8Array;
  /** The Ed25519 public key: base64 text as the server shows it, or its 32 bytes. */
  readonly publicKey?: string | Uint8Array;
}

export interface EdsOptions {
  /** The accepted keys. */
  readonly keys?: readonly EdsKey[];
  /** Finds a key that is not among `keys`, for example in a database. */
  readonly keyById?: (id: string) => Promise<EdsKey | undefined> | EdsKey | undefined;
  /**
   * The components that must be signed. Include content-digest and idempotency-key: an unsigned field can be forged.
   * Defaults to method, address, digest, type and key.
   */
  readonly requiredComponents?: readonly string[];
  /** Only signatures with this tag count. Defaults to any. */
  readonly tag?: string;
  /** A reference to the agreement that lets the producer use PUT. Without it only POST is accepted (EDS-MTH-2). */
  readonly putAgreement?: string;
}

interface OwnedKey extends SignatureKey {
  readonly principal: string;
}

export function eds(options: EdsOptions): Profile {
  const known = new Map<string, OwnedKey>();
  for (const key of options.keys ?? []) {
    if (known.has(key.id)) throw new Error(`eds: key ${key.id} is there twice`);
    known.set(key.id, ownedKey(key));
  }
  if (known.size === 0 && options.keyById === undefined) throw new Error("eds: at least one key is required");
  const find = async (id: string): Promise<OwnedKey | undefined> => {
    const key = known.get(id);
    if (key !== undefined || options.keyById === undefined) return key;
    const found = await options.keyById(id);
    return found === undefined ? undefined : ownedKey(found);
  };
  // A relay signs with its own key under an id that also names the event's origin: "<key>/<origin>". Each origin is a
  // principal of its own, so that one producer's keys do not suppress another's events (EDS T-14).
  const keyById = async (id: string): Promise<OwnedKey | undefined> => {
    const own = await find(id);
    const at = id.indexOf("/");
    if (own !== undefined || at < 0 || at === id.length - 1) return own;
    const relay = await find(id.slice(0, at));
    return relay === undefined ? undefined : { ...relay, principal: `${relay.principal}${id.slice(at)}` };
  };
  const required: readonly string[] = options.requiredComponents ?? deliveryComponents;
  for (const name of required) component(name); // throws if it is none
  for (const needed of ["content-digest", "idempotency-key"]) {
    if (!required.includes(needed)) throw new Error(`eds: ${needed} is not among the components that have to be signed`);
  }
  // A missing key cannot be signed. A request without a key must still prove the rest; then its sender is told that the
  // key is missing (IKH-ERR-1), and the request is refused.
  const requiredWithoutKey = required.filter((name) => name !== "idempotency-key");
  return {
    name: "eds",
    methods: options.putAgreement ? ["POST", "PUT"] : ["POST"],
    signsTime: true,
    signsTarget: required.includes("@target-uri"),
    windowFloor: day,
    lease: 60,
    fingerprint: true,
    problems: true,
    keySource: "the header Idempotency-Key",
    async authenticate(message, check) {
      const verified = await verifySignatures(message, message.body, {
        keyById,
        requiredComponents: message.fields.lines("idempotency-key").length === 0 ? requiredWithoutKey : required,
        now: check.now,
        tolerance: check.tolerance,
        requireNonce: check.tolerance !== undefined,
        ...(options.tag === undefined ? {} : { tag: options.tag }),
      });
      return {
        principal: verified.key.principal,
        covered: verified.covered,
        ...(verified.created === undefined ? {} : { signedAt: verified.created }),
        ...(verified.nonce === undefined ? {} : { nonce: `${verified.keyId} ${verified.nonce}` }),
      };
    },
    identify(message, authentication, policy) {
      const key = parseKey(message.fields.lines("idempotency-key"), policy);
      const deliveryId = signedField(message, authentication, "godwit-delivery-id");
      const attempt = positiveInteger(signedField(message, authentication, "godwit-attempt"));
      return {
        key,
        eventId: signedField(message, authentication, "godwit-event-id") ?? key,
        eventType: signedField(message, authentication, "godwit-event-type") ?? "",
        ...(deliveryId === undefined ? {} : { deliveryId }),
        ...(attempt === undefined ? {} : { attempt }),
      };
    },
    success: () => emptyAnswer(204),
  };
}

/** Only signed fields about the event are read (EDS-SEC-THR-3). */
function signedField(message: Message, authentication: Authentication, name: string): string | undefined {
  return authentication.covered?.has(name) ? message.fields.get(name) : undefined;
}

function ownedKey(key: EdsKey): OwnedKey {
  const { id, principal, secret, publicKey } = key;
  if (!principal) throw new Error(`eds: key ${id} has no principal`);
  if ((secret === undefined) === (publicKey === undefined)) {
    throw new Error(`eds: key ${id} needs either a secret or a public key`);
  }
  const material = secret ?? publicKey!;
  const bytes = typeof material === "string" ? fromBase64(material) : asBytes(material);
  if (bytes === undefined) throw new Error(`eds: key ${id} is not base64`);
  if (publicKey !== undefined) return { principal, algorithm: "ed25519", key: ed25519Key(bytes) };
  if (bytes.length < 16) throw new Error(`eds: the secret of key ${id} is shorter than 16 bytes`);
  return { principal, algorithm: "hmac-sha256", key: hmacKey("SHA-256", bytes) };
}
