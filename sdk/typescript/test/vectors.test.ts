/** The vectors that all languages share: structured fields, HTTP signatures, digests, and the signatures of the dialects. */
import assert from "node:assert/strict";
import { constants, createPublicKey, verify as verifyWith } from "node:crypto";
import { describe, test } from "node:test";
import {
  cybercube,
  CybercubeWebhooks,
  eds,
  eventIdToBase32,
  eventIdToUuid,
  Fields,
  github,
  isPublicId,
  ojs,
  paypal,
  shopify,
  signWebhook,
  slack,
  standardWebhooks,
  stripe,
  twilio,
  verify,
  verifyWebhookSignature,
  WebhookSignatureError,
  type Profile,
} from "@godwit/receiver";
// The inner parts that the vectors are about are not exported by the package.
import { ed25519Key, hmacKey } from "../dist/crypto/keys.js";
import { baseLine, component } from "../dist/httpsig/components.js";
import { contentDigest, verifyContentDigest } from "../dist/httpsig/digest.js";
import type { SignedMessage } from "../dist/httpsig/message.js";
import * as sf from "../dist/httpsig/structured.js";
import { covered, signatureBase, verifySignatures } from "../dist/httpsig/verify.js";
import { normalizedUri, splitUri } from "../dist/httpsig/message.js";
import { defaultKeyPolicy, fingerprintOf, parseKey, scopeOf } from "../dist/key.js";
import { bodyOf, vectors } from "./support/vectors.js";

interface FieldCase {
  name: string;
  raw?: string[];
  header_type: "item" | "list" | "dictionary";
  expected?: unknown;
  must_fail?: boolean;
  can_fail?: boolean;
  canonical?: string[];
}

/** The value as the public cases write it. */
function plain(value: sf.BareItem): unknown {
  if (value instanceof sf.Token) return { __type: "token", value: value.value };
  if (value instanceof sf.SfDate) return { __type: "date", value: value.seconds };
  if (value instanceof sf.DisplayString) return { __type: "displaystring", value: value.value };
  if (value instanceof sf.Decimal) return value.value;
  return value instanceof Uint8Array ? { __type: "binary", value } : value;
}

const plainItem = (item: sf.Item): unknown => [plain(item.value), [...item.params].map(([k, v]) => [k, plain(v)])];
const plainMember = (member: sf.Member): unknown =>
  sf.isInnerList(member) ? [member.items.map(plainItem), [...member.params].map(([k, v]) => [k, plain(v)])] : plainItem(member);

function parsed(c: FieldCase): { value: unknown; canonical: string } {
  if (c.header_type === "item") {
    const item = sf.parseItem(c.raw!);
    return { value: plainItem(item), canonical: sf.serializeItem(item) };
  }
  if (c.header_type === "list") {
    const list = sf.parseList(c.raw!);
    return { value: list.map(plainMember), canonical: sf.serializeList(list) };
  }
  const dictionary = sf.parseDictionary(c.raw!);
  return { value: [...dictionary].map(([k, m]) => [k, plainMember(m)]), canonical: sf.serializeDictionary(dictionary) };
}

