/** Bounds: of time that a store may take, of what is remembered, of what can be configured. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cybercube, CybercubeWebhooks, eds, memoryStore, receiver, standardWebhooks, verify, verifyWebhookSignature, type Store } from "@godwit/receiver";
import { digestOf, scopeOf } from "../dist/key.js";
import { edsKey, edsProfile, gate, harness, spiedStore, standingClock } from "./support/harness.js";
import { cybercubeEvent, secret, seconds, signCybercube, signEds, signStandard } from "./support/sign.js";

const key = '"8e03978e-40d5-43e8-bc93-6894a57f9324"';
const never = (): Promise<never> => new Promise(() => undefined);

/** A store of which some methods are others. */
function store(changed: Partial<Store>): Store {
  const inner = memoryStore();
  return {
    reserve: (r) => inner.reserve(r),
    complete: (r) => inner.complete(r),
    release: (s, t) => inner.release(s, t),
    remember: (v, u, n) => inner.remember(v, u, n),
    purge: (n, l) => inner.purge(n, l),
    ...changed,
  };
}

describe("a store that does not answer", () => {
  test("is a store that is down: 503, and the handler does not run [EDS-SEC-RPL-3]", async () => {
    for (const hanging of [{ reserve: never }, { remember: never }, { reserve: (): never => { throw new Error("at once"); } }]) {
      const h = harness({ store: store(hanging), storeTimeout: 0.02 });
      const answer = await h.post(signEds("{}"));
      assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
      assert.equal(h.deliveries.length, 0);
    }
  });

  test("and answers late: the key that nobody waits for any more is free", async () => {
    const inner = memoryStore();
    const open = gate();
    const freed = gate();
    let slow = true;
    const h = harness({
      storeTimeout: 0.02,
      store: store({
        reserve: async (r) => {
          if (slow) await open.opened;
          return inner.reserve(r);
        },
        complete: (r) => inner.complete(r),
        release: (s, t) => inner.release(s, t).then(() => freed.open()),
      }),
    });
    assert.equal((await h.post(signEds("{}", { key }))).status, 503);
    slow = false;
    open.open();
    await freed.opened;
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.equal(h.deliveries.length, 1);
  });

  test("after the handler: the effect has happened, so success is answered", async () => {
    const h = harness({ store: store({ complete: never, release: never }), storeTimeout: 0.02 });
    assert.equal((await h.post(signEds("{}"))).status, 204);
    assert.deepEqual(h.log.errors.map(([, where]) => where), ["keep result"]);
    const failing = harness({ store: store({ complete: never, release: never }), storeTimeout: 0.02, handle: () => { throw new Error("x"); } });
    assert.equal((await failing.post(signEds("{}"))).status, 500);
    assert.deepEqual(failing.log.errors.map(([, where]) => where), ["handler", "release key"]);
  });
});

