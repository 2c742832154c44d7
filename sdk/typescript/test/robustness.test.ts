/** Whatever a sender puts into headers and body: verification throws its own class and no other, and answers are 4xx. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  cybercube,
  CybercubeWebhooks,
  eds,
  github,
  ojs,
  paypal,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  twilio,
  verify,
  verifyWebhookSignature,
  WebhookSignatureError,
  type Profile,
} from "@godwit/receiver";
import { edsKey, harness } from "./support/harness.js";
import { ed25519Pair, secret, signEds } from "./support/sign.js";
import { vectors } from "./support/vectors.js";

const { publicKey } = ed25519Pair();
const certificate = vectors<{ vendors: { paypal: { certificate: string }[] } }>("vendor-signatures.json").vendors.paypal[0]!.certificate;
const profiles: Profile[] = [
  eds({ keys: [edsKey, { id: "ed", principal: "x", publicKey }] }),
  ojs({ secrets: secret }),
  cybercube({ secrets: secret }),
  standardWebhooks({ keys: [secret, `whpk_${publicKey}`] }),
  github({ secrets: secret }),
  stripe({ secrets: secret }),
  shopify({ secrets: secret }),
  slack({ secrets: secret }),
  twilio({ secrets: secret }),
  paypal({ certificate, webhookId: "W" }),
];
const fields = [
  "signature", "signature-input", "content-digest", "idempotency-key", "content-type",
  "x-ojs-signature", "x-ojs-timestamp", "x-ojs-delivery-id", "x-webhook-signature", "x-webhook-timestamp",
  "webhook-id", "webhook-timestamp", "webhook-signature", "x-hub-signature-256", "x-github-delivery", "stripe-signature",
  "x-shopify-hmac-sha256", "x-slack-signature", "x-slack-request-timestamp", "x-twilio-signature",
  "paypal-transmission-id", "paypal-transmission-time", "paypal-transmission-sig", "paypal-cert-url", "paypal-auth-algo",
];
const now = Math.floor(Date.now() / 1000);
const pieces = [
  "", " ", "sha256=", "sha256=zz", `sha256=${"0".repeat(63)}`, `sha256=${"0".repeat(64)}`, "sha1=00", "v0=", "v0=zz", `v0=${"f".repeat(64)}`, "v1,", "v1,!!!!", "v1a,AAAA",
  "v1,AAAA v1a,AAAA v9,x", String(now), "-1", "1e9", "9".repeat(400), "12x", "NaN", `t=${now}`, `t=${now},v1=`, `t=,v1=zz`, "=====", ",,,,", ";;;", "\"", "\"\"", "\"a", ":", "::", ":AAAA:", "?1", "@x", "(",
  "()", "sig1=()", 'sig1=("@method" "@method")', 'sig1=("@nope")', 'sig1=("@query-param")', 'sig1=("x";zz)', `sig1=();created=${now};keyid="key-1"`, `sig1=("@method" "@target-uri" "content-digest" "content-type" "idempotency-key");created=${now};keyid="ed";nonce="n"`,
  `sig1=("@method" "@target-uri" "content-digest" "content-type" "idempotency-key");created=${now};keyid="key-1";nonce="n"`,
  'sig1=("@method");created="x"', "sig1=:AAAA:", "sig1=1", "sig1=:****:", "a=1, a=2, b", "sha-256=:AAAA:", "sha-256=1", "\u00e9", "\u00ff\u00fe", "%00", "\t", "a".repeat(40_000), "https://api.paypal.com/x", "http://evil.example/", "SHA256withRSA", "2026-01-17T12:00:00Z", "yesterday",
  "application/x-www-form-urlencoded", "application/json",
];

/** A small generator with a seed: a failure can be run again. */
function random(seed: number): () => number {
  return () => {
    seed = (seed * 1664525 + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

describe("malformed requests", () => {
  for (const profile of profiles) {
    test(`${profile.name}: 400 requests of nonsense throw WebhookSignatureError and nothing else [OJS-SIG-10]`, async () => {
      const next = random(profile.name.length * 7919);
      const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
      for (let i = 0; i < 400; i++) {
        const headers: Record<string, string | string[]> = {};
        for (const field of fields) if (next() < 0.8) headers[field] = next() < 0.1 ? [pick(pieces), pick(pieces)] : pick(pieces);
        const url = pick(["https://hooks.example.com/in", "http://x/?bodySHA256=zz", "https://[::1]:8443/?%", "", "nonsense"]);
        await assert.rejects(
          verify(profile, { headers, body: pick(["", "{}", "\u0000", "a=1&b=%zz"]), url }),
          (error) => error instanceof WebhookSignatureError && error.name === "WebhookSignatureError",
          JSON.stringify({ url, headers }),
        );
      }
    });
  }

  test("the class and the function of CYBERCUBE: every pair of pieces [CCW-SDK-5 CCW-SDK-8 CCW-SIG-12]", () => {
    const webhooks = new CybercubeWebhooks(secret);
    for (const signature of [...pieces, undefined]) {
      for (const timestamp of [...pieces, undefined]) {
        assert.throws(() => webhooks.constructEvent("{}", signature, timestamp), WebhookSignatureError);
        assert.equal(verifyWebhookSignature("{}", signature, timestamp, secret).valid, false);
      }
    }
  });

  test("a receiver answers each of them with 401 or 400, never with 5xx", async () => {
    const next = random(1);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
    for (const profile of profiles) {
      const h = harness({ profile });
      for (let i = 0; i < 100; i++) {
        const headers = new Headers();
        for (const field of fields) if (next() < 0.8) headers.set(field, pick(pieces));
        const answer = await h.receiver.fetch(new Request("https://hooks.example.com/in", { method: "POST", headers, body: "{}" }));
        assert.equal(answer.status, 401, profile.name);
      }
      assert.equal(h.deliveries.length, 0);
    }
  });

  test("authentic deliveries with any body reach the handler byte for byte", async () => {
    const h = harness();
    const bodies = [Buffer.alloc(0), Buffer.from([0, 255, 254, 10, 13]), Buffer.from("\ufeff{}"), Buffer.alloc(1 << 20, 120)];
    for (const body of bodies) assert.equal((await h.post(signEds(body, { contentType: "application/octet-stream" }))).status, 204);
    h.deliveries.forEach((d, i) => assert.ok(Buffer.from(d.body).equals(bodies[i]!)));
  });
});
