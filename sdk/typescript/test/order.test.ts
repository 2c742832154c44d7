/** Steps 1 to 4 of the fixed order: method, size, authenticity, freshness, key syntax; and what cannot be configured. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cybercube, eds, github, memoryStore, ojs, receiver, slack, standardWebhooks, stripe } from "@godwit/receiver";
import { edsKey, edsProfile, harness, spiedStore, standingClock } from "./support/harness.js";
import { asRequest, cybercubeEvent, ed25519Pair, otherSecret, secret, seconds, signCybercube, signEds, signGithub, signOjs, signSlack, signStandard, signStripe } from "./support/sign.js";

const key = '"8e03978e-40d5-43e8-bc93-6894a57f9324"';

describe("method and size", () => {
  test("another method is answered 405 with Allow, and the handler does not run [CCW-RCV-3]", async () => {
    const h = harness();
    for (const method of ["GET", "HEAD", "OPTIONS", "DELETE", "PATCH", "PUT"]) {
      const answer = await h.receiver.fetch(new Request("https://hooks.example.com/in", { method }));
      assert.equal(answer.status, 405, method);
      assert.equal(answer.headers.get("allow"), "POST");
    }
    const agreed = harness({ profile: edsProfile({ putAgreement: "https://example.com/agreement" }) });
    assert.equal((await agreed.post(signEds("{}", { method: "PUT" }))).status, 204);
    const get = await agreed.receiver.fetch(new Request("https://hooks.example.com/in"));
    assert.deepEqual([get.status, get.headers.get("allow")], [405, "POST, PUT"]);
    assert.equal(h.deliveries.length, 0);
    assert.equal(agreed.deliveries.length, 1);
  });

  test("GET with a key leaves no trace in the store; POST and PUT are enforced alike [IKH-DEF-2]", async () => {
    const store = spiedStore();
    const h = harness({ store, profile: edsProfile({ putAgreement: "doc" }) });
    await h.receiver.fetch(new Request("https://hooks.example.com/in", { headers: { "Idempotency-Key": key } }));
    assert.deepEqual(store.calls, []);
    for (const method of ["POST", "PUT"]) {
      assert.equal((await h.post(signEds("{}", { method, key: null }))).status, 400);
      const put = signEds("{}", { method, url: `https://hooks.example.com/${method}` });
      assert.equal((await h.post(put)).status, 204);
    }
  });

  test("a body above the limit is answered 413 and not read further", async () => {
    const h = harness({ limit: 1000 });
    assert.equal((await h.post(signEds("x".repeat(1000)))).status, 204);
    assert.equal((await h.post(signEds("x".repeat(1001)))).status, 413);
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(100));
      },
    });
    const request = new Request("https://hooks.example.com/in", { method: "POST", body: endless, duplex: "half" } as RequestInit);
    assert.equal((await h.receiver.fetch(request)).status, 413);
    assert.ok(pulled < 20, `${pulled} chunks read`);
    const declared = new Request("https://hooks.example.com/in", { method: "POST", body: "x", headers: { "content-length": "2000" } });
    assert.equal((await h.receiver.fetch(declared)).status, 413);
    assert.equal(h.deliveries.length, 1);
  });

  test("early data is refused unless freshness is checked [EDS-SEC-RPL-8]", async () => {
    const dedupOnly = harness({ freshness: false });
    const early = signEds("{}", { headers: { "Early-Data": "1" } });
    assert.equal((await dedupOnly.post(early)).status, 425);
    assert.equal((await dedupOnly.receiver.fetch(asRequest(signEds("{}")), { earlyData: true })).status, 425);
    assert.equal(dedupOnly.deliveries.length, 0);
    const fresh = harness();
    assert.equal((await fresh.post(early)).status, 204);
    assert.equal((await fresh.post(early)).status, 401); // its replay
    assert.equal(fresh.deliveries.length, 1);
  });
});

describe("authentication", () => {
  const cases = {
    eds: { profile: edsProfile(), sign: () => signEds("{}"), signature: "Signature" },
    ojs: { profile: ojs({ secrets: secret }), sign: () => signOjs("{}"), signature: "X-OJS-Signature" },
    cybercube: { profile: cybercube({ secrets: secret }), sign: () => signCybercube(cybercubeEvent()), signature: "X-Webhook-Signature" },
    "standard-webhooks": { profile: standardWebhooks({ keys: secret }), sign: () => signStandard("{}"), signature: "webhook-signature" },
    github: { profile: github({ secrets: secret }), sign: () => signGithub("{}"), signature: "X-Hub-Signature-256" },
  };
  for (const [name, { profile, sign, signature }] of Object.entries(cases)) {
    test(`${name}: unsigned, foreign and changed requests get 401, the handler does not run, nothing is stored [EDS-SEC-THR-1 EDS-SEC-THR-3 EDS-SEC-AUT-1 EDS-SEC-AUT-3 CCW-RCV-1]`, async () => {
      const store = spiedStore();
      const h = harness({ profile, store });
      const good = sign();
      const { [signature]: proof, ...unsigned } = good.headers;
      const changed = Buffer.from(good.body);
      changed[0]! ^= 1;
      const broken = { ...good.headers, [signature]: proof!.replace(/[0-9a-f]/g, (c) => (c === "0" ? "1" : "0")) };
      for (const request of [
        { ...good, headers: unsigned },
        { ...good, headers: broken },
        { ...good, body: changed },
      ]) {
        const answer = await h.post(request);
        assert.equal(answer.status, 401);
        assert.ok(answer.headers.get("www-authenticate"));
      }
      assert.equal(h.deliveries.length, 0);
      assert.deepEqual(store.calls, []);
      // One that proved itself does not vouch for the next.
      assert.ok((await h.post(sign())).ok);
      assert.equal((await h.post({ ...sign(), headers: unsigned })).status, 401);
      assert.equal(h.deliveries.length, 1);
    });
  }

  test("eds: key, type, time, method and address are signed, too [EDS-SEC-THR-3]", async () => {
    const h = harness();
    const good = signEds("{}");
    for (const [field, value] of [
      ["Idempotency-Key", key],
      ["Content-Type", "text/plain"],
      ["Signature-Input", good.headers["Signature-Input"]!.replace(/created=\d+/, `created=${seconds() - 10}`)],
    ] as const) {
      assert.equal((await h.post({ ...good, headers: { ...good.headers, [field]: value } })).status, 401, field);
    }
    assert.equal((await h.post({ ...good, url: "https://hooks.example.com/other" })).status, 401);
    assert.equal(h.deliveries.length, 0);
  });

  test("eds: what has to be signed is demanded; unknown keys and other algorithms are refused", async () => {
    const h = harness();
    const reasons: string[] = [];
    for (const request of [
      signEds("{}", { components: ["@method", "@target-uri", "content-type", "idempotency-key"] }),
      signEds("{}", { nonce: null }),
      signEds("{}", { created: null }),
      signEds("{}", { keyId: "nobody" }),
      signEds("{}", { alg: "ed25519" }),
      signEds("{}", { secret: Buffer.alloc(32) }),
    ]) {
      assert.equal((await h.post(request)).status, 401);
      reasons.push(h.log.failures.at(-1)!.reason);
    }
    assert.deepEqual(reasons, ["missing-component", "missing-component", "missing-component", "unknown-key", "algorithm-mismatch", "mismatch"]);
  });

  test("eds: HMAC and Ed25519; several signatures, of which one is good, are enough [EDS-SEC-AUT-2]", async () => {
    const { publicKey, privateKey } = ed25519Pair();
    const h = harness({ profile: eds({ keys: [edsKey, { id: "ed", principal: "orders", publicKey }] }) });
    assert.equal((await h.post(signEds("{}", { keyId: "ed", privateKey, alg: "ed25519" }))).status, 204);
    const good = signEds("{}", { alg: "hmac-sha256" });
    const two = {
      ...good.headers,
      "Signature-Input": `other=("date");keyid="x", broken=1, ${good.headers["Signature-Input"]}`,
      Signature: `other=:AAAA:, ${good.headers["Signature"]}`,
    };
    assert.equal((await h.post({ ...good, headers: two })).status, 204);
    assert.equal(h.deliveries.length, 2);
  });

  test("eds: only fields that are signed tell about the event", async () => {
    const h = harness();
    await h.post(signEds("{}", { eventType: "order.paid" }));
    await h.post(signEds("{}", { headers: { "Godwit-Event-Type": "forged" } }));
    assert.deepEqual(h.deliveries.map((d) => d.eventType), ["order.paid", ""]);
  });

  test("keys may come from a lookup; one that fails is our failure, not the sender's", async () => {
    const found = harness({ profile: eds({ keyById: async (id) => (id === "key-1" ? edsKey : undefined) }) });
    assert.equal((await found.post(signEds("{}"))).status, 204);
    assert.equal((await found.post(signEds("{}", { keyId: "nobody" }))).status, 401);
    const down = harness({ profile: eds({ keyById: () => Promise.reject(new Error("down")) }) });
    const answer = await down.post(signEds("{}"));
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
  });

  test("a receiver without a way to authenticate cannot be made [EDS-KEY-7]", () => {
    assert.throws(() => eds({}), /key is required/);
    assert.throws(() => ojs({ secrets: [] }), /secret is required/);
    assert.throws(() => ojs({ secrets: [""] }), /secret is required/);
    assert.throws(() => cybercube({ secrets: undefined as never }), /secret is required/);
    assert.throws(() => standardWebhooks({ keys: "whsec_***" }), /not base64/);
    assert.throws(() => receiver({ handler: () => undefined } as never), /profile is required/);
  });

  test("the principal is configured, never what a payload or an unsigned header claims; rotation keeps it [EDS-KEY-6]", async () => {
    const body = '{"source":"orders"}';
    const theirs = Buffer.alloc(32, 7);
    const h = harness({
      profile: eds({
        keys: [edsKey, { id: "key-2", principal: "orders", secret: Buffer.alloc(32, 2) }, { id: "key-3", principal: "others", secret: theirs }],
      }),
    });
    await h.post(signEds(body, { key }));
    await h.post(signEds(body, { key, keyId: "key-3", secret: theirs, headers: { "X-Source": "orders" } }));
    assert.deepEqual(h.deliveries.map((d) => d.principal), ["orders", "others"]);
    const rotated = await h.post(signEds(body, { key, keyId: "key-2", secret: Buffer.alloc(32, 2) }));
    assert.equal(rotated.headers.get("idempotency-replayed"), "true");
    assert.equal(h.deliveries.length, 2);
  });

  test("Slack's challenge is answered when it is authentic, and only then [EDS-SEC-AUT-3]", async () => {
    const h = harness({ profile: slack({ secrets: secret }) });
    const body = '{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}';
    const good = signSlack(body);
    assert.equal(await (await h.post(good)).text(), JSON.parse(body).challenge);
    const forged = await h.post({ ...good, headers: { ...good.headers, "X-Slack-Signature": `v0=${"0".repeat(64)}` } });
    assert.equal(forged.status, 401);
    assert.ok(!(await forged.text()).includes("3eZbrw1a"));
    assert.equal(h.deliveries.length, 0);
  });
});

describe("freshness", () => {
  test("eds: 300 s pass either way, 301 s do not; a repeated nonce does not; a late retry signed anew does [EDS-SEC-RPL-4]", async () => {
    const clock = standingClock();
    const now = Math.floor(clock() / 1000);
    const h = harness({ clock });
    for (const [offset, status] of [[-300, 204], [300, 204], [-301, 401], [301, 401]] as const) {
      assert.equal((await h.post(signEds("{}", { at: now + offset }))).status, status, String(offset));
    }
    const first = signEds("{}", { key, at: now });
    assert.equal((await h.post(first)).status, 204);
    assert.equal((await h.post(signEds("{}", { key, at: now, nonce: /nonce="([^"]+)"/.exec(first.headers["Signature-Input"]!)![1]! }))).status, 401);
    assert.equal(h.log.failures.at(-1)!.reason, "replayed");
    clock.advance(7200);
    const retry = await h.post(signEds("{}", { key, at: now + 7200 }));
    assert.deepEqual([retry.status, retry.headers.get("idempotency-replayed")], [204, "true"]);
  });

  test("a captured request is good once, within the freshness window and after it, within the dedup window and after it [EDS-SEC-THR-2 EDS-SEC-RPL-1]", async () => {
    const clock = standingClock();
    const h = harness({ clock });
    const captured = signEds("{}", { at: Math.floor(clock() / 1000) });
    await h.post(captured);
    for (const later of [1, 299, 3600, 31 * 86400]) {
      clock.advance(later);
      assert.equal((await h.post(captured)).status, 401);
    }
    assert.equal(h.deliveries.length, 1);
    assert.deepEqual(h.log.warnings.filter((w) => w.includes("replay")), []);
  });

  test("the tolerance is configurable, and 0 is honoured [CCW-RCV-2]", async () => {
    const clock = standingClock();
    const now = Math.floor(clock() / 1000);
    const h = harness({ profile: cybercube({ secrets: secret }), clock, freshness: { tolerance: 0 } });
    assert.equal((await h.post(signCybercube(cybercubeEvent(), { at: now }))).status, 200);
    assert.equal((await h.post(signCybercube(cybercubeEvent(), { at: now - 1 }))).status, 401);
    const ten = harness({ profile: cybercube({ secrets: secret }), clock, freshness: { tolerance: 10 } });
    assert.equal((await ten.post(signCybercube(cybercubeEvent(), { at: now - 10 }))).status, 200);
    assert.equal((await ten.post(signCybercube(cybercubeEvent(), { at: now - 11 }))).status, 401);
  });

  test("without deduplication freshness is required, and an exact replay gets 401 [EDS-SEC-RPL-2 EDS-SEC-RPL-6 EDS-DUP-1]", async () => {
    const handler = (): void => undefined;
    assert.throws(() => receiver({ profile: edsProfile(), dedup: false, freshness: false, handler }), /signed time is required/);
    assert.throws(() => receiver({ profile: github({ secrets: secret }), dedup: false, handler }), /signed time is required/);
    for (const [profile, sign] of [
      [edsProfile(), (): ReturnType<typeof signEds> => signEds("{}", { key })],
      [stripe({ secrets: secret }), () => signStripe('{"id":"evt_1"}')],
      [slack({ secrets: secret }), () => signSlack('{"event_id":"Ev1"}')],
      [standardWebhooks({ keys: secret }), () => signStandard("{}", { id: "msg_1" })],
    ] as const) {
      const clock = standingClock();
      const h = harness({ profile, dedup: false, clock });
      const captured = sign();
      assert.ok((await h.post(captured)).ok);
      assert.equal((await h.post(captured)).status, 401, profile.name);
      assert.equal(h.deliveries.length, 1);
      // A retry is signed anew, and no key is remembered: it runs again.
      if (profile.name === "eds") {
        assert.ok((await h.post(sign())).ok);
        assert.equal(h.deliveries.length, 2);
      }
    }
  });

  test("ojs and cybercube are always deduplicated (CT-32)", () => {
    for (const profile of [ojs({ secrets: secret }), cybercube({ secrets: secret })]) {
      assert.throws(() => receiver({ profile, dedup: false, handler: () => undefined }), /always deduplicated/);
    }
  });

  test("deduplication alone is warned of when the receiver is made; there, a replay after the window is processed [EDS-SEC-RPL-5 EDS-SEC-RPL-3]", async () => {
    const clock = standingClock();
    for (const options of [{ freshness: false as const }, { profile: github({ secrets: secret }) }]) {
      const h = harness({ ...options, clock, dedup: { window: 86400 } });
      assert.ok(h.log.warnings.some((w) => w.includes("EDS-SEC-RPL-5")));
      const captured = options.profile ? signGithub("{}") : signEds("{}");
      for (const [wait, runs] of [[0, 1], [86399, 1], [1, 2]] as const) {
        clock.advance(wait);
        assert.ok((await h.post(captured)).ok);
        assert.equal(h.deliveries.length, runs);
      }
    }
    assert.deepEqual(harness({ store: memoryStore() }).log.warnings, []);
  });

  test("a nonce store that fails is answered 503, not let through [EDS-SEC-RPL-3]", async () => {
    const h = harness({ store: spiedStore({ remember: true }) });
    assert.equal((await h.post(signEds("{}"))).status, 503);
    assert.equal(h.deliveries.length, 0);
  });
});

describe("key syntax", () => {
  const docs = "/docs/idempotency";
  const link = `<${docs}>; rel="describedby"; type="text/html"`;

  async function problem(answer: Response): Promise<{ type: string; title: string; status: number; detail: string }> {
    assert.equal(answer.headers.get("content-type"), "application/problem+json");
    return (await answer.json()) as never;
  }

  test("a missing key is answered 400 with the documentation in body and Link, over and over [IKH-ERR-1 IKH-ERR-2 IKH-ERR-7 EDS-PRB-1 IKH-DEF-1 IKH-REG-1]", async () => {
    const store = spiedStore();
    const h = harness({ store });
    for (let i = 0; i < 5; i++) {
      const unkeyed = signEds('{"idempotency_key":"8e03978e-40d5-43e8-bc93-6894a57f9324"}', {
        key: null,
        url: `https://hooks.example.com/in?Idempotency-Key=${encodeURIComponent(key)}`,
        headers: { "X-Idempotency-Key": key, "PayPal-Request-Id": key },
      });
      const answer = await h.post(unkeyed);
      assert.equal(answer.status, 400);
      assert.equal(answer.headers.get("link"), link);
      const body = await problem(answer);
      assert.deepEqual([body.type, body.status], [`${docs}#key-missing`, 400]);
      assert.ok(body.title && body.detail);
    }
    assert.equal(h.deliveries.length, 0);
    assert.ok(!store.calls.includes("reserve"));
    const page = await h.receiver.fetch(new Request(`https://hooks.example.com${docs}`));
    assert.deepEqual([page.status, page.headers.get("content-type")], [200, "text/html; charset=utf-8"]);
  });

  test("a key that was taken away from a signed request, or never signed, is no missing key but a forgery", async () => {
    const h = harness();
    const { "Idempotency-Key": _, ...stripped } = signEds("{}").headers;
    assert.equal((await h.post({ ...signEds("{}"), headers: stripped })).status, 401);
    const added = signEds("{}", { key: null });
    assert.equal((await h.post({ ...added, headers: { ...added.headers, "Idempotency-Key": key } })).status, 401);
    assert.deepEqual(h.log.failures.map((f) => f.reason), ["missing-component", "missing-component"]);
    assert.equal(h.deliveries.length, 0);
  });

  test("anything but one String is answered 400; handler and key store are not touched [IKH-SYN-2 IKH-SYN-3 IKH-SYN-5 IKH-SEC-5 EDS-KEY-2]", async () => {
    const store = spiedStore();
    const h = harness({ store });
    const uuid = "8e03978e-40d5-43e8-bc93-6894a57f9324";
    for (const bad of [
      "abcdefghijklmnop-def", "1234567890123456", "123", "1.5", "?1", ":aGkgdGhlcmUgZnJpZW5k:", '("aaaaaaaaaaaaaaaa")', uuid,
      `"${uuid}`, `"${uuid}\\n"`, `"${uuid}"b`, `"${uuid}\t"`, `"${uuid}", "${uuid}"`, "",
    ]) {
      const answer = await h.post(signEds("{}", { key: bad }));
      assert.equal(answer.status, 400, bad);
      const { type } = await problem(answer);
      assert.ok(type === `${docs}#key-malformed` || type === `${docs}#key-length`, `${bad}: ${type}`);
    }
    // What is beyond ASCII cannot even be signed.
    assert.equal((await h.post(signEds("{}", { key: `"${uuid}\u00e9"` }))).status, 401);
    assert.equal(h.deliveries.length, 0);
    assert.ok(!store.calls.includes("reserve"));
    for (const good of [`"${uuid} x"`, `"${uuid}\\"b"`, `"${uuid}\\\\b"`, ` "${uuid}" `, `"${uuid}";v=1`, '"clkyoesmbgybucifusbbtdsbohtyuuwz"']) {
      assert.equal((await h.post(signEds("{}", { key: good, url: `https://hooks.example.com/${encodeURIComponent(good)}` }))).status, 204, good);
    }
  });

  test("the published length is kept to, at every edge; the UUID and the random string of the draft pass [IKH-SEC-1 IKH-SEC-4 IKH-SYN-6 IKH-SYN-7]", async () => {
    const h = harness();
    for (const [length, status] of [[0, 400], [15, 400], [16, 204], [255, 204], [256, 400]] as const) {
      assert.equal((await h.post(signEds("{}", { key: `"${"k".repeat(length)}"` }))).status, status, String(length));
    }
    assert.match(h.receiver.documentation(), /16 to 255 printable ASCII characters/);
    const wider = harness({ key: { minLength: 1, maxLength: 1024 } });
    assert.equal((await wider.post(signEds("{}", { key: `"${"k".repeat(1024)}"` }))).status, 204);
    assert.match(wider.receiver.documentation(), /1 to 1024 printable/);
    for (const sample of [key, '"clkyoesmbgybucifusbbtdsbohtyuuwz"']) assert.equal((await h.post(signEds("{}", { key: sample }))).status, 204);
  });

  test("keys are opaque: what looks like an injection is a key like any other [IKH-SEC-2]", async () => {
    const h = harness({ key: { minLength: 1 } });
    const keys = ["' OR 1=1 --", "../../etc/passwd", 'a"b', "%00", "{{7*7}}", "__proto__", "constructor"];
    for (let turn = 0; turn < 2; turn++) {
      for (const text of keys) {
        const answer = await h.post(signEds("{}", { key: `"${text.replace(/["\\]/g, "\\$&")}"` }));
        assert.deepEqual([answer.status, answer.headers.get("idempotency-replayed")], [204, turn === 0 ? null : "true"], text);
      }
    }
    assert.deepEqual(h.deliveries.map((d) => d.key), keys);
  });

  test("bare keys are taken where they were asked for, and equal their quoted form", async () => {
    const h = harness({ key: { lenient: true } });
    assert.equal((await h.post(signEds("{}", { key: key.slice(1, -1) }))).status, 204);
    assert.equal((await h.post(signEds("{}", { key }))).headers.get("idempotency-replayed"), "true");
    assert.equal(h.deliveries.length, 1);
  });

  test("authentication comes before the key: without either it is 401", async () => {
    const h = harness();
    assert.equal((await h.receiver.fetch(new Request("https://hooks.example.com/in", { method: "POST", body: "{}" }))).status, 401);
  });

  test("other dialects: a missing key is answered 400", async () => {
    const noDelivery = signOjs("{}");
    delete noDelivery.headers["X-OJS-Delivery-ID"];
    assert.equal((await harness({ profile: ojs({ secrets: secret }) }).post(noDelivery)).status, 400);
    assert.equal((await harness({ profile: cybercube({ secrets: secret }) }).post(signCybercube('{"type":"a.b"}'))).status, 400);
    assert.equal((await harness({ profile: cybercube({ secrets: secret }) }).post(signCybercube("{not json"))).status, 400);
    assert.equal((await harness({ profile: stripe({ secrets: secret }) }).post(signOjs("{}"))).status, 401);
  });
});

describe("the page that states the policy", () => {
  test("it tells format, scope, window, fingerprint and errors of the running configuration, without credentials [IKH-RSP-3 IKH-RSP-4 IKH-EXP-2 IKH-SEC-4]", async () => {
    const h = harness({ dedup: { window: 48 * 3600 }, docsPath: "/policy" });
    const page = await h.receiver.fetch(new Request("https://hooks.example.com/policy"));
    assert.equal(page.status, 200);
    const text = await page.text();
    for (const wanted of [
      /16 to 255 printable ASCII/,
      /per authenticated producer and endpoint URI/,
      /48 hours \(172800 seconds\) after the first request with it has completed/,
      /Fingerprint<\/dt><dd>on/,
      /id="key-missing"><td>400/,
      /id="key-reused"><td>422/,
      /id="in-progress"><td>503/,
    ]) assert.match(text, wanted);
    const api = harness({ api: true, dedup: { fingerprint: false } }).receiver.documentation();
    assert.match(api, /id="in-progress"><td>409/);
    assert.match(api, /Fingerprint<\/dt><dd>off/);
    assert.match(api, /720 hours/);
    const head = await h.receiver.fetch(new Request("https://hooks.example.com/policy", { method: "HEAD" }));
    assert.deepEqual([head.status, await head.text()], [200, ""]);
  });

  test("errors link to it where it is published", async () => {
    const h = harness({ docsUrl: "https://docs.example.com/hooks" });
    const answer = await h.post(signEds("{}", { key: "x" }));
    assert.equal(answer.headers.get("link"), '<https://docs.example.com/hooks>; rel="describedby"; type="text/html"');
    assert.equal(((await answer.json()) as { type: string }).type, "https://docs.example.com/hooks#key-malformed");
  });
});

describe("what is told", () => {
  test("every request is a receipt; a failure counts, with address and cleaned headers [CCW-RCV-9 CCW-RCV-10 CCW-RCV-11 CCW-RCV-14]", async () => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const forged = signCybercube(cybercubeEvent(), { secrets: [otherSecret], headers: { Authorization: "Bearer s3cret", Cookie: "s=1", "X-Api-Key": "k3y" } });
    for (let i = 0; i < 3; i++) {
      const answer = await h.receiver.fetch(asRequest(forged), { ip: "203.0.113.9" });
      assert.deepEqual([answer.status, await answer.json()], [401, { error: "Invalid signature" }]);
    }
    assert.deepEqual(h.log.counts, Array(3).fill("webhook.verification.failed"));
    const failure = h.log.failures.at(-1)!;
    assert.deepEqual([failure.error, failure.reason, failure.ip, failure.recent], ["Signature mismatch", "mismatch", "203.0.113.9", 3]);
    assert.equal(failure.headers["x-webhook-timestamp"], forged.headers["X-Webhook-Timestamp"]);
    const told = JSON.stringify(h.log);
    for (const hidden of [forged.headers["X-Webhook-Signature"]!, "s3cret", "s=1", "k3y", secret, otherSecret]) assert.ok(!told.includes(hidden), hidden);
    await h.post(signCybercube(cybercubeEvent()));
    assert.equal(h.log.receipts.length, 4);
  });

  test("no hook and no error gets a payload or a secret [EDS-SEC-CNF-2]", async () => {
    const marker = "MARKER-4711";
    const h = harness({ handle: (d) => { if (d.attempt !== 99) throw new Error("boom"); } });
    await h.post(signEds(`{"m":"${marker}"}`));
    await h.post(signEds(`{"m":"${marker}"}`, { secret: Buffer.alloc(32) }));
    await h.post(signEds(`{"m":"${marker}"}`, { key }));
    await h.post(signEds(`{"m":"${marker}2"}`, { key }));
    const told = JSON.stringify(h.log, (_, value: unknown) => (value instanceof Error ? `${value.message} ${value.stack}` : value));
    assert.ok(told.length > 500);
    assert.ok(!told.includes(marker) && !told.includes(edsKey.secret as string));
  });

  test("a hook that throws changes nothing", async () => {
    const broken = (): never => {
      throw new Error("hook");
    };
    const hooks = { onReceipt: broken, onResult: broken, onDuplicate: broken, onVerificationFailure: broken, count: broken, onWarning: broken, onError: broken };
    const h = harness({ hooks });
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.equal((await h.post(signEds("{}", { secret: Buffer.alloc(16) }))).status, 401);
  });
});

describe("what cannot be configured", () => {
  const handler = (): void => undefined;
  test("a window below the floor needs an agreement; the default is 30 days [EDS-DUP-5 CCW-IDM-9]", () => {
    const make = (profile = edsProfile(), dedup = {}): unknown => receiver({ profile, dedup, handler });
    assert.throws(() => make(edsProfile(), { window: 86399 }), /floor of eds/);
    assert.doesNotThrow(() => make(edsProfile(), { window: 86400 }));
    assert.doesNotThrow(() => make(edsProfile(), { window: 3600, agreement: "https://example.com/a" }));
    assert.throws(() => make(cybercube({ secrets: secret }), { window: 7 * 86400 - 1 }), /floor of cybercube/);
    assert.doesNotThrow(() => make(cybercube({ secrets: secret }), { window: 7 * 86400 }));
    assert.match(receiver({ profile: edsProfile(), handler }).documentation(), /2592000 seconds/);
  });

  test("neither handler nor inbox, both, a lease shorter than the handler, nonsense", () => {
    const profile = edsProfile();
    assert.throws(() => receiver({ profile }), /either a handler or an inbox/);
    assert.throws(() => receiver({ profile, handler, inbox: { enqueue: async () => undefined } }), /either a handler or an inbox/);
    assert.throws(() => receiver({ profile, handler, timeout: 60, dedup: { lease: 60 } }), /longer than timeout/);
    assert.throws(() => receiver({ profile, handler, limit: 0 }), /limit/);
    assert.throws(() => receiver({ profile, handler, freshness: { tolerance: -1 } }), /tolerance/);
    assert.throws(() => receiver({ profile, handler, publicOrigin: "https://a.example/path" }), /publicOrigin/);
  });
});
