/** CYBERCUBE's own API: the class, the verify function, the processor, rate limits, source addresses. */
import assert from "node:assert/strict";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readdirSync, readFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import {
  cybercube,
  CybercubeWebhooks,
  isAllowedSource,
  memoryProcessedEvents,
  processedEventsSchema,
  processingAnswer,
  rateLimit,
  RateLimiter,
  redisProcessedEvents,
  signWebhook,
  sqlProcessedEvents,
  validateCybercubeEvent,
  verifyWebhookSignature,
  WebhookProcessor,
  WebhookSignatureError,
  type ProcessedEvents,
  type VerifyOptions,
  type WebhookEvent,
} from "@godwit/receiver";
import { hmacSha256, sha256 } from "../dist/crypto/sha256.js";
import { gate, harness, standingClock } from "./support/harness.js";
import { Postgres } from "./support/postgres.js";
import { openRedis } from "./support/redis.js";
import { cybercubeEvent, otherSecret, secret, signCybercube } from "./support/sign.js";
import { Sqlite } from "./support/sqlite.js";

const now = 1_737_100_000;
const clock = (): number => now * 1000;
const body = cybercubeEvent("evt_01JHS0EXAMPLE00000000000AB");
const mac = (text: string | Buffer, timestamp = now, key = secret): string =>
  `sha256=${createHmac("sha256", key).update(`${timestamp}.`).update(text).digest("hex")}`;

