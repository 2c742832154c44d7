/** One suite for every store: memory, SQLite, PostgreSQL, Redis. And what several processes share. */
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { Redis } from "ioredis";
import {
  memoryStore,
  redisProcessedEvents,
  redisStore,
  sqlInbox,
  sqlProcessedEvents,
  sqlStore,
  sqlStoreSchema,
  WebhookProcessor,
  type Outcome,
  type RedisClient,
  type Store,
  type WebhookEvent,
} from "@godwit/receiver";
import { harness, standingClock } from "./support/harness.js";
import { Postgres } from "./support/postgres.js";
import { openRedis } from "./support/redis.js";
import { cybercubeEvent, signEds } from "./support/sign.js";
import { Sqlite } from "./support/sqlite.js";

const dir = mkdtempSync(join(tmpdir(), "godwit-stores-"));
const sqliteFile = join(dir, "receipts.db");
const schema = `receiver_ts_${process.pid}`;
const sqlite = new Sqlite(sqliteFile);
const postgres = await Postgres.connect(schema);
const redis = await openRedis();

after(async () => {
  await postgres.query(`DROP SCHEMA ${schema} CASCADE`, []);
  await Promise.all([sqlite.close(), postgres.close(), redis.close()]);
  rmSync(dir, { recursive: true, force: true });
});

const sqliteStore = sqlStore(sqlite.options);
const postgresStore = sqlStore(postgres.options);
await sqliteStore.migrate();
await postgresStore.migrate();
await postgresStore.migrate(); // again is no harm

let serial = 0;
const unique = (): string => `${process.pid}-${Date.now()}-${serial++}`.padEnd(64, "0").slice(0, 64);
const outcome: Outcome = { status: 201, headers: { location: "/é 'x'" }, body: "AP8=" };

const stores: [string, Store, clock: "ours" | "its own"][] = [
  ["memory", memoryStore(), "ours"],
  ["SQLite", sqliteStore, "ours"],
  ["PostgreSQL", postgresStore, "ours"],
  ["Redis by ioredis", redisStore(redis.client, { prefix: redis.prefix }), "its own"],
  ["Redis by node-redis", redisStore(redis.other, { prefix: `${redis.prefix}other:` }), "its own"],
];

