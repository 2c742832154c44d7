/** Steps 5 to 8 of the fixed order: reserve, handle, keep, answer. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accepted, cybercube, eds, Fields, github, memoryStore, ojs, reject, retryAfter, shopify, standardWebhooks, stripe, type Result } from "@godwit/receiver";
import { scopeOf } from "../dist/key.js";
import { edsKey, edsProfile, gate, harness, spiedStore, standingClock } from "./support/harness.js";
import { cybercubeEvent, secret, signCybercube, signEds, signGithub, signOjs, signStandard, signStripe, type Signed } from "./support/sign.js";
import { createHmac } from "node:crypto";

const key = '"8e03978e-40d5-43e8-bc93-6894a57f9324"';

describe("repeats", () => {
  test("the first request runs and is answered as the handler says; repeats get that answer again [IKH-SCN-1 IKH-SCN-3 IKH-DEF-3 IKH-DEF-5 IKH-RSP-5]", async () => {
    const h = harness({
      handle: () => accepted({ order: 17 }, { status: 201, headers: { Location: "/orders/17", "Set-Cookie": "a=1", Date: "Thu, 01 Jan 1970 00:00:00 GMT" } }),
    });
    const first = await h.post(signEds("{}", { key }));
    assert.deepEqual([first.status, await first.text(), first.headers.get("location"), first.headers.get("idempotency-replayed")], [201, '{"order":17}', "/orders/17", null]);
    for (let i = 0; i < 9; i++) {
      const repeat = await h.post(signEds("{}", { key }));
      assert.equal(repeat.status, 201);
      assert.equal(await repeat.text(), '{"order":17}');
      assert.equal(repeat.headers.get("location"), "/orders/17");
      assert.equal(repeat.headers.get("content-type"), "application/json");
      assert.equal(repeat.headers.get("idempotency-replayed"), "true");
      assert.equal(repeat.headers.get("set-cookie"), null);
    }
    assert.equal(h.deliveries.length, 1);
    assert.deepEqual(h.log.duplicates.map((d) => d.kind), Array(9).fill("completed"));
    await h.post(signEds("{}", { key: '"another-key-of-enough-length"' }));
    assert.equal(h.deliveries.length, 2);
  });

  for (const [profile, sign] of [
    [edsProfile(), () => signEds("{}", { key })],
    [cybercube({ secrets: secret }), () => signCybercube(cybercubeEvent("evt_1"))],
  ] as const) {
    test(`${profile.name}: 50 at once run the handler once; the others are told to come again, and then get the answer [IKH-DEF-4 IKH-RSP-7 CCW-IDM-5]`, async () => {
      const open = gate();
      const ledger: string[] = [];
      const h = harness({
        profile,
        handle: async (d) => {
          await open.opened;
          ledger.push(d.key);
        },
      });
      const answers: Response[] = [];
      const refused = gate();
      const burst = Array.from({ length: 50 }, async () => {
        answers.push(await h.post(sign()));
        if (answers.length === 49) refused.open();
      });
      await refused.opened; // all but the one that runs
      for (const answer of answers) assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
      open.open();
      await Promise.all(burst);
      assert.ok(answers[49]!.ok);
      for (let i = 0; i < 50; i++) assert.ok((await h.post(sign())).ok);
      assert.equal(ledger.length, 1);
      assert.equal(h.deliveries.length, 1);
    });
  }

  test("as an API: a repeat of what is in progress gets 409 at once, with the documentation; it is neither queued nor run [IKH-SCN-4 IKH-ERR-5]", async () => {
    const open = gate();
    const running = gate();
    const h = harness({
      api: true,
      handle: async () => {
        running.open();
        await open.opened;
        return accepted("done");
      },
    });
    const first = h.post(signEds("{}", { key }));
    await running.opened;
    const second = await h.post(signEds("{}", { key }));
    assert.equal(second.status, 409);
    assert.match(second.headers.get("link")!, /rel="describedby"/);
    assert.equal(((await second.json()) as { type: string }).type, "/docs/idempotency#in-progress");
    open.open();
    assert.equal(await (await first).text(), "done");
    const third = await h.post(signEds("{}", { key }));
    assert.deepEqual([await third.text(), third.headers.get("idempotency-replayed")], ["done", "true"]);
    assert.equal(h.deliveries.length, 1);
  });

  test("another payload under the same key gets 422, completed or in progress; the first answer stays [IKH-SCN-2 IKH-ERR-3 IKH-ERR-4 IKH-ERR-7 IKH-FPR-1]", async () => {
    const open = gate();
    const running = gate();
    const h = harness({
      handle: async () => {
        running.open();
        await open.opened;
        return accepted("first");
      },
    });
    const first = h.post(signEds('{"a":1}', { key }));
    await running.opened;
    const during = await h.post(signEds('{"a":2}', { key }));
    assert.equal(during.status, 422);
    open.open();
    await first;
    for (let i = 0; i < 5; i++) {
      const other = await h.post(signEds('{"a":2}', { key }));
      assert.equal(other.status, 422);
      assert.match(other.headers.get("link")!, /^<\/docs\/idempotency>; rel="describedby"; type="text\/html"$/);
      assert.equal(((await other.json()) as { type: string }).type, "/docs/idempotency#key-reused");
    }
    assert.equal(await (await h.post(signEds('{"a":1}', { key }))).text(), "first");
    assert.equal((await h.post(signEds('{"a":1}', { key: '"another-key-of-enough-length"' }))).headers.get("idempotency-replayed"), null);
    assert.equal(h.deliveries.length, 2);
  });

  test("the fingerprint is ours: of the body, not of headers nor of what the sender claims; it may be chosen, or off [IKH-FPR-2 IKH-FPR-3 IKH-FPR-4 IKH-RSP-6 IKH-FPR-1]", async () => {
    const h = harness();
    await h.post(signEds('{"a":1,"b":1}', { key, headers: { traceparent: "00-1", "ce-id": "1" } }));
    assert.equal((await h.post(signEds('{"a":1,"b":1}', { key, headers: { traceparent: "00-2", "X-Fingerprint": "x" } }))).headers.get("idempotency-replayed"), "true");
    assert.equal((await h.post(signEds('{"a":1,"b":2}', { key }))).status, 422);
    assert.equal((await h.post(signEds('{"a":1,"b":1}', { key, contentType: "text/plain" }))).status, 422);

    const chosen = harness({ dedup: { fingerprint: (d) => String((d.json() as { a: number }).a) } });
    await chosen.post(signEds('{"a":1,"b":1}', { key }));
    assert.equal((await chosen.post(signEds('{"a":1,"b":2}', { key }))).status, 204);
    assert.equal((await chosen.post(signEds('{"a":2,"b":1}', { key }))).status, 422);

    const seen: string[] = [];
    const inner = memoryStore();
    const off = harness({ dedup: { fingerprint: false }, store: { ...bind(inner), reserve: (r) => (seen.push(r.fingerprint), inner.reserve(r)) } });
    await off.post(signEds('{"a":1}', { key }));
    assert.equal((await off.post(signEds('{"a":2}', { key }))).headers.get("idempotency-replayed"), "true");
    assert.deepEqual(seen, ["", ""]);
  });

  test("a key is scoped by producer and address: two by two, three are new [EDS-KEY-9 EDS-KEY-5 EDS-IDM-3 IKH-SEC-3 IKH-SEC-7]", async () => {
    const theirs = Buffer.alloc(32, 9);
    let n = 0;
    const h = harness({ profile: eds({ keys: [edsKey, { id: "b", principal: "B", secret: theirs }] }), handle: () => accepted(`answer ${++n}`) });
    const send = async (who: object, path: string): Promise<string> => (await h.post(signEds("{}", { key, url: `https://hooks.example.com${path}`, ...who }))).text();
    const other = { keyId: "b", secret: theirs };
    assert.deepEqual([await send({}, "/a"), await send({}, "/a"), await send({}, "/b"), await send(other, "/a"), await send(other, "/b")],
      ["answer 1", "answer 1", "answer 2", "answer 3", "answer 4"]);
    assert.equal(await send(other, "/a"), "answer 3");
  });

  test("a relay's key tells whose event it is", async () => {
    const h = harness({});
    for (const keyId of [edsKey.id, `${edsKey.id}/src_a`, `${edsKey.id}/src_b`]) {
      assert.equal((await h.post(signEds("{}", { key, keyId }))).status, 204);
    }
    assert.deepEqual(h.deliveries.map((d) => d.principal.slice(edsKey.principal.length)), ["", "/src_a", "/src_b"]);
    assert.equal((await h.post(signEds("{}", { key, keyId: `${edsKey.id}/src_a` }))).headers.get("idempotency-replayed"), "true");
    for (const keyId of [`${edsKey.id}/`, "nobody/src_a", `/${edsKey.id}`]) {
      assert.equal((await h.post(signEds("{}", { key, keyId }))).status, 401);
    }
  });

  test("where the address is not signed, a captured request is not new by another host or query [EDS-SEC-THR-2]", async () => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const captured = signCybercube(cybercubeEvent("evt_1"));
    // Servers route an escaped path as the plain one.
    for (const url of [captured.url, `${captured.url}?x=1`, captured.url.replace("//", "//other."), captured.url.replace("cyber", "%63%79ber"), captured.url.replace("cube", "%63ub%65")]) {
      assert.equal((await h.post({ ...captured, url })).status, 200);
    }
    assert.equal(h.deliveries.length, 1);
  });

  test("to spell a path in one way does not make two paths one", async () => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const paths = ["/hooks", "/hooks/", "/Hooks", "/hooks%3Fa", "/hooks%253Fa", "/hooks%2525", "/hooks%25", "/h%C3%BCte", "/h%BCte", "/hooks%zz"];
    for (let i = 0; i < 2; i++) {
      for (const path of paths) {
        const { method, headers, body } = signCybercube(cybercubeEvent("evt_1"));
        const incoming = { method, url: `https://hooks.example.com${path}`, fields: new Fields(headers), readBody: async () => new Uint8Array(body) };
        assert.equal((await h.receiver.receive(incoming)).status, 200);
      }
    }
    assert.equal(h.deliveries.length, paths.length);
  });

  test("principal, address and key do not run together in a store's id, and none of them is in it [EDS-KEY-5 IKH-SEC-6]", async () => {
    const ids = await Promise.all([["ab", "c", "d"], ["a", "bc", "d"], ["a", "b", "cd"], ["abc", "", "d"], ["a\0b", "c", "d"], ["a", "b\0c", "d"]].map(([p, u, k]) => scopeOf(p!, u!, k!)));
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^[0-9a-f]{64}$/);
  });

  test("the address is the sender's: behind a proxy the configured origin counts, and its spelling does not [EDS-KEY-8]", async () => {
    const h = harness({ publicOrigin: "https://Hooks.Example.com:443" });
    const inside = (signed: Signed): Signed => ({ ...signed, url: signed.url.replace(/^https:\/\/[^/]+/, "http://10.0.0.7:8080") });
    const sender = signEds("{}", { key, url: "https://Hooks.Example.com:443/in?x=1" });
    assert.equal((await h.post(inside(sender))).status, 204);
    const plain = harness();
    assert.equal((await plain.post(inside(signEds("{}", { key })))).status, 401);
    assert.equal((await plain.post(signEds("{}", { key, url: "https://hooks.example.com/in?x=1" }))).status, 204);
    assert.equal((await plain.post(signEds("{}", { key, url: "https://hooks.example.com/in?x=2" }))).headers.get("idempotency-replayed"), null);
  });

  test("the window is finite: just inside it a repeat is known, after it the key is new and the entry gone [EDS-DUP-4 EDS-DUP-5 IKH-EXP-1 IKH-EXP-2]", async () => {
    const clock = standingClock();
    const store = memoryStore();
    const h = harness({ clock, store, dedup: { window: 86400 } });
    const send = (): Promise<Response> => h.post(signEds("{}", { key, at: Math.floor(clock() / 1000) }));
    await send();
    clock.advance(86399);
    assert.equal((await send()).headers.get("idempotency-replayed"), "true");
    clock.advance(1);
    assert.equal((await send()).headers.get("idempotency-replayed"), null);
    assert.equal(h.deliveries.length, 2);
    clock.advance(86401);
    await h.receiver.purge();
    assert.equal(store.size, 0);
  });

  test("wiping the store costs a second run and nothing else [EDS-DUP-3]", async () => {
    let store = memoryStore();
    const h = harness({ store: { reserve: (r) => store.reserve(r), complete: (r) => store.complete(r), release: (s, t) => store.release(s, t), remember: (v, u, n) => store.remember(v, u, n), purge: (n) => store.purge(n) } });
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    store = memoryStore();
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.equal(h.deliveries.length, 2);
  });

  test("a CloudEvents id does not stand in for the key [EDS-CE-4]", async () => {
    const h = harness();
    await h.post(signEds("{}", { headers: { "ce-id": "1" } }));
    await h.post(signEds("{}", { headers: { "ce-id": "1" } }));
    assert.equal(h.deliveries.length, 2);
    await h.post(signEds("{}", { key, headers: { "ce-id": "1" } }));
    await h.post(signEds("{}", { key, headers: { "ce-id": "2" } }));
    assert.equal(h.deliveries.length, 3);
    const structured = "application/cloudevents+json";
    await h.post(signEds('{"id":"1"}', { key: '"structured-mode-key-1"', contentType: structured }));
    assert.equal((await h.post(signEds('{"id":"2"}', { key: '"structured-mode-key-1"', contentType: structured }))).status, 422);
  });
});

describe("dialects", () => {
  const hmac = (text: string): string => createHmac("sha256", secret).update(text).digest("hex");
  const shopifyRequest = (body: string): Signed => ({
    method: "POST",
    url: "https://hooks.example.com/shopify",
    headers: { "X-Shopify-Event-Id": "b54557e4", "X-Shopify-Hmac-Sha256": Buffer.from(hmac(body), "hex").toString("base64") },
    body: Buffer.from(body),
  });
  const event = cybercubeEvent("evt_01JHS0EXAMPLE00000000000AB");

  test("ojs: deduplicated by delivery id; both are answered 200 [OJS-DLV-19 OJS-DLV-20]", async () => {
    const h = harness({ profile: ojs({ secrets: secret }) });
    for (let i = 0; i < 2; i++) {
      const answer = await h.post(signOjs('{"id":"evt_1","type":"job.completed"}', { deliveryId: "del_1" }));
      assert.deepEqual([answer.status, await answer.json()], [200, { received: true }]);
    }
    await h.post(signOjs('{"id":"evt_1","type":"job.completed"}', { deliveryId: "del_2" }));
    assert.deepEqual(h.deliveries.map((d) => [d.key, d.eventId, d.eventType]), [["del_1", "evt_1", "job.completed"], ["del_2", "evt_1", "job.completed"]]);
  });

  test("cybercube: deduplicated by event id over attempts; seen events are answered 200 at once [CCW-IDM-1 CCW-IDM-2 CCW-RCV-5 CCW-RCV-18 CCW-RSP-14]", async () => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    for (let attempt = 1; attempt < 4; attempt++) {
      const answer = await h.post(signCybercube(event, { attempt }));
      assert.deepEqual([answer.status, await answer.json()], [200, { received: true, event_id: "evt_01JHS0EXAMPLE00000000000AB" }]);
    }
    assert.equal(h.deliveries.length, 1);
    assert.deepEqual([h.deliveries[0]!.eventType, h.deliveries[0]!.attempt], ["project.created", 1]);
  });

  test("cybercube: a lost acknowledgement, a timeout after processing, a retry and a replay are duplicates [CCW-IDM-11]", async () => {
    const clock = standingClock();
    const h = harness({ profile: cybercube({ secrets: secret }), clock });
    const at = (): number => Math.floor(clock() / 1000);
    void (await h.post(signCybercube(event, { at: at() })).then((answer) => answer.body?.cancel())); // the answer is lost
    for (const wait of [60, 300, 29 * 86400]) {
      clock.advance(wait);
      assert.equal((await h.post(signCybercube(event, { at: at() }))).headers.get("idempotency-replayed"), "true");
    }
    assert.equal(h.deliveries.length, 1);
  });

  test("cybercube: the minimal form of an event is enough; unknown types are the handler's to accept [CCW-EVT-32]", async () => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    assert.equal((await h.post(signCybercube('{"id":"evt_2","type":"a.b","created_at":"2026-01-17T12:00:00Z","data":{}}'))).status, 200);
    assert.deepEqual(h.deliveries[0]!.json(), { id: "evt_2", type: "a.b", created_at: "2026-01-17T12:00:00Z", data: {} });
  });

  test("standard-webhooks, github, stripe, shopify: each by its own key, answered 2xx", async () => {
    for (const [profile, sign, other] of [
      [standardWebhooks({ keys: secret }), () => signStandard("{}", { id: "msg_1" }), () => signStandard("{}", { id: "msg_2" })],
      [github({ secrets: secret }), () => signGithub("{}", { deliveryId: "g1" }), () => signGithub("{}", { deliveryId: "g2" })],
      [stripe({ secrets: secret }), () => signStripe('{"id":"evt_1"}'), () => signStripe('{"id":"evt_2"}')],
      [shopify({ secrets: secret }), () => shopifyRequest("{}"), () => ({ ...shopifyRequest("{}"), headers: { ...shopifyRequest("{}").headers, "X-Shopify-Event-Id": "c" } })],
    ] as const) {
      const h = harness({ profile });
      for (let i = 0; i < 3; i++) assert.ok((await h.post(sign())).ok, profile.name);
      assert.equal(h.deliveries.length, 1, profile.name);
      assert.ok((await h.post(other())).ok);
      assert.equal(h.deliveries.length, 2, profile.name);
    }
  });

  test("stripe: a repeat with another count of pending webhooks is a repeat, no misuse", async () => {
    const h = harness({ profile: stripe({ secrets: secret }) });
    await h.post(signStripe('{"id":"evt_1","pending_webhooks":2}'));
    assert.equal((await h.post(signStripe('{"id":"evt_1","pending_webhooks":1}'))).headers.get("idempotency-replayed"), "true");
    assert.equal(h.deliveries.length, 1);
  });
});

describe("results", () => {
  test("retryAfter: 503 or 429 with the wait, and the key is free: the retry runs and succeeds [EDS-DUP-9 EDS-RTY-2 EDS-RAF-1]", async () => {
    const results: Result[] = [retryAfter(7, "database is busy"), retryAfter(2.5, "slow down", 429), accepted()];
    let effects = 0;
    const h = harness({ handle: () => { const r = results.shift()!; if (r.kind === "accepted") effects++; return r; } });
    const first = await h.post(signEds("{}", { key }));
    assert.deepEqual([first.status, first.headers.get("retry-after")], [503, "7"]);
    const second = await h.post(signEds("{}", { key }));
    assert.deepEqual([second.status, second.headers.get("retry-after")], [429, "3"]);
    const third = await h.post(signEds("{}", { key }));
    assert.deepEqual([third.status, third.headers.get("retry-after")], [204, null]);
    assert.equal((await h.post(signEds("{}", { key }))).headers.get("idempotency-replayed"), "true");
    assert.deepEqual([effects, h.deliveries.length], [1, 3]);
  });

  test("Retry-After is on answers that ask to come again, and on no other [EDS-RAF-1]", async () => {
    const h = harness({ handle: (d) => (d.text() === "no" ? reject(422, "no") : accepted(undefined, { headers: { "Retry-After": "5" } })) });
    assert.equal((await h.post(signEds("yes"))).headers.get("retry-after"), null);
    assert.equal((await h.post(signEds("no"))).headers.get("retry-after"), null);
  });

  test("reject: the refusal is kept and repeated; with keep: accepted it is not [IKH-SCN-3 EDS-PRB-1]", async () => {
    const h = harness({ handle: () => reject(422, "order_id is empty") });
    for (let i = 0; i < 2; i++) {
      const answer = await h.post(signEds("{}", { key }));
      assert.equal(answer.status, 422);
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      assert.deepEqual(await answer.json(), { type: "/docs/idempotency#rejected", title: "Rejected", status: 422, detail: "order_id is empty" });
    }
    assert.equal(h.deliveries.length, 1);
    const redrive = harness({ dedup: { keep: "accepted" }, handle: () => reject(422, "no") });
    await redrive.post(signEds("{}", { key }));
    await redrive.post(signEds("{}", { key }));
    assert.equal(redrive.deliveries.length, 2);
  });

  test("a handler that throws is answered 500, and the key is free [EDS-DEF-3 CCW-IDM-4]", async () => {
    let calls = 0;
    const h = harness({
      profile: cybercube({ secrets: secret }),
      handle: () => {
        if (++calls === 1) throw new Error("boom");
        if (calls === 2) return Promise.reject(new TypeError("async boom"));
        return undefined;
      },
    });
    const event = cybercubeEvent();
    for (const status of [500, 500, 200, 200]) {
      const answer = await h.post(signCybercube(event));
      assert.equal(answer.status, status);
      if (status === 500) assert.deepEqual(await answer.json(), { error: "Internal error" });
    }
    assert.equal(calls, 3);
    assert.deepEqual(h.log.errors.map(([e, where]) => [(e as Error).message, where]), [["boom", "handler"], ["async boom", "handler"]]);
  });

  test("207 needs an agreement: without it the answer is 500 and it is logged [EDS-STA-207b]", async () => {
    const handle = (): Result => accepted("<multistatus/>", { status: 207 });
    const h = harness({ handle });
    assert.equal((await h.post(signEds("{}", { key }))).status, 500);
    assert.match(String(h.log.errors[0]![0]), /207 without an agreement/);
    assert.equal((await harness({ handle, multiStatusAgreement: "https://example.com/a" }).post(signEds("{}"))).status, 207);
  });

  test("results that make no sense are our failure, not an acknowledgement", async () => {
    for (const bad of [accepted(undefined, { status: 302 }), reject(500, "x"), reject(200, "x"), reject(429, "x"), retryAfter(-1), retryAfter(NaN), { kind: "done" }, 42]) {
      const h = harness({ handle: () => bad as Result });
      assert.equal((await h.post(signEds("{}"))).status, 500, JSON.stringify(bad));
    }
  });

  test("bodies: text, bytes, JSON; the profile's own where there is none; a long one is not kept", async () => {
    const answers: Result[] = [accepted("text"), accepted(Uint8Array.of(0, 255)), accepted({ a: 1 }), accepted(undefined, { status: 202 })];
    const h = harness({ profile: ojs({ secrets: secret }), handle: () => answers.shift() });
    const got = [];
    for (let i = 0; i < 4; i++) {
      const answer = await h.post(signOjs("{}"));
      got.push([answer.status, answer.headers.get("content-type"), Buffer.from(await answer.arrayBuffer()).toString("latin1")]);
    }
    assert.deepEqual(got, [
      [200, "text/plain; charset=utf-8", "text"],
      [200, "application/octet-stream", "\x00\xff"],
      [200, "application/json", '{"a":1}'],
      [202, "application/json", '{"received":true}'],
    ]);
    const long = harness({ handle: () => accepted("x".repeat(70_000)) });
    assert.equal((await (await long.post(signEds("{}", { key }))).text()).length, 70_000);
    const repeat = await long.post(signEds("{}", { key }));
    assert.deepEqual([repeat.status, await repeat.text()], [200, ""]);
  });

  test("validation refuses a payload after it proved itself, before the handler", async () => {
    const h = harness({ validate: (d) => (d.text() === "{}" ? "it is empty" : undefined) });
    assert.equal((await h.post(signEds("{}", { key }))).status, 400);
    assert.equal((await h.post(signEds('{"a":1}', { key }))).status, 204);
    assert.equal(h.deliveries.length, 1);
  });
});

describe("failures of ours", () => {
  test("a store that is down: 503 with Retry-After, and the handler does not run [EDS-SEC-RPL-3]", async () => {
    for (const api of [false, true]) {
      const h = harness({ store: spiedStore({ reserve: true }), api });
      const answer = await h.post(signEds("{}"));
      assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
      assert.equal(h.deliveries.length, 0);
      assert.equal(h.log.errors[0]![1], "reserve key");
    }
  });

  test("a result that cannot be kept: the effect has happened, so success is answered; a repeat waits for the lease", async () => {
    const clock = standingClock();
    const h = harness({ store: spiedStore({ complete: true }), clock });
    const send = (): Promise<Response> => h.post(signEds("{}", { key, at: Math.floor(clock() / 1000) }));
    assert.equal((await send()).status, 204);
    assert.equal(h.log.errors[0]![1], "keep result");
    assert.equal((await send()).status, 503);
    clock.advance(60);
    assert.equal((await send()).status, 204);
    assert.equal(h.deliveries.length, 2);
  });

  test("the result is kept before it is answered", async () => {
    const order: string[] = [];
    const inner = memoryStore();
    const store = { ...bind(inner), complete: async (r: Parameters<typeof inner.complete>[0]) => (order.push("kept"), inner.complete(r)) };
    const h = harness({ store, handle: () => void order.push("handled") });
    await h.post(signEds("{}")).then(() => order.push("answered"));
    assert.deepEqual(order, ["handled", "kept", "answered"]);
  });

  test("a key that cannot be freed is freed by the lease", async () => {
    const clock = standingClock();
    const h = harness({ store: spiedStore({ release: true }), clock, handle: () => retryAfter(1) });
    const send = (): Promise<Response> => h.post(signEds("{}", { key, at: Math.floor(clock() / 1000) }));
    assert.equal((await send()).status, 503);
    assert.equal(h.deliveries.length, 1);
    await send();
    assert.equal(h.deliveries.length, 1);
    clock.advance(60);
    await send();
    assert.equal(h.deliveries.length, 2);
  });

  test("a holder that died: its key is free when the lease ends, 60 s or, for cybercube, 5 min [IKH-EXP-3 CCW-IDM-6]", async () => {
    for (const [profile, sign, lease] of [
      [edsProfile(), (at: number) => signEds("{}", { key, at }), 60],
      [cybercube({ secrets: secret }), (at: number) => signCybercube(cybercubeEvent("evt_1"), { at }), 300],
    ] as const) {
      const clock = standingClock();
      const store = memoryStore();
      const dead = harness({ profile, store, clock, timeout: 0.01, handle: () => new Promise<void>(() => undefined) });
      const at = (): number => Math.floor(clock() / 1000);
      assert.equal((await dead.post(sign(at()))).status, 503); // it never ends
      const heir = harness({ profile, store, clock });
      clock.advance(lease - 1);
      assert.equal((await heir.post(sign(at()))).status, 503, profile.name);
      clock.advance(2);
      assert.ok((await heir.post(sign(at()))).ok, profile.name);
      assert.equal(heir.deliveries.length, 1);
    }
  });

  test("a handler that is late: 503, its signal is aborted, its key stays taken, and its result counts after all", async () => {
    const open = gate();
    const signals: AbortSignal[] = [];
    const waits: Promise<unknown>[] = [];
    const h = harness({
      timeout: 0.05,
      handle: async (_, { signal }) => {
        signals.push(signal);
        await open.opened;
        return accepted("late but done");
      },
    });
    const incoming = signEds("{}", { key });
    const answer = await h.receiver.fetch(new Request(incoming.url, { method: "POST", headers: incoming.headers, body: new Uint8Array(incoming.body) }), { waitUntil: (work) => waits.push(work) });
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
    assert.equal(signals[0]!.aborted, true);
    assert.equal((await h.post(signEds("{}", { key }))).status, 503);
    open.open();
    await Promise.all(waits);
    assert.equal(await (await h.post(signEds("{}", { key }))).text(), "late but done");
    assert.equal(h.deliveries.length, 1);
  });

  test("a holder whose lease ended keeps nothing and frees nothing", async () => {
    const store = memoryStore();
    const base = { scope: "s", fingerprint: "f", now: 0 };
    await store.reserve({ ...base, token: "old", leaseUntil: 10 });
    await store.reserve({ ...base, token: "new", now: 10, leaseUntil: 20 });
    const outcome = { status: 200, headers: {}, body: null };
    assert.equal(await store.complete({ scope: "s", fingerprint: "f", token: "old", outcome, now: 11, expiresAt: 100 }), false);
    await store.release("s", "old");
    assert.equal((await store.reserve({ ...base, token: "third", now: 12, leaseUntil: 30 })).state, "in-progress");
    assert.equal(await store.complete({ scope: "s", fingerprint: "f", token: "new", outcome, now: 12, expiresAt: 100 }), true);
  });
});

function bind(store: ReturnType<typeof memoryStore>): Omit<ReturnType<typeof memoryStore>, "size"> {
  return {
    reserve: (r) => store.reserve(r),
    complete: (r) => store.complete(r),
    release: (s, t) => store.release(s, t),
    remember: (v, u, n) => store.remember(v, u, n),
    purge: (n) => store.purge(n),
  };
}