describe("structured fields", () => {
  for (const file of ["item", "string", "string-generated", "token"]) {
    test(`public cases: ${file} [IKH-SYN-2]`, () => {
      for (const c of vectors<FieldCase[]>(`structured-fields/${file}.json`)) {
        if (c.must_fail) {
          assert.throws(() => parsed(c), sf.StructuredFieldError, c.name);
          continue;
        }
        try {
          const got = parsed(c);
          assert.deepEqual(got.value, c.expected, c.name);
          assert.deepEqual(got.canonical === "" ? [] : [got.canonical], c.canonical ?? c.raw, c.name);
        } catch (error) {
          if (!(c.can_fail && error instanceof sf.StructuredFieldError)) throw error;
        }
      }
    });
  }

  test("public cases: serialisation of strings", () => {
    for (const c of vectors<{ name: string; expected: [string, []]; must_fail?: boolean; canonical?: string[] }[]>(
      "structured-fields/serialise-string-generated.json",
    )) {
      const item = { value: c.expected[0], params: new Map() };
      if (c.must_fail) assert.throws(() => sf.serializeItem(item), sf.StructuredFieldError, c.name);
      else assert.deepEqual([sf.serializeItem(item)], c.canonical, c.name);
    }
  });

  test("every public string is a key or is refused as one [IKH-SYN-2 IKH-SYN-3]", () => {
    const policy = { minLength: 0, maxLength: 1024, lenient: false };
    for (const file of ["item", "string", "string-generated", "token"]) {
      for (const c of vectors<FieldCase[]>(`structured-fields/${file}.json`)) {
        if (c.header_type !== "item" || c.can_fail) continue;
        const value = c.must_fail ? undefined : (c.expected as [unknown])[0];
        if (typeof value === "string") assert.equal(parseKey(c.raw!, policy), value, c.name);
        else assert.throws(() => parseKey(c.raw!, policy), { name: "DeliveryError" }, c.name);
      }
    }
  });

  test("keys as receivers read them [IKH-SYN-2 IKH-SYN-3 IKH-SYN-5 IKH-SEC-4]", () => {
    const { cases } = vectors<{ cases: { name: string; lines: string[]; lenient?: boolean; key?: string; error?: string }[] }>("idempotency-keys.json");
    for (const c of cases) {
      const read = (): string => parseKey(new Fields(c.lines.map((line) => ["Idempotency-Key", line] as const)).lines("idempotency-key"), { ...defaultKeyPolicy, lenient: c.lenient ?? false });
      if (c.error === undefined) assert.equal(read(), c.key, c.name);
      else assert.throws(read, { name: "DeliveryError", code: c.error }, c.name);
    }
  });

  test("scopes and fingerprints are those of the other languages [EDS-KEY-5 EDS-KEY-8 IKH-SEC-6]", async () => {
    const file = vectors<{
      scopes: { name: string; principal: string; url: string; key: string; scope: string }[];
      fingerprints: { name: string; content_type: string; body?: string; body_base64?: string; fingerprint: string }[];
    }>("receiver-digests.json");
    for (const c of file.scopes) assert.equal(await scopeOf(c.principal, normalizedUri(splitUri(c.url)), c.key), c.scope, c.name);
    for (const c of file.fingerprints) assert.equal(await fingerprintOf(c.content_type, new Uint8Array(bodyOf(c))), c.fingerprint, c.name);
  });

  test("round trips of all types", () => {
    const text = 'a=1, b=-2.5;x, c=("t" tok;q=:AP8=:);z=?0, d, e=@1700000000, f=%"f%c3%bc"';
    assert.equal(sf.serializeDictionary(sf.parseDictionary([text])), text);
    for (const bad of ["1.", "1.2345", "1234567890123456", "-", "?2", ":a", ":a=b=:", "@1.5", '%"\u00e9"', '%"%ff"', "(1 2", '("a""b")', "a,", "é"]) {
      assert.throws(() => sf.parseList([bad]), sf.StructuredFieldError, bad);
    }
  });
});

interface HttpMessage {
  method?: string;
  scheme?: string;
  target?: string;
  status?: number;
  fields: [string, string][];
  trailers?: [string, string][];
  body: string;
}

function signedMessage(m: HttpMessage, request?: HttpMessage): SignedMessage {
  const fields = new Fields(m.fields);
  const isPath = m.target?.startsWith("/");
  return {
    fields,
    ...(m.trailers ? { trailers: new Fields(m.trailers) } : {}),
    ...(m.status === undefined ? {} : { status: m.status }),
    ...(m.method === undefined ? {} : { method: m.method, requestTarget: m.target!, url: isPath ? `${m.scheme}://${fields.get("host")}${m.target}` : m.target! }),
    ...(request ? { request: signedMessage(request) } : {}),
    structuredFields: { "example-dict": "dictionary" },
  };
}