for (const [name, store, clock] of stores) {
  describe(name, () => {
    test(`${name}: reserve, complete, repeat, and the outcome as it was [IKH-EXP-3]`, async () => {
      const scope = unique();
      const now = Date.now();
      const at = { scope, fingerprint: "f", now };
      assert.deepEqual(await store.reserve({ ...at, token: "a", leaseUntil: now + 60_000 }), { state: "reserved" });
      assert.deepEqual(await store.reserve({ ...at, fingerprint: "g", token: "b", leaseUntil: now + 60_000 }), { state: "in-progress", fingerprint: "f" });
      assert.equal(await store.complete({ scope, fingerprint: "f", token: "b", outcome, now, expiresAt: now + 60_000 }), false);
      assert.equal(await store.complete({ scope, fingerprint: "f", token: "a", outcome, now, expiresAt: now + 60_000 }), true);
      assert.equal(await store.complete({ scope, fingerprint: "f", token: "a", outcome, now, expiresAt: now + 60_000 }), false);
      await store.release(scope, "a"); // too late: it is completed
      assert.deepEqual(await store.reserve({ ...at, token: "c", leaseUntil: now + 60_000 }), { state: "completed", fingerprint: "f", outcome });
    });

    test(`${name}: a released key is free, by its holder alone`, async () => {
      const scope = unique();
      const now = Date.now();
      const request = { scope, fingerprint: "", now, leaseUntil: now + 60_000 };
      await store.reserve({ ...request, token: "a" });
      await store.release(scope, "b");
      assert.equal((await store.reserve({ ...request, token: "b" })).state, "in-progress");
      await store.release(scope, "a");
      assert.equal((await store.reserve({ ...request, token: "b" })).state, "reserved");
    });

    test(`${name}: of 50 at once one gets the key`, async () => {
      const scope = unique();
      const now = Date.now();
      const all = await Promise.all(Array.from({ length: 50 }, (_, i) => store.reserve({ scope, fingerprint: "", token: String(i), now, leaseUntil: now + 60_000 })));
      assert.equal(all.filter((r) => r.state === "reserved").length, 1);
    });

    test(`${name}: leases and windows end; the late holder has lost its key [IKH-EXP-1 IKH-EXP-3]`, async () => {
      const scope = unique();
      const step = clock === "ours" ? 60_000 : 5_000; // long enough for what must be done before it ends
      let now = Date.now();
      const pass = async (ms: number): Promise<void> => {
        if (clock === "its own") await new Promise((resolve) => setTimeout(resolve, ms));
        now = clock === "ours" ? now + ms : Date.now();
      };
      const reserve = (token: string): Promise<{ state: string }> => store.reserve({ scope, fingerprint: "", token, now, leaseUntil: now + step });
      assert.equal((await reserve("a")).state, "reserved");
      await pass(step + 1);
      assert.equal((await reserve("b")).state, "reserved");
      assert.equal(await store.complete({ scope, fingerprint: "", token: "a", outcome, now, expiresAt: now + step }), false);
      assert.equal(await store.complete({ scope, fingerprint: "", token: "b", outcome, now, expiresAt: now + step }), true);
      await pass(step + 1);
      assert.equal((await reserve("c")).state, "reserved");
    });

    test(`${name}: a nonce is new once, until its time is over`, async () => {
      const value = unique();
      const now = Date.now();
      const all = await Promise.all(Array.from({ length: 20 }, () => store.remember(value, now + 60_000, now)));
      assert.equal(all.filter(Boolean).length, 1);
      if (clock === "ours") assert.equal(await store.remember(value, now + 120_000, now + 60_000), true);
    });

    test(`${name}: times are the caller's: a receiver whose clock is ahead takes over, and the other has lost its key`, async () => {
      const scope = unique();
      const now = Date.now();
      const at = { scope, fingerprint: "" };
      await store.reserve({ ...at, token: "a", now, leaseUntil: now + 60_000 });
      assert.equal((await store.reserve({ ...at, token: "b", now: now + 59_999, leaseUntil: now + 120_000 })).state, "in-progress");
      assert.equal((await store.reserve({ ...at, token: "b", now: now + 60_000, leaseUntil: now + 120_000 })).state, "reserved");
      assert.equal(await store.complete({ ...at, token: "a", outcome, now, expiresAt: now + 90_000 }), false);
      await store.release(scope, "a");
      assert.equal(await store.complete({ ...at, token: "b", outcome, now: now + 60_000, expiresAt: now + 180_000 }), true);
      assert.equal((await store.reserve({ ...at, token: "c", now: now + 179_999, leaseUntil: now + 200_000 })).state, "completed");
      assert.equal((await store.reserve({ ...at, token: "c", now: now + 180_000, leaseUntil: now + 200_000 })).state, "reserved");
      assert.equal(await store.remember(scope, now + 1000, now), true);
      assert.equal(await store.remember(scope, now + 3000, now + 999), false);
      assert.equal(await store.remember(scope, now + 3000, now + 1000), true);
    });

    test(`${name}: a purge drops no more than it is told`, async () => {
      if (clock === "its own") return assert.equal(await store.purge(Date.now(), 1), 0);
      const later = Date.now() + 100 * 365 * 86400_000;
      await store.purge(later);
      for (let i = 0; i < 3; i++) {
        await store.reserve({ scope: unique(), fingerprint: "", token: "a", now: 0, leaseUntil: 1 });
        await store.remember(unique(), 1, 0);
      }
      const steps = [];
      for (let i = 0; i < 4; i++) steps.push(await store.purge(later, 4));
      assert.deepEqual(steps, [4, 2, 0, 0]);
    });

    test(`${name}: what has expired is purged`, async () => {
      const now = Date.now();
      const scope = unique();
      await store.reserve({ scope, fingerprint: "", token: "a", now, leaseUntil: now + 1000 });
      await store.remember(unique(), now + 1000, now);
      const gone = await store.purge(now + 10 * 365 * 86400_000);
      if (clock === "ours") assert.ok(gone >= 2);
      assert.equal(await store.purge(now + 10 * 365 * 86400_000), 0);
    });

    test(`${name}: a receiver on it runs one of 50 duplicates, and frees what failed [CCW-IDM-7]`, async () => {
      const key = `"${unique()}"`;
      let calls = 0;
      const h = harness({
        store,
        handle: () => {
          if (++calls === 1) throw new Error("first time");
        },
      });
      assert.equal((await h.post(signEds("{}", { key }))).status, 500);
      const answers = await Promise.all(Array.from({ length: 50 }, () => h.post(signEds("{}", { key }))));
      assert.equal(calls, 2);
      for (const answer of answers) assert.ok(answer.status === 204 || answer.status === 503);
      assert.equal((await h.post(signEds("{}", { key }))).headers.get("idempotency-replayed"), "true");
      assert.equal((await h.post(signEds('{"other":1}', { key }))).status, 422);
    });
  });
}

