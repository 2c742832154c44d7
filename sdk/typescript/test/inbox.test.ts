/** The asynchronous mode: durable inbox first, then the acknowledgement, then a worker with retries. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import {
  cybercube,
  inboxWorker,
  memoryInbox,
  memoryStore,
  queueInbox,
  reject,
  restoredDelivery,
  retryAfter,
  sqlInbox,
  sqlOf,
  type ClaimedJob,
  type Delivery,
  type Inbox,
  type InboxJob,
  type Result,
  type StoredDelivery,
} from "@godwit/receiver";
import { openDatabase } from "./support/database.js";
import { gate, harness, standingClock } from "./support/harness.js";
import { Postgres } from "./support/postgres.js";
import { cybercubeEvent, secret, signCybercube, signEds } from "./support/sign.js";
import { Sqlite } from "./support/sqlite.js";

const dir = mkdtempSync(join(tmpdir(), "godwit-inbox-"));
const schema = `inbox_ts_${process.pid}`;
const sqlite = new Sqlite(join(dir, "inbox.db"));
const postgres = await Postgres.connect(schema);
after(async () => {
  await postgres.query(`DROP SCHEMA ${schema} CASCADE`, []);
  await Promise.all([sqlite.close(), postgres.close()]);
  rmSync(dir, { recursive: true, force: true });
});

let tables = 0;
const inboxes: [string, () => Promise<Inbox>][] = [
  ["memory", async () => memoryInbox()],
  ["SQLite", () => fresh(sqlite)],
  ["PostgreSQL", () => fresh(postgres)],
];

async function fresh(database: Sqlite | Postgres): Promise<Inbox> {
  const inbox = sqlInbox({ ...database.options, table: `inbox_${tables++}` });
  await inbox.migrate();
  return inbox;
}

const profile = cybercube({ secrets: secret });

for (const [name, make] of inboxes) {
  describe(name, () => {
    test(`${name}: acknowledged before it is processed, processed once, byte for byte [CCW-RCV-6 CCW-RCV-7 CCW-RCV-8]`, async () => {
      const inbox = await make();
      const h = harness({ profile, inbox });
      const event = cybercubeEvent("evt_01JHS0EXAMPLE00000000000AB");
      const seen: Delivery[] = [];
      const order: string[] = [];
      for (let attempt = 1; attempt < 4; attempt++) {
        const answer = await h.post(signCybercube(event, { attempt }));
        assert.deepEqual([answer.status, await answer.json()], [200, { received: true, event_id: "evt_01JHS0EXAMPLE00000000000AB" }]);
      }
      order.push("answered"); // there is no worker yet
      const worker = inboxWorker({
        inbox,
        handler: (delivery) => {
          order.push("handled");
          seen.push(delivery);
        },
      });
      assert.equal(await worker.drain(), 1);
      assert.equal(await worker.drain(), 0);
      assert.deepEqual(order, ["answered", "handled"]);
      assert.equal(seen[0]!.text(), event);
      assert.deepEqual([seen[0]!.eventId, seen[0]!.eventType, seen[0]!.principal, seen[0]!.attempt], ["evt_01JHS0EXAMPLE00000000000AB", "project.created", "cybercube", 1]);
      assert.equal(seen[0]!.headers.get("x-webhook-signature"), undefined);
    });

    test(`${name}: known jobs are not taken twice, not even when the keys were forgotten`, async () => {
      const inbox = await make();
      const event = cybercubeEvent();
      for (let i = 0; i < 2; i++) await harness({ profile, inbox, store: memoryStore() }).post(signCybercube(event));
      let runs = 0;
      const worker = inboxWorker({ inbox, handler: () => void runs++ });
      await worker.drain();
      await harness({ profile, inbox, store: memoryStore() }).post(signCybercube(event));
      await worker.drain();
      assert.equal(runs, 1);
    });

    test(`${name}: failures wait longer each time, a wait is kept to, and in the end the job is given up`, async () => {
      const inbox = await make();
      const clock = standingClock(1_700_000_000_000);
      await harness({ inbox, clock }).post(signEds("{}", { at: 1_700_000_000 }));
      const outcomes = ["fail", "fail", "later", "fail", "fail"];
      const dead: string[] = [];
      const worker = inboxWorker({
        inbox,
        clock,
        random: () => 1,
        base: 2,
        maxAttempts: 5,
        hooks: { onDead: (job, reason) => dead.push(`${job.attempt} ${reason}`), onError: () => undefined },
        handler: () => {
          if (outcomes.shift() === "later") return retryAfter(100, "busy");
          throw new Error("no");
        },
      });
      for (const [wait, taken] of [[0, 1], [1, 0], [1, 1], [3, 0], [1, 1], [99, 0], [1, 1], [15, 0], [1, 1], [1_000_000, 0]] as const) {
        clock.advance(wait);
        assert.equal(await worker.drain(), taken, `after ${wait} s`);
      }
      assert.deepEqual(dead, ["5 failed 5 times"]);
    });

    test(`${name}: a refusal gives the job up at once; others go on`, async () => {
      const inbox = await make();
      const h = harness({ inbox });
      await h.post(signEds('"bad"'));
      await h.post(signEds('"good"'));
      const dead: string[] = [];
      const done: string[] = [];
      const worker = inboxWorker({
        inbox,
        hooks: { onDead: (_, reason) => dead.push(reason) },
        handler: (d) => (d.json() === "bad" ? reject(422, "makes no sense") : void done.push(d.text())),
      });
      assert.equal(await worker.drain(), 2);
      assert.deepEqual([dead, done], [["makes no sense"], ['"good"']]);
    });

    test(`${name}: a job whose worker died is taken up by another when the lease ends; two workers share the work`, async () => {
      const inbox = await make();
      const clock = standingClock();
      const h = harness({ inbox, clock });
      for (let i = 0; i < 20; i++) await h.post(signEds(String(i), { at: Math.floor(clock() / 1000) }));
      const [lost] = await inbox.claim(1, clock() + 60_000, clock()); // and nothing more is heard of it
      const runs: string[] = [];
      const worker = (): Promise<number> => inboxWorker({ inbox, clock, handler: (d) => void runs.push(d.text()) }).drain();
      await Promise.all([worker(), worker()]);
      assert.equal(new Set(runs).size, 19);
      assert.equal(runs.length, 19);
      clock.advance(61);
      assert.equal(await worker(), 1);
      assert.equal(new Set(runs).size, 20);
      assert.equal(await inbox.settle(lost!, { state: "done", at: clock(), reason: "" }), false); // the dead worker has no say any more
      assert.equal(await inbox.purge(clock() + 1), 20);
    });

    test(`${name}: after the window a key is of another event: its job is taken, whatever became of the first one`, async () => {
      const inbox = await make();
      const clock = standingClock();
      const seen: string[] = [];
      const post = async (body: string): Promise<number> => {
        const h = harness({ inbox, clock, dedup: { window: 86400 }, store: memoryStore() });
        return (await h.post(signEds(body, { key: '"used-again-and-again"', at: Math.floor(clock() / 1000) }))).status;
      };
      const worker = inboxWorker({ inbox, clock, hooks: { onDead: () => undefined }, handler: (d) => (seen.push(d.text()), d.text() === '"second"' ? reject(422, "no") : undefined) });
      for (const [body, expected] of [['"first"', 1], ['"second"', 2], ['"third"', 3]] as const) {
        assert.equal(await post(body), 204);
        await worker.drain();
        assert.equal(seen.length, expected, body);
        clock.advance(86399);
        assert.equal(await post(body), 204); // within the window it is the same job
        await worker.drain();
        assert.equal(seen.length, expected, body);
        clock.advance(2);
      }
      assert.deepEqual(seen, ['"first"', '"second"', '"third"']);
    });

    test(`${name}: what a worker was stopped in the middle of costs no attempt`, async () => {
      const inbox = await make();
      const stop = new AbortController();
      await harness({ inbox }).post(signEds("{}"));
      const running = gate();
      const interrupted = inboxWorker({
        inbox,
        stopTimeout: 0.01,
        poll: 0.01,
        hooks: { onError: () => undefined },
        handler: (_, { signal }) => new Promise((_, fail) => (running.open(), signal.addEventListener("abort", () => fail(signal.reason)))),
      }).run(stop.signal);
      await running.opened;
      stop.abort();
      await interrupted;
      const [job] = await inbox.claim(1, Date.now() + 1000, Date.now() + 10);
      assert.equal(job!.attempt, 1);
    });

    test(`${name}: a job that kills every worker is given up in the end`, async () => {
      const inbox = await make();
      const clock = standingClock();
      await harness({ inbox, clock }).post(signEds("{}", { at: Math.floor(clock() / 1000) }));
      for (let i = 0; i < 3; i++) {
        assert.equal((await inbox.claim(1, clock() + 1000, clock())).length, 1); // and the worker dies
        clock.advance(1);
      }
      const dead: string[] = [];
      const worker = inboxWorker({ inbox, clock, maxAttempts: 3, hooks: { onDead: (_, reason) => dead.push(reason), onError: () => undefined }, handler: () => assert.fail("it killed three") });
      assert.equal(await worker.drain(), 1);
      assert.deepEqual(dead, ["begun 3 times, and no worker lived to finish it"]);
    });

    test(`${name}: a failing job does not hold up those behind it: who has been due for longest is first`, async () => {
      const inbox = await make();
      const clock = standingClock();
      const at = (): number => Math.floor(clock() / 1000);
      const h = harness({ inbox, clock });
      await h.post(signEds("1", { at: at() }));
      const [first] = await inbox.claim(1, clock() + 60_000, clock());
      clock.advance(1);
      await h.post(signEds("2", { at: at() }));
      await inbox.settle(first!, { state: "waiting", at: clock() + 1000, reason: "failed" });
      clock.advance(2);
      await h.post(signEds("3", { at: at() }));
      const jobs = [];
      for (let i = 0; i < 3; i++) jobs.push(restoredDelivery((await inbox.claim(1, clock() + 60_000, clock()))[0]!.delivery).text());
      assert.deepEqual(jobs, ["2", "1", "3"]);
    });

    test(`${name}: texts that a database does not take are mended, not refused for ever`, async () => {
      const inbox = await make();
      const h = harness({ profile, inbox });
      assert.equal((await h.post(signCybercube(JSON.stringify({ id: "evt_nul", type: "a\0b", created_at: "", data: {} })))).status, 200);
      const dead: string[] = [];
      const worker = inboxWorker({ inbox, hooks: { onDead: (_, reason) => dead.push(reason) }, handler: (d) => reject(422, `no\0pe ${d.eventType}`) });
      assert.equal(await worker.drain(), 1);
      assert.deepEqual(dead, ["no\0pe a\0b"]);
    });

    test(`${name}: run works until it is told to stop`, async () => {
      const inbox = await make();
      const stop = new AbortController();
      const handled = gate();
      const running = inboxWorker({ inbox, poll: 0.01, handler: () => handled.open() }).run(stop.signal);
      await harness({ inbox }).post(signEds("{}"));
      await handled.opened;
      stop.abort();
      await running;
    });
  });
}

for (const [name, database] of [["SQLite", sqlite], ["PostgreSQL", postgres]] as const) {
  test(`${name}: a job that cannot be read is given up, and the others go on`, async () => {
    const table = `inbox_${tables}`;
    const inbox = await fresh(database);
    const h = harness({ inbox });
    for (const body of ["1", "2", "3"]) await h.post(signEds(body));
    const { query } = database.options;
    await query(`UPDATE ${table} SET delivery = 'nonsense' WHERE id = (SELECT min(id) FROM ${table})`, []);
    await query(`UPDATE ${table} SET delivery = '{"delivery":{"body":"****"}}' WHERE id = (SELECT max(id) FROM ${table})`, []);
    const seen: string[] = [];
    assert.ok((await inboxWorker({ inbox, concurrency: 1, handler: (d) => void seen.push(d.text()) }).drain()) <= 1);
    await inboxWorker({ inbox, concurrency: 1, handler: (d) => void seen.push(d.text()) }).drain();
    await inboxWorker({ inbox, concurrency: 1, handler: (d) => void seen.push(d.text()) }).drain();
    assert.equal(seen.length, 1);
    const states = await query(`SELECT state, reason FROM ${table} ORDER BY state`, []);
    assert.deepEqual(("rows" in states ? states.rows : states).map((row) => Object.values(row)), [["dead", "cannot be read"], ["dead", "cannot be read"], ["done", ""]]);
  });

  test(`${name}: rows have the form of the other languages, and theirs are read`, async () => {
    const table = `inbox_${tables}`;
    const inbox = await fresh(database);
    await harness({ profile, inbox }).post(signCybercube(cybercubeEvent("evt_1")));
    const answer = await database.options.query(`SELECT id, delivery FROM ${table}`, []);
    const [row] = "rows" in answer ? answer.rows : answer;
    const stored = JSON.parse(String(row!["delivery"])) as Record<string, never>;
    assert.deepEqual(Object.keys(stored).sort(), ["data", "delivery", "id", "name"]);
    assert.equal(stored["id"], row!["id"]);
    assert.deepEqual(Object.keys(stored["delivery"]!).sort(), ["body", "headers", "identity", "method", "principal", "profile", "received_at", "signed_at", "url"]);
    // As Go writes it, with microseconds.
    const go = { id: "x", name: "process-webhook", data: { event_id: "e", event_type: "t", payload: { a: 1 }, received_at: "2026-01-17T12:00:00.000000Z" }, delivery: { profile: "ojs", principal: "shop", identity: { key: "k", eventId: "e", eventType: "t", attempt: 2 }, method: "POST", url: "https://x.example/", headers: [["content-type", "text/plain"]], body: "aGk=", signed_at: "2026-01-17T11:59:59.000000Z", received_at: "2026-01-17T12:00:00.000000Z" } };
    const { query, dialect } = database.options;
    const mark = (n: number): string => (dialect === "postgres" ? `$${n}` : "?");
    await query(`INSERT INTO ${table} (id, event_id, event_type, delivery, received_at) VALUES ('go', 'e', 't', ${mark(1)}, '2026-01-17T12:00:00.000000Z')`, [JSON.stringify(go)]);
    const [job] = await inbox.claim(1, Date.now() + 1000, Date.now());
    assert.deepEqual(job!.data.payload, { a: 1 });
    const delivery = restoredDelivery(job!.delivery);
    assert.deepEqual([delivery.text(), delivery.attempt, delivery.contentType, delivery.signedAt!.toISOString()], ["hi", 2, "text/plain", "2026-01-17T11:59:59.000Z"]);
  });

  test(`${name}: a transactional worker's writes are there with the end of their job, once`, async () => {
    const file = join(dir, "transactional.db");
    const opened = await openDatabase(name === "SQLite" ? "sqlite" : "postgres", name === "SQLite" ? file : schema);
    const inbox = sqlInbox({ ...opened.options, table: "tx_inbox" });
    await inbox.migrate();
    await opened.options.query("CREATE TABLE tx_effects (key TEXT NOT NULL)", []);
    const h = harness({ inbox });
    await h.post(signEds("{}"));
    const outcomes: (() => Result | void)[] = [() => { throw new Error("boom"); }, () => retryAfter(0), () => reject(422, "never"), () => undefined];
    const errors: string[] = [];
    const insert = `INSERT INTO tx_effects (key) VALUES (${name === "SQLite" ? "?" : "$1"})`;
    const worker = inboxWorker({
      inbox,
      transactional: true,
      random: () => 0,
      concurrency: 1,
      hooks: { onError: (e) => errors.push((e as Error).message), onDead: () => undefined },
      handler: async (d, context) => {
        await sqlOf(context)(insert, [d.key]);
        return outcomes.shift()!();
      },
    });
    assert.equal(await worker.drain(), 3); // thrown, put off, given up
    assert.deepEqual([errors, (await opened.rows("SELECT key FROM tx_effects")).length], [["boom"], 0]);
    await h.post(signEds("{}"));
    assert.equal(await worker.drain(), 1);
    assert.equal((await opened.rows("SELECT key FROM tx_effects")).length, 1);

    // A transaction that cannot begin costs no attempt.
    await h.post(signEds("{}"));
    let down = true;
    const flaky: typeof inbox = { ...inbox, transaction: (run) => (down ? Promise.reject(new Error("no connection")) : inbox.transaction!(run)) };
    const attempts: number[] = [];
    const begins = inboxWorker({ inbox: flaky, transactional: true, concurrency: 1, random: () => 1, base: 0.001, hooks: { onError: (e) => errors.push((e as Error).message) }, handler: () => undefined });
    assert.ok((await begins.drain()) >= 1);
    assert.equal(errors.at(-1), "no connection");
    down = false;
    const [waiting] = await inbox.claim(1, 0, Date.now() + 10 ** 6);
    attempts.push(waiting!.attempt);
    await inbox.settle(waiting!, { state: "done", at: Date.now(), reason: "" });
    assert.deepEqual(attempts, [1]);

    // One whose lease has ended has no say, and what it wrote is undone.
    await h.post(signEds("{}"));
    let other: ClaimedJob | undefined;
    const slow = inboxWorker({
      inbox,
      transactional: true,
      concurrency: 1,
      hooks: { onError: (e) => errors.push((e as Error).message) },
      handler: async (d, context) => {
        other ??= (await inbox.claim(1, Date.now() + 10 ** 9, Date.now() + 10 ** 9))[0]; // another has taken it up
        await sqlOf(context)(insert, [d.key]);
      },
    });
    assert.equal(await slow.drain(), 1);
    assert.equal((await opened.rows("SELECT key FROM tx_effects")).length, 1);
    assert.match(errors.at(-1)!, /lease ended/);
    assert.equal(await inbox.settle(other!, { state: "waiting", at: 0, reason: "" }), true);
    assert.equal(await slow.drain(), 1);
    assert.equal((await opened.rows("SELECT key FROM tx_effects")).length, 2);
    await opened.close();
  });
}

test("transactional is refused where it cannot be", () => {
  assert.throws(() => inboxWorker({ inbox: memoryInbox(), transactional: true, handler: () => undefined }), /inbox with transactions/);
});

test("one job is one delivery, by whichever host and query it came where these are not signed", async () => {
  const inbox = memoryInbox();
  const event = cybercubeEvent();
  for (const url of ["https://a.example/in", "https://b.example/in", "https://a.example/in?x=1"]) {
    assert.equal((await harness({ profile, inbox, store: memoryStore() }).post(signCybercube(event, { url }))).status, 200); // each knows nothing of the others
  }
  assert.deepEqual(inbox.states(), { waiting: 1, claimed: 0, done: 0, dead: 0 });
});

test("a job whose handler is late is not put back while it still runs", async () => {
  const inbox = memoryInbox();
  await harness({ inbox }).post(signEds("{}"));
  const aborted = gate();
  const open = gate();
  let running = 0;
  let most = 0;
  const stop = new AbortController();
  const options = {
    inbox,
    timeout: 0.01,
    base: 0.001,
    poll: 0.005,
    hooks: { onError: () => undefined },
    handler: async (_: Delivery, { signal }: { signal: AbortSignal }) => {
      most = Math.max(most, ++running);
      signal.addEventListener("abort", () => aborted.open());
      await open.opened; // and pays no heed to the signal
      running--;
    },
  };
  const workers = [inboxWorker(options).run(stop.signal), inboxWorker(options).run(stop.signal)];
  await aborted.opened;
  await new Promise((resolve) => setTimeout(resolve, 40)); // time enough for the other one to take it up
  assert.deepEqual([running, most, inbox.states().claimed], [1, 1, 1]);
  open.open();
  stop.abort();
  await Promise.all(workers);
  assert.equal(inbox.states().done, 1); // its result counts after all
});

test("jobs that are done long ago are dropped, in small steps", async () => {
  const clock = standingClock();
  const inbox = memoryInbox();
  await harness({ inbox, clock }).post(signEds("{}", { at: Math.floor(clock() / 1000) }));
  const worker = inboxWorker({ inbox, clock, handler: () => undefined });
  await worker.drain();
  clock.advance(30 * 86400);
  assert.equal(await worker.purge(), 0);
  clock.advance(1);
  assert.equal(await worker.purge(), 1);
});

test("a queue that does not answer has failed", async () => {
  const h = harness({ profile, storeTimeout: 0.02, inbox: { enqueue: () => new Promise(() => undefined) } });
  assert.equal((await h.post(signCybercube(cybercubeEvent()))).status, 500);
});

test("a queue that fails is answered 500, never 2xx, and the retry is taken [CCW-RCV-7]", async () => {
  const inner = memoryInbox();
  let down = true;
  const inbox = { enqueue: (job: InboxJob) => (down ? Promise.reject(new Error("queue is down")) : inner.enqueue(job)) };
  const h = harness({ profile, inbox });
  const event = cybercubeEvent();
  assert.equal((await h.post(signCybercube(event))).status, 500);
  down = false;
  assert.equal((await h.post(signCybercube(event))).status, 200);
  assert.equal(inner.states().waiting, 1);
});

test("an unverified request never reaches the inbox [CCW-RCV-7 CCW-RCV-1]", async () => {
  const inbox = memoryInbox();
  const h = harness({ profile, inbox });
  assert.equal((await h.post({ ...signCybercube(cybercubeEvent()), body: Buffer.from("{}") })).status, 401);
  assert.equal(inbox.states().waiting, 0);
});

test("a queue of one's own gets the name and the four members [CCW-RCV-7]", async () => {
  const added: { name: string; data: Record<string, unknown>; id: string }[] = [];
  const clock = standingClock(1_737_100_000_000);
  const inbox = queueInbox(async (name, data, id) => added.push({ name, data: data as never, id }));
  const event = cybercubeEvent("evt_1");
  await harness({ profile, inbox, clock }).post(signCybercube(event, { at: 1_737_100_000 }));
  const [{ name, data, id }] = added as [(typeof added)[0]];
  const { delivery, ...members } = data;
  assert.equal(name, "process-webhook");
  assert.match(id, /^[0-9a-f]{64}$/);
  assert.deepEqual(members, { event_id: "evt_1", event_type: "project.created", payload: JSON.parse(event), received_at: "2025-01-17T07:46:40.000Z" });
  assert.equal(restoredDelivery(delivery as StoredDelivery).text(), event);
});

test("bytes that are no JSON come through the inbox as they are", async () => {
  const inbox = memoryInbox();
  for (const bytes of [Buffer.from([0, 255, 254, 10, 13]), Buffer.from('{"a":"\xff"}', "latin1")]) {
    await harness({ inbox }).post(signEds(bytes, { contentType: "application/octet-stream" }));
    const [job] = await inbox.claim(1, 0, Date.now());
    assert.equal(job!.data.payload, bytes.toString("base64"));
    const got: Uint8Array[] = [];
    await inboxWorker({ inbox, handler: (d) => void got.push(d.body) }).drain();
    assert.deepEqual(Buffer.from(got[0]!), bytes);
  }
});

test("a worker's handler that is late has failed", async () => {
  const inbox = memoryInbox();
  await harness({ inbox }).post(signEds("{}"));
  const errors: string[] = [];
  const worker = inboxWorker({
    inbox,
    timeout: 0.02,
    base: 3600,
    random: () => 1,
    hooks: { onError: (e) => errors.push((e as Error).message) },
    handler: (_, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason))),
  });
  assert.equal(await worker.drain(), 1);
  assert.deepEqual(errors, ["the handler's time is over"]);
  assert.equal(inbox.states().waiting, 1);
});