interface SignatureFile {
  keys: { id: string; algorithm: string; public_pem?: string; secret_base64?: string }[];
  messages: Record<string, HttpMessage>;
  cases: {
    section: string;
    name: string;
    message: string;
    request?: string;
    label: string;
    key: string;
    algorithm: string;
    components: string[];
    signature_input: string;
    signature: string;
    base?: string;
    valid: boolean;
  }[];
}

describe("HTTP message signatures (RFC 9421)", () => {
  test("components of sections 2.1 and 2.2 [EDS-SEC-AUT-2]", () => {
    const file = vectors<{ cases: { section: string; message: HttpMessage; lines: { component: string; line: string }[] }[] }>(
      "httpsig/rfc9421-components.json",
    );
    for (const c of file.cases) {
      for (const { component: id, line } of c.lines) {
        const wanted = component(id);
        assert.equal(baseLine(signedMessage(c.message), wanted), line, `${c.section} ${id}`);
      }
    }
  });

  const file = vectors<SignatureFile>("httpsig/rfc9421-signatures.json");
  for (const c of file.cases) {
    test(`${c.section} ${c.name}: ${c.valid ? "valid" : "not valid"} [EDS-SEC-AUT-2]`, async () => {
      const m = file.messages[c.message]!;
      const message = signedMessage(
        { ...m, fields: [...m.fields, ["Signature-Input", c.signature_input], ["Signature", c.signature]] },
        c.request ? file.messages[c.request] : undefined,
      );
      const key = file.keys.find((k) => k.id === c.key)!;
      const input = sf.parseDictionary([c.signature_input]).get(c.label)! as sf.InnerList;
      const signature = (sf.parseDictionary([c.signature]).get(c.label) as sf.Item).value as Uint8Array;
      const base = signatureBase(message, covered(input), input);
      if (c.base !== undefined) assert.equal(base, c.base);
      if (c.algorithm === "rsa-pss-sha512" || c.algorithm === "ecdsa-p256-sha256") {
        // Not algorithms of deliveries: the base is ours, the mathematics Node's.
        const rsa = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 };
        const options = c.algorithm === "rsa-pss-sha512" ? rsa : { dsaEncoding: "ieee-p1363" as const };
        const hash = c.algorithm === "rsa-pss-sha512" ? "sha512" : "sha256";
        assert.equal(verifyWith(hash, Buffer.from(base), { key: createPublicKey(key.public_pem!), ...options }, signature), c.valid);
        return;
      }
      const material = key.secret_base64
        ? hmacKey("SHA-256", new Uint8Array(Buffer.from(key.secret_base64, "base64")))
        : ed25519Key(new Uint8Array(createPublicKey(key.public_pem!).export({ format: "der", type: "spki" }).subarray(-32)));
      const verifying = verifySignatures(message, new TextEncoder().encode(m.body), {
        keyById: (id) => (id === c.key ? { algorithm: c.algorithm as "ed25519", key: material } : undefined),
        requiredComponents: c.components,
        now: 1618884473,
        tolerance: 300,
      });
      if (c.valid) assert.equal((await verifying).keyId, c.key);
      else await assert.rejects(verifying, (e) => e instanceof WebhookSignatureError && e.reason === "mismatch");
    });
  }

  test("eds: every verdict of the vectors, with its reason [EDS-SEC-AUT-2 EDS-SEC-THR-3 EDS-KEY-6]", async () => {
    const file = vectors<{
      keys: { id: string; principal: string; secret?: string; public_key?: string }[];
      cases: {
        name: string;
        now: number;
        method: string;
        url: string;
        headers: Record<string, string>;
        body?: string;
        body_base64?: string;
        valid: boolean;
        reason?: string;
        principal?: string;
        key?: string;
        event_type?: string;
        event_id?: string;
      }[];
    }>("eds-requests.json");
    const profile = eds({ keys: file.keys.map(({ public_key, ...key }) => (public_key === undefined ? key : { ...key, publicKey: public_key })) });
    for (const c of file.cases) {
      const message = { method: c.method, url: c.url, fields: new Fields(c.headers), body: new Uint8Array(bodyOf(c)) };
      const verifying = profile.authenticate(message, { now: c.now, tolerance: 300 });
      if (!c.valid) {
        await assert.rejects(verifying, (e) => e instanceof WebhookSignatureError && (c.reason === undefined || e.reason === c.reason), c.name);
        continue;
      }
      const authentication = await verifying;
      assert.equal(authentication.principal, c.principal, c.name);
      const identity = await profile.identify(message, authentication, defaultKeyPolicy);
      assert.equal(identity.key, c.key, c.name);
      if (c.event_type !== undefined) assert.equal(identity.eventType, c.event_type, c.name);
      if (c.event_id !== undefined) assert.equal(identity.eventId, c.event_id, c.name);
    }
  });

  test("Content-Digest (RFC 9530)", async () => {
    for (const c of vectors<{ cases: { name: string; body: string; field: string; valid: boolean }[] }>("httpsig/rfc9530-content-digest.json").cases) {
      const body = new TextEncoder().encode(c.body);
      if (c.valid) await verifyContentDigest([c.field], body);
      else await assert.rejects(verifyContentDigest([c.field], body), WebhookSignatureError, c.name);
      if (c.valid && c.field.startsWith("sha-256")) assert.equal(await contentDigest(body), c.field);
    }
  });
});

