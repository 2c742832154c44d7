/** Effects that happen exactly once: written in the transaction that completes the key. torture.test.ts puts it under fire. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { memoryInbox, memoryStore, receiver, redisOf, redisStore, reject, retryAfter, sqlOf, sqlStore, type HandlerContext, type Result, type Store } from "@godwit/receiver";
import { openDatabase, type Database } from "./support/database.js";
import { edsProfile, gate, harness } from "./support/harness.js";
import { openRedis } from "./support/redis.js";
import { signEds } from "./support/sign.js";

interface Place {
  readonly kind: string;
  readonly store: Store;
  write(context: HandlerContext, id: string): Promise<void>;
  count(): Promise<number>;
}

const dir = mkdtempSync(join(tmpdir(), "godwit-transaction-"));
const schema = `transaction_ts_${process.pid}`;
const databases = { sqlite: await openDatabase("sqlite", join(dir, "effects.db")), postgres: await openDatabase("postgres", schema) };
const redis = await openRedis();
after(async () => {
  await databases.postgres.options.query(`DROP SCHEMA ${schema} CASCADE`, []);
  await Promise.all([databases.sqlite.close(), databases.postgres.close(), redis.close()]);
  rmSync(dir, { recursive: true, force: true });
});

async function sqlPlace(kind: "sqlite" | "postgres", { options, rows }: Database): Promise<Place> {
  const store = sqlStore(options);
  await store.migrate();
  await options.query("CREATE TABLE effects (event_id TEXT NOT NULL)", []);
  return {
    kind,
    store,
    async write(context, id) {
      await sqlOf(context)(`INSERT INTO effects (event_id) VALUES (${kind === "sqlite" ? "?" : "$1"})`, [id]);
    },
    count: async () => Number((await rows("SELECT count(*) AS n FROM effects"))[0]!["n"]),
  };
}

const places: Place[] = [
  await sqlPlace("sqlite", databases.sqlite),
  await sqlPlace("postgres", databases.postgres),
  {
    kind: "redis",
    store: redisStore(redis.client, { prefix: redis.prefix }),
    write: async (context, id) => redisOf(context)("RPUSH", `${redis.prefix}effects`, id),
    count: async () => Number(await redis.call("LLEN", `${redis.prefix}effects`)),
  },
];

for (const p of places) {
  describe(p.kind, () => {
    const key = (): string => `"${crypto.randomUUID()}"`;

    test(`${p.kind}: an accepted delivery's writes are there with its key, once`, async () => {
      const before = await p.count();
      const h = harness({ store: p.store, transactional: true, handle: (d, c) => p.write(c, d.key) });
      const k = key();
      for (let i = 0; i < 3; i++) assert.equal((await h.post(signEds("{}", { key: k }))).status, 204);
      assert.equal((await p.count()) - before, 1);
      assert.equal(h.deliveries.length, 1);
    });

    test(`${p.kind}: what was thrown, put off or made no sense leaves no writes, and the key is free`, async () => {
      const before = await p.count();
      const outcomes: (() => Result | void)[] = [
        () => {
          throw new Error("boom");
        },
        () => retryAfter(5),
        () => ({ kind: "nonsense" }) as never,
        () => undefined,
      ];
      const h = harness({
        store: p.store,
        transactional: true,
        handle: async (d, c) => {
          await p.write(c, d.key);
          return outcomes.shift()!();
        },
      });
      const k = key();
      const statuses = [];
      for (let i = 0; i < 5; i++) statuses.push((await h.post(signEds("{}", { key: k }))).status);
      assert.deepEqual(statuses, [500, 503, 500, 204, 204]);
      assert.equal((await p.count()) - before, 1);
    });

    test(`${p.kind}: a refusal is kept, and what was written before it is undone`, async () => {
      const before = await p.count();
      const h = harness({ store: p.store, transactional: true, handle: async (d, c) => (await p.write(c, d.key), reject(422, "no")) });
      const k = key();
      for (let i = 0; i < 2; i++) assert.equal((await h.post(signEds("{}", { key: k }))).status, 422);
      assert.equal((await p.count()) - before, 0);
      assert.equal(h.deliveries.length, 1);
    });

    test(`${p.kind}: a holder whose lease ended writes nothing`, async () => {
      const before = await p.count();
      const open = gate();
      const slow = harness({ store: p.store, transactional: true, timeout: 0.02, dedup: { lease: 0.05 }, handle: async (d, c) => {
        await open.opened;
        await p.write(c, d.key);
      } });
      const k = key();
      const signed = signEds("{}", { key: k });
      const waits: Promise<unknown>[] = [];
      const request = new Request(signed.url, { method: "POST", headers: signed.headers, body: new Uint8Array(signed.body) });
      assert.equal((await slow.receiver.fetch(request, { waitUntil: (w) => waits.push(w) })).status, 503);
      await new Promise((resolve) => setTimeout(resolve, 60));
      const quick = harness({ store: p.store });
      assert.equal((await quick.post(signEds("{}", { key: k }))).status, 204);
      open.open();
      await Promise.all(waits);
      assert.equal((await p.count()) - before, 0);
      assert.match(String(slow.log.errors[0]![0]), /lease ended/);
      assert.equal(slow.log.errors[0]![1], "transaction");
    });

    test(`${p.kind}: who writes when the transaction is over gets an error`, async () => {
      const before = await p.count();
      let kept: HandlerContext | undefined;
      const h = harness({ store: p.store, transactional: true, handle: (_, c) => void (kept = c) });
      assert.equal((await h.post(signEds("{}", { key: key() }))).status, 204);
      await assert.rejects(async () => p.write(kept!, "too late"), /transaction is over/);
      assert.equal(await p.count(), before);
    });

    test(`${p.kind}: a handler that does not end loses its transaction, so that it holds no lock; its key stays until it ends`, async () => {
      const before = await p.count();
      const open = gate();
      const outcomes: unknown[] = [];
      const stuck = harness({ store: p.store, transactional: true, timeout: 5, storeTimeout: 5, dedup: { lease: 600 }, handle: async (d, c) => {
        await p.write(c, d.key);
        await open.opened;
        // The transaction ends some time after the answer; until then its writes succeed.
        while (outcomes.length === 0) {
          await p.write(c, d.key).catch((error: Error) => outcomes.push(error.message));
          await new Promise((resolve) => setImmediate(resolve));
        }
      } });
      const k = key();
      assert.equal((await stuck.post(signEds("{}", { key: k }))).status, 503);
      const others = harness({ store: p.store, transactional: true, handle: (d, c) => p.write(c, d.key) });
      while ((await others.post(signEds("{}", { key: key() }))).status !== 204); // until nothing is locked any more
      assert.equal((await others.post(signEds("{}", { key: k }))).status, 503);
      open.open();
      await stuck.receiver.wait();
      assert.deepEqual(outcomes, ["the transaction is over"]);
      assert.equal((await others.post(signEds("{}", { key: k }))).status, 204);
      assert.equal((await p.count()) - before, 2);
    });

    test(`${p.kind}: a transaction that fails is answered 503, and the retry runs`, async () => {
      const before = await p.count();
      const failures = [new Error("no connection"), new Error("the commit failed")];
      const store: Store = {
        ...p.store,
        transaction: async (run) => {
          if (failures.length === 2) throw failures.shift();
          return p.store.transaction!(async (transaction) => {
            const value = await run(transaction);
            if (failures.length === 1) throw failures.shift();
            return value;
          });
        },
      };
      const h = harness({ store, transactional: true, handle: (d, c) => p.write(c, d.key) });
      const k = key();
      const answers = [];
      for (let i = 0; i < 4; i++) {
        const answer = await h.post(signEds("{}", { key: k }));
        answers.push([answer.status, answer.headers.get("retry-after"), answer.headers.get("idempotency-replayed")]);
      }
      // Redis has no commit beside the completion: what failed after it was done already.
      const second = p.kind === "redis" ? [204, null, "true"] : [204, null, null];
      assert.deepEqual(answers, [[503, "1", null], [503, "1", null], second, [204, null, "true"]]);
      assert.deepEqual(h.log.errors.map(([e, where]) => [(e as Error).message, where]), [["no connection", "transaction"], ["the commit failed", "transaction"]]);
      assert.equal((await p.count()) - before, 1);
    });

    test(`${p.kind}: what a transaction makes of an error does not matter: the handler's word counts`, async () => {
      const store: Store = { ...p.store, transaction: (run) => p.store.transaction!(run).catch((error: unknown) => { throw new AggregateError([error], "rolled back"); }) };
      const outcomes: (() => Result | void)[] = [() => retryAfter(7), () => { throw new Error("boom"); }, () => reject(422, "no")];
      const h = harness({ store, transactional: true, handle: () => outcomes.shift()!() });
      const k = key();
      const statuses = [];
      for (let i = 0; i < 4; i++) statuses.push((await h.post(signEds("{}", { key: k }))).status);
      assert.deepEqual(statuses, [503, 500, 422, 422]);
      assert.deepEqual(h.log.errors.map(([e]) => (e as Error).message), ["boom"]);
    });
  });
}

test("transactional is refused where it cannot be", () => {
  const handler = (): void => undefined;
  const { store } = places[0]!;
  assert.throws(() => receiver({ profile: edsProfile(), transactional: true, handler }), /store with transactions/);
  assert.throws(() => receiver({ profile: edsProfile(), transactional: true, handler, store: memoryStore() }), /store with transactions/);
  assert.throws(() => receiver({ profile: edsProfile(), transactional: true, store, inbox: memoryInbox() }), /deduplication and a handler/);
  assert.throws(() => sqlOf({ signal: new AbortController().signal }), /not transactional/);
});
