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
  type Delivery,
  type Inbox,
  type InboxJob,
  type StoredDelivery,
} from "@godwit/receiver";
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
      const began = performance.now();
      for (let attempt = 1; attempt < 4; attempt++) {
        const answer = await h.post(signCybercube(event, { attempt }));
        assert.deepEqual([answer.status, await answer.json()], [200, { received: true, event_id: "evt_01JHS0EXAMPLE00000000000AB" }]);
      }
      order.push("answered");
      assert.ok((performance.now() - began) / 3 < 100, "the answer does not wait for the work");
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
        hooks: { onDead: (job, reason) => dead.push(`${job.attempt} ${reason}`) },
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
  const bytes = Buffer.from([0, 255, 254, 10, 13]);
  await harness({ inbox }).post(signEds(bytes, { contentType: "application/octet-stream" }));
  const got: Uint8Array[] = [];
  await inboxWorker({ inbox, handler: (d) => void got.push(d.body) }).drain();
  assert.deepEqual(Buffer.from(got[0]!), bytes);
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
