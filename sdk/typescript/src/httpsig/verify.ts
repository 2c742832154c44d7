/**
 * HTTP Message Signatures (RFC 9421) on requests.
 *
 *   Signature-Input, Signature ─► each signature: what is required covered? ─► key by keyid, algorithm fits?
 *     ─► signature over the same base ─► Content-Digest fits the body ─► created and expires within limits
 *
 * One good signature is enough; one that makes no sense, perhaps of another hop, does not spoil the others. The
 * algorithm belongs to the key: an `alg` parameter can confirm it, never choose it. Nonces are the caller's to remember.
 */
import { utf8, type Bytes } from "../crypto/bytes.js";
import type { VerifyingKey } from "../crypto/keys.js";
import { WebhookSignatureError, type SignatureReason } from "../errors.js";
import { baseLine, component, readComponent, type Component } from "./components.js";
import { verifyContentDigest } from "./digest.js";
import type { SignedMessage } from "./message.js";
import {
  isInnerList,
  parseDictionary,
  serializeMember,
  StructuredFieldError,
  type InnerList,
  type Member,
} from "./structured.js";

/** The components that a delivery covers: method, address, content, media type and key. */
export const deliveryComponents = ["@method", "@target-uri", "content-digest", "content-type", "idempotency-key"] as const;

export interface SignatureKey {
  readonly algorithm: "hmac-sha256" | "ed25519";
  readonly key: VerifyingKey;
}

export interface SignatureOptions<K extends SignatureKey> {
  keyById(id: string): Promise<K | undefined> | K | undefined;
  /** Defaults to {@link deliveryComponents}. */
  readonly requiredComponents?: readonly string[];
  /** Only signatures with this tag count. Defaults to any. */
  readonly tag?: string;
  /** The receiver's clock in Unix seconds. */
  readonly now: number;
  /** Largest age and lead, in seconds; undefined: the time is not checked. */
  readonly tolerance: number | undefined;
  readonly requireNonce?: boolean;
}

export interface VerifiedSignature<K extends SignatureKey> {
  readonly key: K;
  readonly keyId: string;
  readonly label: string;
  readonly created: number | undefined;
  readonly expires: number | undefined;
  readonly nonce: string | undefined;
  /** Names of the fields that the signature covers as a whole. */
  readonly covered: ReadonlySet<string>;
}

const maxSignatures = 16;
const maxComponents = 64;
const maxFieldLength = 32 << 10;

/** How far verification got: of several failed signatures, the one that got furthest explains most. */
const progress: Readonly<Record<SignatureReason, number>> = {
  missing: 0,
  malformed: 1,
  "malformed-timestamp": 1,
  "missing-component": 2,
  "unknown-key": 3,
  "algorithm-mismatch": 4,
  mismatch: 5,
  "digest-mismatch": 6,
  "from-future": 7,
  "too-old": 7,
  expired: 7,
  replayed: 8,
};

export async function verifySignatures<K extends SignatureKey>(
  message: SignedMessage,
  body: Bytes,
  options: SignatureOptions<K>,
): Promise<VerifiedSignature<K>> {
  const inputs = dictionary(message, "signature-input");
  if (inputs.size === 0) throw new WebhookSignatureError("no signature", "missing");
  const values = dictionary(message, "signature");
  if (inputs.size > maxSignatures) throw new WebhookSignatureError("too many signatures", "malformed");
  let best: WebhookSignatureError | undefined;
  for (const [label, input] of inputs) {
    if (options.tag !== undefined && !(isInnerList(input) && input.params.get("tag") === options.tag)) continue;
    try {
      return await verifyOne(message, body, label, input, values.get(label), options);
    } catch (error) {
      const verdict = asVerdict(error);
      if (best === undefined || progress[verdict.reason] > progress[best.reason]) best = verdict;
    }
  }
  throw best ?? new WebhookSignatureError("no signature", "missing");
}

function asVerdict(error: unknown): WebhookSignatureError {
  if (error instanceof WebhookSignatureError) return error;
  if (error instanceof StructuredFieldError) return new WebhookSignatureError(error.message, "malformed");
  throw error;
}

function dictionary(message: SignedMessage, name: string): Map<string, Member> {
  const lines = message.fields.lines(name);
  if (lines.reduce((n, line) => n + line.length, 0) > maxFieldLength) {
    throw new WebhookSignatureError(`${name} is too long`, "malformed");
  }
  try {
    return parseDictionary(lines);
  } catch (error) {
    throw asVerdict(error);
  }
}