describe("what is remembered", () => {
  test("the store is purged beside the requests, now and then, in small steps", async () => {
    const clock = standingClock();
    const steps: [number, number | undefined][] = [];
    const h = harness({ clock, store: store({ purge: async (now, limit) => (steps.push([now, limit]), 0) }) });
    const post = (): Promise<Response> => h.post(signEds("{}", { at: Math.floor(clock() / 1000) }));
    await post();
    clock.advance(59);
    await post();
    assert.deepEqual(steps, []);
    clock.advance(1);
    await Promise.all([post(), post(), post()]);
    assert.deepEqual(steps, [[clock(), 1000]]);
    const off = harness({ clock, purgeEvery: 0, store: store({ purge: () => assert.fail("it was turned off") }) });
    clock.advance(1000);
    await off.post(signEds("{}", { at: Math.floor(clock() / 1000) }));
    const down = harness({ clock, store: spiedStore({ purge: true }) });
    clock.advance(60);
    assert.equal((await down.post(signEds("{}", { at: Math.floor(clock() / 1000) }))).status, 204);
  });

  test("purge goes on until nothing is left", async () => {
    const left = [1000, 1000, 7, 1000, 1000, 3];
    const clock = standingClock();
    const h = harness({ clock, store: store({ purge: async () => left.shift()! }) });
    assert.equal(await h.receiver.purge(), 2007);
    clock.advance(60);
    const waits: Promise<unknown>[] = [];
    await h.receiver.fetch(new Request("https://hooks.example.com/"), { waitUntil: (work) => waits.push(work) });
    await Promise.all(waits);
    assert.deepEqual(left, []);
  });

  test("memory is bounded: what is new is refused, what is known is not forgotten, what has expired makes room", async () => {
    const full = memoryStore({ max: 2 });
    const reserve = (scope: string, now: number): Promise<{ state: string }> => full.reserve({ scope, fingerprint: "", token: "t", now, leaseUntil: now + 10 });
    await reserve("a", 0);
    await full.remember("n", 100, 0);
    await assert.rejects(reserve("b", 1), /full/);
    await assert.rejects(full.remember("m", 100, 1), /full/);
    assert.equal((await reserve("a", 1)).state, "in-progress");
    assert.equal(await full.remember("n", 100, 1), false);
    assert.equal((await reserve("b", 10)).state, "reserved");
    const h = harness({ store: memoryStore({ max: 2 }) });
    assert.equal((await h.post(signEds("{}"))).status, 204);
    assert.equal((await h.post(signEds("{}"))).status, 503); // a nonce and a key are two
    assert.equal(await memoryStore().purge(0, 1), 0);
  });

  test("nonces, and what stands in for them, have the digests of the other languages", async () => {
    const seen: string[] = [];
    const remembering = (): Store => store({ remember: async (value) => (seen.push(value), true) });
    const signed = signEds("{}", { nonce: "n-1", keyId: "key-1/src_a" });
    await harness({ store: remembering() }).post(signed);
    const at = seconds();
    await harness({ store: remembering(), dedup: false, profile: standardWebhooks({ keys: secret }) }).post(signStandard("{}", { id: "msg_1", at }));
    const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
    assert.deepEqual(seen, [
      await scopeOf("orders/src_a", "eds nonce", "key-1/src_a n-1"),
      await digestOf([bytes("standard-webhooks"), bytes("standard-webhooks once"), bytes(`msg_1 ${at}`), bytes("{}")]),
    ]);
  });

  test("a kept answer that makes no sense is a store that cannot be asked", async () => {
    for (const outcome of [{ status: 7, headers: {}, body: null }, { status: NaN, headers: {}, body: null }, { status: 200, headers: {}, body: "?" }]) {
      const h = harness({ store: store({ reserve: async () => ({ state: "completed", fingerprint: "", outcome }) }) });
      assert.equal((await h.post(signEds("{}"))).status, 503);
      assert.equal(h.deliveries.length, 0);
    }
  });

  test("a fingerprint of one's own is kept as a digest, however long it is", async () => {
    const seen: string[] = [];
    const inner = memoryStore();
    const h = harness({ store: store({ reserve: (r) => (seen.push(r.fingerprint), inner.reserve(r)) }), dedup: { fingerprint: (d) => `${d.text()}`.repeat(1000) } });
    await h.post(signEds('"secret text"'));
    assert.match(seen[0]!, /^[0-9a-f]{64}$/);
  });

  test("where an address is not signed, the spelling of the public origin does not matter", async () => {
    const shared = memoryStore();
    const event = cybercubeEvent();
    for (const publicOrigin of ["https://Hooks.Example.com:443", "https://hooks.example.com/"]) {
      const h = harness({ profile: cybercube({ secrets: secret }), store: shared, publicOrigin });
      assert.equal((await h.post(signCybercube(event))).headers.get("idempotency-replayed"), publicOrigin.includes("443") ? null : "true");
    }
  });
});