describe("several processes", () => {
  const places = [
    ["sqlite", sqliteFile, sqliteStore],
    ["postgres", schema, postgresStore],
  ] as const;
  const started = (args: string[]): ChildProcess => fork(new URL("./support/holder.js", import.meta.url), args, { execArgv: ["--no-warnings"] });

  for (const [kind, place, store] of places) {
    test(`${kind}: three processes, forty deliveries of twenty keys each: every key runs once [CCW-IDM-7]`, async () => {
      const children = [0, 1, 2].map(() => started(["race", kind, place, ""]));
      await Promise.all(children.map((child) => once(child, "message")));
      const reports = await Promise.all(
        children.map(async (child) => {
          const report = once(child, "message");
          child.send("go");
          return (await report)[0] as { runs: string[]; statuses: number[] };
        }),
      );
      const runs = reports.flatMap((r) => r.runs);
      assert.equal(runs.length, 20);
      assert.equal(new Set(runs).size, 20);
      for (const { statuses } of reports) assert.ok(statuses.every((s) => s === 204 || s === 503), String(statuses));
    });

    test(`${kind}: a process that is killed while it handles frees its key by the lease [IKH-EXP-3]`, async () => {
      const key = `"killed-${unique()}"`;
      const child = started(["hold", kind, place, key]);
      const exit = once(child, "exit").then(() => assert.fail("it did not get to handle"));
      await Promise.race([once(child, "message"), exit]);
      exit.catch(() => undefined);
      child.kill("SIGKILL");
      await once(child, "exit");
      const clock = standingClock();
      const h = harness({ store, clock });
      const send = (): Promise<Response> => h.post(signEds("{}", { key, at: Math.floor(clock() / 1000) }));
      assert.equal((await send()).status, 503);
      clock.advance(3);
      assert.equal((await send()).status, 204);
      assert.equal(h.deliveries.length, 1);
    });
  }
});

describe("a reply of Redis that was lost, so that the client sends the command again", () => {
  /** A client that sends everything twice and tells the second reply, as ioredis does after a reconnect. */
  const stutter: RedisClient = {
    call: async (command, ...args) => {
      await redis.call(command, ...args);
      return redis.call(command, ...args);
    },
  };
  const twice = redisStore(stutter, { prefix: redis.prefix });

  test("the key is the sender's all the same, and so is the nonce", async () => {
    const scope = unique();
    const now = Date.now();
    assert.deepEqual(await twice.reserve({ scope, fingerprint: "", token: "a", now, leaseUntil: now + 1000 }), { state: "reserved" });
    assert.equal((await twice.reserve({ scope, fingerprint: "", token: "b", now, leaseUntil: now + 1000 })).state, "in-progress");
    assert.equal(await twice.remember(scope, now + 1000, now), true);
    assert.equal(await twice.remember(scope, now + 1000, now), false);
    const h = harness({ store: twice });
    assert.equal((await h.post(signEds("{}"))).status, 204);
  });

  test("an event of CYBERCUBE's processor is locked and marked all the same", async () => {
    const processor = new WebhookProcessor({ events: redisProcessedEvents(stutter, { prefix: redis.prefix }), handlers: {} });
    const event = JSON.parse(cybercubeEvent()) as WebhookEvent;
    assert.equal((await processor.processWebhook(event)).status, "processed");
    assert.equal((await processor.processWebhook(event)).status, "duplicate");
  });
});

test("a client of Redis whose server is away may wait for ever; the receiver does not", async () => {
  const away = new Redis({ port: 1, host: "127.0.0.1", lazyConnect: true, retryStrategy: () => 10_000 }); // it queues what it cannot send
  away.on("error", () => undefined);
  const h = harness({ store: redisStore(away), storeTimeout: 0.05 });
  assert.equal((await h.post(signEds("{}"))).status, 503);
  assert.equal(h.deliveries.length, 0);
  away.disconnect();
});

test("processes that make the tables at the same time do not hinder each other", async () => {
  for (let turn = 0; turn < 3; turn++) {
    const tables = { table: `keys_${turn}`, nonceTable: `nonces_${turn}` };
    const pools = await Promise.all([0, 1, 2, 3].map(() => Postgres.connect(schema)));
    await Promise.all(pools.flatMap(({ options }) => [sqlStore({ ...options, ...tables }).migrate(), sqlInbox({ ...options, table: `inbox_${turn}` }).migrate(), sqlProcessedEvents({ ...options, table: `events_${turn}` }).migrate()]));
    await Promise.all(pools.map((pool) => pool.close()));
  }
});

test("times with fractions and long fingerprints are nothing to a database", async () => {
  for (const store of [sqliteStore, postgresStore]) {
    const h = harness({
      store,
      clock: () => Date.now() + 0.25,
      timeout: 30.5,
      freshness: { tolerance: 299.7 },
      dedup: { lease: 61.0055, window: 86400.3333, fingerprint: (d) => d.text().repeat(100) },
    });
    const key = `"${unique()}"`;
    for (const replayed of [null, "true"]) {
      const answer = await h.post(signEds("{}", { key }));
      assert.deepEqual([answer.status, answer.headers.get("idempotency-replayed")], [204, replayed]);
    }
  }
});

test("the tables' names are yours, and nothing but names; their statements are given out", () => {
  assert.match(sqlStoreSchema({ table: "app.keys" })[0]!, /CREATE TABLE IF NOT EXISTS app\.keys/);
  assert.throws(() => sqlStore({ ...sqlite.options, table: "x; DROP TABLE y" }), /not a table name/);
});

test("a database that is gone is answered 503", async () => {
  const gone = new Sqlite(join(dir, "gone.db"));
  const store = sqlStore(gone.options);
  await store.migrate();
  await gone.close();
  const h = harness({ store });
  assert.equal((await h.post(signEds("{}"))).status, 503);
  assert.equal(h.deliveries.length, 0);
});