describe("CybercubeWebhooks", () => {
  const webhooks = new CybercubeWebhooks(secret, clock);

  test("a secret of another form is refused [CCW-SDK-1]", () => {
    for (const bad of ["x", "", undefined, [], [secret, "x"]]) {
      assert.throws(() => new CybercubeWebhooks(bad as string), { name: "Error", message: "Invalid webhook secret format" });
    }
  });

  test("constructEvent verifies and parses; text and Buffer are equal [CCW-SDK-2 CCW-SDK-7]", () => {
    const event: WebhookEvent = webhooks.constructEvent(body, mac(body), String(now));
    assert.deepEqual(event, JSON.parse(body));
    assert.deepEqual(webhooks.constructEvent(Buffer.from(body), mac(body), String(now)), event);
    const { id, type, api_version, created_at, data, account_id, livemode } = event;
    const typed: [string, string, string, string, object, string, boolean] = [id, type, api_version, created_at, data.object, account_id, livemode];
    assert.equal(typed.length, 7);
    assert.equal(data.previous_attributes, undefined);
  });

  test("the tolerance: 300 s by default, to be set, 0 honoured [CCW-SDK-3 CCW-SIG-10 CCW-SIG-11]", () => {
    const at = (timestamp: number, options?: { tolerance?: number }): unknown => webhooks.constructEvent(body, mac(body, timestamp), String(timestamp), options);
    for (const good of [now - 300, now + 300]) assert.ok(at(good));
    for (const bad of [now - 301, now + 301]) assert.throws(() => at(bad), { name: "WebhookSignatureError", message: "Timestamp outside tolerance" });
    assert.ok(at(now - 10, { tolerance: 10 }));
    assert.throws(() => at(now - 11, { tolerance: 10 }), WebhookSignatureError);
    assert.ok(at(now, { tolerance: 0 }));
    assert.throws(() => at(now - 1, { tolerance: 0 }), WebhookSignatureError);
    const named: VerifyOptions = { tolerance: 10 }; // by the name that the standard gives the type
    assert.throws(() => webhooks.constructEvent(body, mac(body, now - 11), String(now - 11), named), WebhookSignatureError);
  });

  const failures: [name: string, signature: unknown, timestamp: unknown, message: string][] = [
    ["another scheme", "md5=00", String(now), "Invalid signature format"],
    ["an empty signature", "", String(now), "Invalid signature format"],
    ["no signature", undefined, String(now), "Invalid signature format"],
    ["a bad prefix and an old time: format first", "x", String(now - 9999), "Invalid signature format"],
    ["a time that is no number", mac(body), "abc", "Invalid timestamp"],
    ["a time with more behind it", mac(body), "12x", "Invalid timestamp"],
    ["an empty time", mac(body), "", "Invalid timestamp"],
    ["no time", mac(body), undefined, "Invalid timestamp"],
    ["a bad time and a bad MAC: time first", "sha256=00", "abc", "Invalid timestamp"],
    ["an old time and a bad MAC: tolerance first", "sha256=00", String(now - 9999), "Timestamp outside tolerance"],
    ["a flipped digit", mac(body).replace(/.$/, (c) => (c === "0" ? "1" : "0")), String(now), "Signature mismatch"],
    ["short hex", "sha256=ab", String(now), "Signature mismatch"],
    ["no hex", "sha256=zz", String(now), "Signature mismatch"],
    ["no digits", "sha256=", String(now), "Signature mismatch"],
    ["an odd number of digits", mac(body).slice(0, -1), String(now), "Signature mismatch"],
    ["headers repeated", [mac(body), "x"], [String(now), String(now)], "Invalid timestamp"],
  ];
  for (const [name, signature, timestamp, message] of failures) {
    test(`${name}: ${message} [CCW-SDK-4 CCW-SDK-5 CCW-SDK-8 CCW-SIG-8 CCW-SIG-9 CCW-SIG-12 CCW-SIG-13 CCW-SIG-14]`, () => {
      assert.throws(
        () => webhooks.constructEvent(body, signature as string, timestamp as string),
        (error: unknown) => error instanceof WebhookSignatureError && error instanceof Error && error.name === "WebhookSignatureError" && error.message === message,
      );
      if (Array.isArray(signature)) return;
      const result = verifyWebhookSignature(body, signature as string, timestamp as string, secret, 300, clock);
      const inFunction = message === "Timestamp outside tolerance" ? "Timestamp outside tolerance window" : message;
      assert.deepEqual(result, { valid: false, error: inFunction });
    });
  }

  test("nothing is parsed before it is verified; what is verified and no JSON is another error [CCW-SDK-6]", () => {
    assert.throws(() => webhooks.constructEvent("{bad", mac("{other"), String(now)), WebhookSignatureError);
    assert.throws(() => webhooks.constructEvent("{bad", mac("{bad"), String(now)), (e) => !(e instanceof WebhookSignatureError) && e instanceof SyntaxError);
  });

  test("raw bytes count: spaces matter, serialised again fails, no UTF-8 is fine [CCW-SIG-15]", () => {
    const spaced = '{ "id" : "evt_1",\n "type": "a.b" }';
    assert.equal(verifyWebhookSignature(spaced, mac(spaced), String(now), secret, 300, clock).valid, true);
    assert.equal(verifyWebhookSignature(JSON.stringify(JSON.parse(spaced)), mac(spaced), String(now), secret, 300, clock).valid, false);
    const bytes = Buffer.from([0, 255, 254]);
    assert.equal(verifyWebhookSignature(bytes, mac(bytes), String(now), secret, 300, clock).valid, true);
  });

  test("several secrets and several signatures: one pair is enough [CCW-SDK-10 CCW-SEC-14]", () => {
    const dual = `${mac(body)},${mac(body, now, otherSecret)}`;
    for (const secrets of [secret, otherSecret, [otherSecret, secret]]) assert.ok(new CybercubeWebhooks(secrets, clock).constructEvent(body, dual, String(now)));
    for (const single of [mac(body), mac(body, now, otherSecret)]) assert.ok(new CybercubeWebhooks([secret, otherSecret], clock).constructEvent(body, single, String(now)));
    assert.throws(() => new CybercubeWebhooks("whsec_another", clock).constructEvent(body, dual, String(now)), WebhookSignatureError);
  });

  test("the minimal form parses [CCW-EVT-32]", () => {
    const minimal = '{"id":"evt_1","type":"a.b","created_at":"2026-01-17T12:00:00Z","data":{"object":{}}}';
    assert.equal(webhooks.constructEvent(minimal, mac(minimal), String(now)).id, "evt_1");
  });

  test("signatures of the reference sender are accepted, and ours by the reference verifier [CCW-SDK-13]", () => {
    // The document's sender and cheat-sheet verifier, as it prints them.
    const sign = (payload: string, key: string, timestamp: number): string => `sha256=${createHmac("sha256", key).update(`${timestamp}.${payload}`).digest("hex")}`;
    assert.ok(webhooks.constructEvent(body, sign(body, secret, now), String(now)));
    const ours = signWebhook(body, secret, now);
    const expected = "sha256=" + createHmac("sha256", secret).update(String(now) + "." + body).digest("hex");
    assert.ok(timingSafeEqual(Buffer.from(ours.slice(7), "hex"), Buffer.from(expected.slice(7), "hex")));
  });

  test("the handler of the standard's sample: 200, 401 with the message, 500 [CCW-SDK-9]", async () => {
    const handler = async (request: Request, work: (event: WebhookEvent) => void): Promise<Response> => {
      try {
        const raw = new Uint8Array(await request.arrayBuffer());
        work(webhooks.constructEvent(raw, request.headers.get("x-webhook-signature") ?? undefined, request.headers.get("x-webhook-timestamp") ?? undefined));
        return Response.json({ received: true });
      } catch (error) {
        if (error instanceof WebhookSignatureError) return Response.json({ error: error.message }, { status: 401 });
        return Response.json({ error: "Internal error" }, { status: 500 });
      }
    };
    const post = (signature: string): Request =>
      new Request("https://x.example/", { method: "POST", body, headers: { "x-webhook-signature": signature, "x-webhook-timestamp": String(now) } });
    const outcomes = [];
    for (const [signature, work] of [[mac(body), () => undefined], ["sha256=00", () => undefined], [mac(body), () => { throw new Error("x"); }]] as const) {
      const answer = await handler(post(signature), work);
      outcomes.push([answer.status, await answer.json()]);
    }
    assert.deepEqual(outcomes, [[200, { received: true }], [401, { error: "Signature mismatch" }], [500, { error: "Internal error" }]]);
  });

  test("our SHA-256 and HMAC are those of Node, at every length around a block", () => {
    for (let n = 0; n < 200; n++) {
      const bytes = Buffer.alloc(n, n);
      assert.deepEqual(Buffer.from(sha256(bytes)), createHash("sha256").update(bytes).digest());
      assert.deepEqual(Buffer.from(hmacSha256(bytes, bytes)), createHmac("sha256", bytes).update(bytes).digest());
    }
    const large = Buffer.alloc(1 << 20, 7);
    assert.deepEqual(Buffer.from(sha256(large)), createHash("sha256").update(large).digest());
  });

  test("no signature is compared with ==: MACs by a comparison of constant time, the rest by WebCrypto [CCW-SIG-17]", () => {
    const sources = readdirSync(new URL("../src/", import.meta.url), { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts"));
    for (const file of sources) {
      const source = readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8");
      assert.doesNotMatch(source, /(signature|\bmac|expected|received|digest)\)? *[!=]==? *(?!undefined|null|""|'|")[a-z]+/i, file);
    }
    assert.match(readFileSync(new URL("../src/cybercube/webhooks.ts", import.meta.url), "utf8"), /equalBytes\(bytes, received\)/);
    assert.match(readFileSync(new URL("../src/crypto/keys.ts", import.meta.url), "utf8"), /equalBytes\(mac, signature\)/);
  });
});

describe("WebhookProcessor", async () => {
  const dir = mkdtempSync(join(tmpdir(), "godwit-processed-"));
  const schema = `processed_ts_${process.pid}`;
  const sqlite = new Sqlite(join(dir, "events.db"));
  const postgres = await Postgres.connect(schema);
  const redis = await openRedis();
  after(async () => {
    await postgres.query(`DROP SCHEMA ${schema} CASCADE`, []);
    await Promise.all([sqlite.close(), postgres.close(), redis.close()]);
    rmSync(dir, { recursive: true, force: true });
  });
  const inSqlite = sqlProcessedEvents(sqlite.options);
  const inPostgres = sqlProcessedEvents(postgres.options);
  await inSqlite.migrate();
  await inPostgres.migrate();
  const places: [string, ProcessedEvents, ownClock: boolean][] = [
    ["memory", memoryProcessedEvents(), false],
    ["SQLite", inSqlite, false],
    ["PostgreSQL", inPostgres, false],
    ["Redis", redisProcessedEvents(redis.client, { prefix: redis.prefix }), true],
  ];

  let serial = 0;
  const event = (type = "project.created"): WebhookEvent => JSON.parse(cybercubeEvent(`evt_${String(++serial).padStart(26, "0")}`, type)) as WebhookEvent;

  for (const [name, events, ownClock] of places) {
    test(`${name}: processed, then duplicate with the original; concurrent while it runs [CCW-IDM-3 CCW-IDM-1 CCW-IDM-5]`, async () => {
      const open = gate();
      const running = gate();
      const processor = new WebhookProcessor({
        events,
        handlers: {
          "project.created": async () => {
            running.open();
            await open.opened;
            return "made";
          },
        },
      });
      const e = event();
      const first = processor.processWebhook(e);
      await running.opened;
      const concurrent = await processor.processWebhook(e);
      assert.deepEqual(concurrent, { status: "concurrent", message: "Event being processed" });
      const busy = processingAnswer(e, concurrent);
      assert.deepEqual([busy.status, busy.headers["retry-after"]], [503, "1"]);
      open.open();
      assert.deepEqual(await first, { status: "processed", result: "made" });
      const again = await processor.processWebhook(e);
      assert.equal(again.status, "duplicate");
      assert.ok(again.status === "duplicate" && again.original.processed_at instanceof Date && !Number.isNaN(again.original.processed_at.getTime()));
      assert.deepEqual(again.status === "duplicate" && [again.original.event_id, again.original.result], [e.id, "made"]);
      assert.equal(processingAnswer(e, again).status, 200);
    });

    test(`${name}: an error is passed on and frees the lock, so that a retry processes it [CCW-IDM-4]`, async () => {
      let calls = 0;
      const processor = new WebhookProcessor({
        events,
        handlers: {
          "project.created": () => {
            if (++calls === 1) throw new Error("boom");
          },
        },
      });
      const e = event();
      await assert.rejects(processor.processWebhook(e), /boom/);
      assert.equal((await processor.processWebhook(e)).status, "processed");
      assert.equal((await processor.processWebhook(e)).status, "duplicate");
      assert.equal(calls, 2);
    });

    test(`${name}: types without a handler are acknowledged as unhandled [CCW-IDM-12]`, async () => {
      const processor = new WebhookProcessor({ events, handlers: {} });
      for (const type of ["user.subscription.upgraded", "constructor", "__proto__"]) {
        const e = event(type);
        const result = await processor.processWebhook(e);
        assert.deepEqual(result, { status: "processed", result: "unhandled" });
        assert.equal(processingAnswer(e, result).status, 200);
      }
    });

    test(`${name}: an event without an id cannot be told from others`, async () => {
      const processor = new WebhookProcessor({ events, handlers: {} });
      for (const id of ["", undefined, 7]) await assert.rejects(processor.processWebhook({ ...event(), id: id as string }), /no id/);
    });

    test(`${name}: of 50 at once one is processed [CCW-IDM-7]`, async () => {
      let runs = 0;
      const processor = new WebhookProcessor({ events, handlers: { "project.created": () => void runs++ } });
      const e = event();
      const all = await Promise.all(Array.from({ length: 50 }, () => processor.processWebhook(e)));
      assert.equal(runs, 1);
      assert.equal(all.filter((r) => r.status === "processed").length, 1);
    });

    test(`${name}: a result that cannot be kept leaves the lock: a retry does not repeat the effect at once`, async () => {
      let effects = 0;
      const e = event();
      const broken: ProcessedEvents = { ...events, markProcessed: () => Promise.reject(new Error("database is gone")) };
      const handlers = { "project.created": () => void effects++ };
      await assert.rejects(new WebhookProcessor({ events: broken, handlers }).processWebhook(e), /gone/);
      assert.equal((await new WebhookProcessor({ events, handlers }).processWebhook(e)).status, "concurrent");
      assert.equal(effects, 1);
    });

    test(`${name}: who has lost the lock to another is told so, and keeps nothing`, async () => {
      const e = event();
      const processor = new WebhookProcessor({
        events,
        handlers: {
          "project.created": async () => {
            const now = Date.now();
            let token: string | undefined;
            while (token === undefined) token = await events.lock(e, new Date(now), new Date(now));
            await events.releaseLock(e.id, token);
            await events.lock(e, new Date(now + 1000), new Date(now + 900)); // for a tenth of a second
            return "lost";
          },
        },
        lockSeconds: 0.001, // over at once
      });
      await assert.rejects(processor.processWebhook(e), /lock was lost/);
      assert.equal(await events.get(e.id), undefined);
    });

    if (ownClock) continue;
    test(`${name}: the lock of a holder that died ends after five minutes; the dead have no say [CCW-IDM-6]`, async () => {
      const time = standingClock();
      const e = event();
      const stale = await events.lock(e, new Date(time()), new Date(time() - 300_000));
      const processor = new WebhookProcessor({ events, handlers: {}, clock: time });
      time.advance(299);
      assert.equal((await processor.processWebhook(e)).status, "concurrent");
      time.advance(2);
      assert.equal((await processor.processWebhook(e)).status, "processed");
      await events.releaseLock(e.id, stale!);
      assert.equal((await processor.processWebhook(e)).status, "duplicate");
    });

    test(`${name}: events are remembered for 30 days, 7 at least, and then cleaned up [CCW-IDM-9]`, async () => {
      assert.throws(() => new WebhookProcessor({ events, handlers: {}, retentionSeconds: 7 * 86400 - 1 }), /7 days/);
      assert.throws(() => new WebhookProcessor({ events, handlers: {}, lockSeconds: 0 }), /lock/);
      assert.throws(() => redisProcessedEvents(redis.client, { retentionSeconds: 86400 }), /7 days/);
      const time = standingClock();
      const e = event();
      const month = new WebhookProcessor({ events, handlers: {}, clock: time });
      const week = new WebhookProcessor({ events, handlers: {}, clock: time, retentionSeconds: 7 * 86400 });
      await month.processWebhook(e);
      time.advance(6.9 * 86400);
      await week.cleanup();
      assert.equal((await month.processWebhook(e)).status, "duplicate");
      time.advance(23 * 86400);
      await month.cleanup();
      assert.equal((await month.processWebhook(e)).status, "duplicate");
      time.advance(0.2 * 86400);
      assert.ok((await month.cleanup()) >= 1);
      assert.equal((await month.processWebhook(e)).status, "processed");
    });
  }

  test("the table is the standard's own, on both databases [CCW-IDM-8]", async () => {
    const columns = await postgres.query(
      `SELECT column_name, data_type, character_maximum_length, is_nullable, column_default FROM information_schema.columns
WHERE table_schema = $1 AND table_name = 'processed_webhook_events' ORDER BY ordinal_position`,
      [schema],
    );
    assert.deepEqual(
      columns.map((c) => [c["column_name"], c["data_type"], c["character_maximum_length"], c["is_nullable"], c["column_default"]]),
      [
        ["event_id", "character varying", 30, "NO", null],
        ["event_type", "character varying", 100, "NO", null],
        ["received_at", "timestamp with time zone", null, "NO", "now()"],
        ["processed_at", "timestamp with time zone", null, "YES", null],
        ["processing_status", "character varying", 20, "NO", "'pending'::character varying"],
        ["result", "text", null, "YES", null],
      ],
    );
    const indexes = await postgres.query("SELECT indexdef FROM pg_indexes WHERE schemaname = $1", [schema]);
    assert.ok(indexes.some((i) => /\(received_at\)/.test(String(i["indexdef"]))));
    assert.ok(indexes.some((i) => /UNIQUE.*\(event_id\)/.test(String(i["indexdef"]))));
    const lite = await sqlite.options.query("PRAGMA table_info(processed_webhook_events)", []);
    assert.deepEqual((lite as { name: string }[]).map((c) => c.name), ["event_id", "event_type", "received_at", "processed_at", "processing_status", "result"]);
    assert.match(processedEventsSchema({ dialect: "postgres" })[0]!, /received_at TIMESTAMPTZ NOT NULL DEFAULT NOW\(\)/);
  });
});

describe("rate limit", () => {
  test("1000 a minute pass, the 1001st gets 429 with the standard's body; RateLimit headers, no legacy ones [CCW-LIM-12 CCW-RCV-16]", async () => {
    const time = standingClock();
    const limited = rateLimit(async () => Response.json({ received: true }), { clock: time });
    const post = (): Promise<Response> => limited(new Request("https://x.example/", { method: "POST" }));
    for (let i = 0; i < 1000; i++) assert.equal((await post()).status, 200);
    const over = await post();
    assert.deepEqual([over.status, await over.json()], [429, { error: "Rate limit exceeded" }]);
    assert.deepEqual(["limit", "remaining", "reset"].map((n) => over.headers.get(`ratelimit-${n}`)), ["1000", "0", "60"]);
    assert.equal(over.headers.get("retry-after"), "60");
    assert.equal(over.headers.get("x-ratelimit-limit"), null);
    time.advance(60);
    const next = await post();
    assert.deepEqual([next.status, next.headers.get("ratelimit-remaining")], [200, "999"]);
  });

  test("in a receiver it comes first, by the sender's address", async () => {
    const h = harness({ profile: cybercube({ secrets: secret }), rateLimit: { max: 2 } });
    const post = (ip: string): Promise<Response> => {
      const { url, headers, body } = signCybercube(cybercubeEvent());
      return h.receiver.fetch(new Request(url, { method: "POST", headers, body: new Uint8Array(body) }), { ip });
    };
    assert.deepEqual([(await post("a")).status, (await post("a")).status], [200, 200]);
    const over = await post("a");
    assert.deepEqual([over.status, await over.json(), over.headers.get("retry-after")], [429, { error: "Rate limit exceeded" }, "60"]);
    assert.equal((await post("b")).status, 200);
    assert.equal(h.deliveries.length, 3);
  });

  test("many addresses do not fill the memory", () => {
    const limiter = new RateLimiter({ max: 1 });
    for (let i = 0; i < 30_000; i++) limiter.take(`key ${i}`);
    assert.equal(limiter.take("key 29999").allowed, false);
    assert.equal(limiter.take("key 0").allowed, true);
  });
});

describe("source addresses", () => {
  const document = { production: ["203.0.113.0/24", "198.51.100.0/24", "2001:db8::/32"], updated_at: "2026-01-17T12:00:00Z" };

  test("inside the published ranges, and not outside [CCW-HTTP-17 CCW-RCV-12]", () => {
    for (const ip of ["203.0.113.9", "198.51.100.255", "::ffff:203.0.113.9", "2001:db8::1", "2001:0DB8:ffff::", "[2001:db8::1]"]) assert.ok(isAllowedSource(ip, document), ip);
    for (const ip of ["8.8.8.8", "203.0.114.1", "2001:db9::1", "::1", "", "203.0.113", "203.0.113.256", "0203.0.113.9", "x", "1:2:3", "::ffff:8.8.8.8", "1::2::3"]) {
      assert.equal(isAllowedSource(ip, document), false, ip);
    }
  });

  test("as a list and as text; nonsense allows nothing", () => {
    assert.ok(isAllowedSource("203.0.113.9", document.production));
    assert.ok(isAllowedSource("203.0.113.9", "# Production\n203.0.113.0/24\n"));
    assert.ok(isAllowedSource("203.0.113.9", ["203.0.113.9"]));
    assert.equal(isAllowedSource("203.0.113.9", ["203.0.113.0/33", "203.0.113.0/x", "x/8", "", "/0"]), false);
  });
});

test("validation: wrong types are refused after verification, before the handler [CCW-RCV-15]", async () => {
  const h = harness({ profile: cybercube({ secrets: secret }), validate: validateCybercubeEvent });
  const good = JSON.parse(cybercubeEvent()) as Record<string, unknown>;
  for (const wrong of [{ livemode: "yes" }, { data: [] }, { type: 7 }, { created_at: null }, { data: undefined }]) {
    const answer = await h.post(signCybercube(JSON.stringify({ ...good, ...wrong })));
    assert.equal(answer.status, 400, JSON.stringify(wrong));
  }
  assert.equal((await h.post(signCybercube(JSON.stringify(good)))).status, 200);
  assert.equal((await h.post(signCybercube('{"id":"evt_1","type":"a.b","created_at":"2026-01-17T12:00:00Z","data":{}}'))).status, 200);
  const forged = { ...signCybercube(JSON.stringify({ ...good, livemode: "yes" })), body: Buffer.from("{}") };
  assert.equal((await h.post(forged)).status, 401);
  assert.equal(h.deliveries.length, 2);
});