describe("what cannot be configured", () => {
  const handler = (): void => undefined;
  const make = (options: object): unknown => receiver({ profile: edsProfile(), handler, hooks: { onWarning: handler }, ...options });

  test("key formats without bound, times that no timer waits for, keys and components that make no sense", () => {
    for (const key of [{ minLength: 0 }, { maxLength: 1025 }, { minLength: 20, maxLength: 19 }, { maxLength: NaN }]) assert.throws(() => make({ key }), /1 to 1024/);
    assert.doesNotThrow(() => make({ key: { minLength: undefined, lenient: undefined } }));
    assert.throws(() => make({ timeout: 2 ** 31, dedup: { lease: 2 ** 33 } }), /timer/);
    assert.throws(() => make({ storeTimeout: 2 ** 31 }), /timer/);
    assert.throws(() => make({ storeTimeout: 0 }), /storeTimeout/);
    assert.throws(() => eds({ keys: [edsKey, edsKey] }), /there twice/);
    assert.throws(() => eds({ keys: [edsKey], requiredComponents: ["content-digest", "idempotency-key", "@nope"] }), /not known/);
    assert.throws(() => eds({ keys: [edsKey], requiredComponents: ["@method", "idempotency-key"] }), /content-digest is not among/);
    assert.throws(() => eds({ keys: [edsKey], requiredComponents: ["@method", "content-digest"] }), /idempotency-key is not among/);
  });

  test("where the address is not among what has to be signed, another one does not make another event", async () => {
    const components = ["content-digest", "idempotency-key"];
    const h = harness({ profile: edsProfile({ requiredComponents: components }), freshness: false });
    const signed = signEds("{}", { key, components });
    for (const query of ["", "?a=1", "?a=2"]) assert.equal((await h.post({ ...signed, url: signed.url + query })).status, 204);
    assert.equal(h.deliveries.length, 1);
  });

  test("the lease follows the handler's time unless it is given", async () => {
    const clock = standingClock();
    const leases: number[] = [];
    const inner = memoryStore();
    const watching = store({ reserve: (r) => (leases.push(r.leaseUntil - r.now), inner.reserve(r)) });
    for (const options of [{}, { timeout: 100 }, { timeout: 0.3, dedup: { lease: 1.0055 } }]) {
      await harness({ ...options, clock, store: watching }).post(signEds("{}", { at: Math.floor(clock() / 1000) }));
    }
    assert.deepEqual(leases, [60_000, 200_000, 1006]); // whole milliseconds: databases take no others
  });

  test("a tolerance that is no number does not let every time pass", async () => {
    const old = signCybercube(cybercubeEvent(), { at: seconds() - 9999 });
    for (const tolerance of [NaN, -1]) {
      assert.throws(() => new CybercubeWebhooks(secret).constructEvent(old.body, old.headers["X-Webhook-Signature"], old.headers["X-Webhook-Timestamp"], { tolerance }), RangeError);
      assert.throws(() => verifyWebhookSignature(old.body, old.headers["X-Webhook-Signature"], old.headers["X-Webhook-Timestamp"], secret, tolerance), RangeError);
      await assert.rejects(verify(cybercube({ secrets: secret }), old, { tolerance }), RangeError);
    }
  });

  test("a body that a parser has taken apart is the caller's error, no forgery", async () => {
    const { headers } = signCybercube("{}");
    const parsed = { id: "evt_1" } as unknown as string;
    const webhooks = new CybercubeWebhooks(secret);
    assert.throws(() => webhooks.constructEvent(parsed, headers["X-Webhook-Signature"], headers["X-Webhook-Timestamp"]), TypeError);
    await assert.rejects(verify(cybercube({ secrets: secret }), { headers, body: parsed }), TypeError);
    const shared = new Uint8Array(new SharedArrayBuffer(2));
    shared.set([0x7b, 0x7d]);
    assert.equal((await verify(cybercube({ secrets: secret }), { headers: signCybercube("{}").headers, body: shared })).principal, "cybercube");
  });
});