async function verifyOne<K extends SignatureKey>(
  message: SignedMessage,
  body: Bytes,
  label: string,
  input: Member,
  value: Member | undefined,
  options: SignatureOptions<K>,
): Promise<VerifiedSignature<K>> {
  if (!isInnerList(input)) throw new WebhookSignatureError(`signature ${label} lists no components`, "malformed");
  if (value === undefined || isInnerList(value) || !(value.value instanceof Uint8Array)) {
    throw new WebhookSignatureError(`signature ${label} has no value`, "malformed");
  }
  const components = covered(input);
  const params = readParams(input);
  checkCoverage(components, params, options);
  const key = await options.keyById(params.keyId);
  if (key === undefined) throw new WebhookSignatureError("no key is known by this keyid", "unknown-key");
  if (params.alg !== undefined && params.alg !== key.algorithm) {
    throw new WebhookSignatureError("the key has another algorithm", "algorithm-mismatch");
  }
  if (!(await key.key.verify(utf8(signatureBase(message, components, input)), value.value))) {
    throw new WebhookSignatureError("the signature does not fit the message", "mismatch");
  }
  await checkDigest(message, body, components);
  checkTimes(params, options);
  const { keyId, created, expires, nonce } = params;
  const whole = components.filter((c) => c.key === undefined && !c.tr && !c.req).map((c) => c.name);
  return { key, keyId, label, created, expires, nonce, covered: new Set(whole) };
}

/** The text that is signed (RFC 9421, section 2.5). */
export function signatureBase(message: SignedMessage, components: readonly Component[], input: InnerList): string {
  const lines = components.map((c) => baseLine(message, c));
  return [...lines, `"@signature-params": ${serializeMember(input)}`].join("\n");
}

export function covered(input: InnerList): Component[] {
  if (input.items.length > maxComponents) throw new WebhookSignatureError("too many components", "malformed");
  const components = input.items.map(readComponent);
  if (new Set(components.map((c) => c.identity)).size !== components.length) {
    throw new WebhookSignatureError("a component occurs twice", "malformed");
  }
  return components;
}

interface Params {
  readonly keyId: string;
  readonly alg: string | undefined;
  readonly nonce: string | undefined;
  readonly created: number | undefined;
  readonly expires: number | undefined;
}

function readParams(input: InnerList): Params {
  const typed = <T>(name: string, is: (value: unknown) => value is T): T | undefined => {
    const value = input.params.get(name);
    if (value === undefined || is(value)) return value;
    throw new WebhookSignatureError(`parameter ${name} has the wrong type`, "malformed");
  };
  const isText = (value: unknown): value is string => typeof value === "string";
  const isTime = (value: unknown): value is number => typeof value === "number";
  return {
    keyId: typed("keyid", isText) ?? "",
    alg: typed("alg", isText),
    nonce: typed("nonce", isText),
    created: typed("created", isTime),
    expires: typed("expires", isTime),
  };
}

function checkCoverage<K extends SignatureKey>(
  components: readonly Component[],
  params: Params,
  options: SignatureOptions<K>,
): void {
  for (const required of options.requiredComponents ?? deliveryComponents) {
    const { identity } = component(required);
    if (!components.some((c) => c.identity === identity)) {
      throw new WebhookSignatureError(`${required} is not signed`, "missing-component");
    }
  }
  if (options.tolerance !== undefined && params.created === undefined) {
    throw new WebhookSignatureError("the signature has no time of creation", "missing-component");
  }
  if (options.requireNonce && !params.nonce) {
    throw new WebhookSignatureError("the signature has no nonce", "missing-component");
  }
}

async function checkDigest(message: SignedMessage, body: Bytes, components: readonly Component[]): Promise<void> {
  const digests = components.filter((c) => c.name === "content-digest" && !c.tr && !c.req);
  if (digests.length === 0) return;
  const members = digests.map((c) => c.key);
  const only = members.includes(undefined) ? undefined : (members as string[]);
  await verifyContentDigest(message.fields.lines("content-digest"), body, only);
}

function checkTimes<K extends SignatureKey>(params: Params, options: SignatureOptions<K>): void {
  const { now, tolerance } = options;
  if (tolerance !== undefined && params.created !== undefined) {
    if (now - params.created > tolerance) throw new WebhookSignatureError("the signature is too old", "too-old");
    if (params.created - now > tolerance) throw new WebhookSignatureError("the signature is from the future", "from-future");
  }
  if (params.expires !== undefined && params.expires < now) {
    throw new WebhookSignatureError("the signature has expired", "expired");
  }
}