interface SignVector {
  name: string;
  secret: string;
  timestamp: number;
  body?: string;
  body_base64?: string;
  signature: string;
  never?: string[];
}
interface VerifyVector {
  name: string;
  secrets?: string[];
  keys?: string[];
  now: number;
  id?: string;
  timestamp: string;
  signature: string;
  body?: string;
  body_base64?: string;
  valid: boolean;
}
interface DialectFile {
  fields: Record<string, string>;
  tolerance_seconds: number;
  sign: SignVector[];
  verify: VerifyVector[];
}

async function verdict(profile: Profile, headers: Record<string, string>, v: { body?: string; body_base64?: string }, now: number, url?: string): Promise<boolean> {
  try {
    await verify(profile, { headers, body: bodyOf(v), ...(url === undefined ? {} : { url }) }, { clock: () => now * 1000 });
    return true;
  } catch (error) {
    if (error instanceof WebhookSignatureError) return false;
    throw error;
  }
}

describe("signatures of the dialects", () => {
  test("ojs: every verdict of the vectors [OJS-SIG-6 OJS-SIG-7 OJS-SIG-8 OJS-SIG-10 OJS-SIG-11 OJS-ROT-5]", async () => {
    const file = vectors<DialectFile>("ojs-signatures.json");
    for (const v of file.verify) {
      const headers = { [file.fields["timestamp"]!]: v.timestamp, [file.fields["signature"]!]: v.signature };
      assert.equal(await verdict(ojs({ secrets: v.secrets! }), headers, v, v.now), v.valid, v.name);
    }
    for (const v of file.sign) {
      const headers = { "X-OJS-Timestamp": String(v.timestamp), "X-OJS-Signature": v.signature };
      assert.equal(await verdict(ojs({ secrets: v.secret }), headers, v, v.timestamp), true, v.name);
    }
  });

  test("cybercube: every verdict of the vectors, by profile, class and function [CCW-SIG-7 CCW-SIG-10 CCW-SIG-11 CCW-SIG-12 CCW-SIG-15 CCW-SDK-10]", async () => {
    const file = vectors<DialectFile>("cybercube-signatures.json");
    for (const v of file.verify) {
      const headers = { [file.fields["timestamp"]!]: v.timestamp, [file.fields["signature"]!]: v.signature };
      const clock = (): number => v.now * 1000;
      assert.equal(await verdict(cybercube({ secrets: v.secrets! }), headers, v, v.now), v.valid, v.name);
      assert.equal(verifyWebhookSignature(bodyOf(v), v.signature, v.timestamp, v.secrets!, 300, clock).valid, v.valid, v.name);
      const construct = (): unknown => new CybercubeWebhooks(v.secrets!, clock).constructEvent(bodyOf(v), v.signature, v.timestamp);
      if (v.valid) assert.doesNotThrow(construct, v.name);
      else assert.throws(construct, WebhookSignatureError, v.name);
    }
    for (const v of file.sign) {
      assert.equal(signWebhook(bodyOf(v), v.secret, v.timestamp), v.signature, v.name);
      assert.ok(!(v.never ?? []).includes(signWebhook(bodyOf(v), v.secret, v.timestamp)), v.name);
    }
  });

  test("standard-webhooks: every verdict of the vectors, v1 and v1a", async () => {
    const file = vectors<DialectFile>("standard-webhooks-signatures.json");
    for (const v of file.verify) {
      const headers = { "webhook-id": v.id!, "webhook-timestamp": v.timestamp, "webhook-signature": v.signature };
      assert.equal(await verdict(standardWebhooks({ keys: v.keys! }), headers, v, v.now), v.valid, v.name);
    }
  });
});

interface VendorCase {
  name: string;
  secrets: string[];
  certificate?: string;
  webhook_id?: string;
  now?: number;
  url: string;
  headers: Record<string, string>;
  body: string;
  valid: boolean;
  key?: string;
  event_type?: string;
}

describe("signatures of vendors", () => {
  const profiles: Record<string, (c: VendorCase) => Profile> = {
    github: (c) => github({ secrets: c.secrets }),
    stripe: (c) => stripe({ secrets: c.secrets }),
    shopify: (c) => shopify({ secrets: c.secrets }),
    slack: (c) => slack({ secrets: c.secrets }),
    twilio: (c) => twilio({ secrets: c.secrets }),
    paypal: (c) => paypal({ certificate: c.certificate!, webhookId: c.webhook_id! }),
  };
  const file = vectors<{ vendors: Record<string, VendorCase[]> }>("vendor-signatures.json");
  for (const [vendor, cases] of Object.entries(file.vendors)) {
    test(`${vendor}: every verdict of the vectors`, async () => {
      for (const c of cases) {
        const profile = profiles[vendor]!(c);
        assert.equal(await verdict(profile, c.headers, c, c.now ?? 0, c.url), c.valid, c.name);
        if (!c.valid) continue;
        const message = { method: "POST", url: c.url, fields: new Fields(c.headers), body: new TextEncoder().encode(c.body) };
        const identity = await profile.identify(message, { principal: vendor }, { minLength: 16, maxLength: 255, lenient: false });
        if (c.key !== undefined) assert.equal(identity.key, c.key, c.name);
        if (c.event_type !== undefined) assert.equal(identity.eventType, c.event_type, c.name);
      }
    });
  }
});

test("public ids and event ids in both renderings", () => {
  const file = vectors<{ codes: { id: string }[]; events: { uuid: string; base32: string }[] }>("public-ids.json");
  for (const { id } of file.codes) {
    assert.ok(isPublicId(id), id);
    assert.ok(!isPublicId(id.slice(0, -1) + (id.endsWith("A") ? "B" : "A")), id);
  }
  for (const { uuid, base32 } of file.events) {
    assert.equal(eventIdToUuid(base32), uuid);
    assert.equal(eventIdToBase32(uuid), base32);
  }
  for (const bad of ["", "evt_", "evt_8ZZZZZZZZZFZZVZZZZZZZZZZZZ", "evt_x", "WEB-X2M8KD-Z"]) assert.equal(eventIdToUuid(bad), undefined);
});
