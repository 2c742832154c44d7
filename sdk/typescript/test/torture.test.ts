/**
 * Fifty concurrent duplicates of each event, connections that drop before and after the handler, handlers that fail, and
 * two receivers on one store that are killed at any moment, also between a handler's effect and its completion. The effect
 * is written in the transaction that completes the key, and so it is there once for each event.
 *
 * When a receiver dies, its successor's clock is ahead by a lease: keys that the dead one held are free at once, and so are
 * some that the other receiver still holds, which then must not complete them.
 *
 * GODWIT_TORTURE_EVENTS=1000 is the full size.
 */
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { sqlStore } from "@godwit/receiver";
import { openDatabase } from "./support/database.js";
import { openRedis } from "./support/redis.js";
import { signStandard } from "./support/sign.js";
import type { StoreKind } from "./support/victim.js";

const events = Number(process.env["GODWIT_TORTURE_EVENTS"] ?? 12);
const duplicates = 50;
const atATime = 4;
const lease = 3000;
const patience = 60_000 + events * 2000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const eventId = (n: number): string => `msg_${n}`;

/** Where a store and the effects are. */
interface Place {
  readonly name: string;
  effects(): Promise<string[]>;
}

async function newPlace(t: TestContext, kind: StoreKind): Promise<Place> {
  if (kind === "redis") {
    const redis = await openRedis();
    t.after(() => redis.close());
    return { name: redis.prefix, effects: async () => (await redis.call("LRANGE", `${redis.prefix}effects`, "0", "-1")) as string[] };
  }
  const dir = mkdtempSync(join(tmpdir(), "godwit-torture-"));
  const name = kind === "sqlite" ? join(dir, "torture.db") : `torture_ts_${process.pid}`;
  const database = await openDatabase(kind as "sqlite" | "postgres", name);
  t.after(async () => {
    if (kind === "postgres") await database.options.query(`DROP SCHEMA ${name} CASCADE`, []);
    await database.close();
    rmSync(dir, { recursive: true, force: true });
  });
  await sqlStore(database.options).migrate();
  await database.options.query("CREATE TABLE effects (id TEXT NOT NULL)", []);
  return { name, effects: async () => (await database.rows("SELECT id FROM effects")).map((row) => String(row["id"])) };
}

/** The receivers: as many as they shall be, whatever happens to them. */
class Herd {
  readonly #kind: StoreKind;
  readonly #place: string;
  readonly #children: (ChildProcess | undefined)[] = [];
  readonly #ports: (number | undefined)[] = [];
  #stopping = false;
  ahead = 0;
  deaths = 0;
  readonly faults: string[] = [];

  constructor(kind: StoreKind, place: string) {
    this.#kind = kind;
    this.#place = place;
  }

  async start(n: number): Promise<void> {
    const child = fork(new URL("./support/victim.js", import.meta.url), [this.#kind, this.#place, String(this.ahead)], { execArgv: ["--no-warnings"] });
    this.#children[n] = child;
    child.once("message", (port) => (this.#ports[n] = port as number));
    child.once("exit", (code, signal) => {
      this.#ports[n] = undefined;
      this.#children[n] = undefined;
      if (this.#stopping) return;
      if (signal !== "SIGKILL") return void this.faults.push(`a receiver ended with ${code}`);
      this.deaths++;
      this.ahead += lease;
      void this.start(n);
    });
    await Promise.race([once(child, "message"), once(child, "exit")]);
  }

  /** A port that is in use, or was a moment ago. */
  port(): number | undefined {
    const live = this.#ports.filter((port) => port !== undefined);
    return live[Math.floor(Math.random() * live.length)];
  }

  killOne(): void {
    const live = this.#children.filter((child) => child !== undefined && !child.killed);
    live[Math.floor(Math.random() * live.length)]?.kill("SIGKILL");
  }

  /** Asks the first one for what it remembers. */
  async ask(): Promise<string[]> {
    const [child] = this.#children;
    child!.send("effects");
    return ((await once(child!, "message")) as [string[]])[0];
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#children.map(async (child) => child?.kill("SIGKILL") && once(child, "exit")));
  }
}

/** The senders. */
class Volley {
  readonly #herd: Herd;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 512 });
  readonly #until = Date.now() + patience;
  readonly counts = { requests: 0, dropped: 0, refused: 0, replayed: 0 };
  readonly faults: string[] = [];

  constructor(herd: Herd) {
    this.#herd = herd;
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Sends all duplicates of an event, each until it is acknowledged. */
  async deliver(event: number): Promise<void> {
    await Promise.all(
      Array.from({ length: duplicates }, async () => {
        while (!(await this.#attempt(event))) {
          if (Date.now() > this.#until) return void this.faults.push(`${eventId(event)} was not acknowledged in time`);
          await pause(2 + Math.random() * 40);
        }
      }),
    );
  }

  async #attempt(event: number): Promise<boolean> {
    const port = this.#herd.port();
    if (port === undefined) return false;
    this.counts.requests++;
    const at = Math.floor((Date.now() + this.#herd.ahead) / 1000);
    const { headers, body } = signStandard(JSON.stringify({ type: "order.paid", order: event }), { id: eventId(event), at });
    const answer = await this.#send(port, headers, body);
    if (answer === undefined) this.counts.dropped++;
    else if (answer.status >= 500) this.counts.refused++;
    else if (answer.status === 200 && answer.text === eventId(event)) this.counts.replayed += answer.replayed ? 1 : 0;
    else this.faults.push(`${eventId(event)} was answered ${answer.status} ${answer.text}`);
    return answer !== undefined && answer.status < 500;
  }

  /** One request; undefined if there was no whole answer. Some senders hang up before they have one. */
  #send(port: number, headers: Record<string, string>, body: Buffer): Promise<{ status: number; replayed: boolean; text: string } | undefined> {
    return new Promise((resolve) => {
      const request = httpRequest({ port, host: "127.0.0.1", path: "/hooks", method: "POST", agent: this.#agent, headers: { ...headers, "Content-Length": body.length } });
      request.on("error", () => resolve(undefined));
      request.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part) => (text += part));
        response.on("error", () => resolve(undefined));
        response.on("end", () => resolve({ status: response.statusCode!, replayed: response.headers["idempotency-replayed"] === "true", text }));
      });
      request.setTimeout(30_000, () => request.destroy());
      if (Math.random() >= 0.02) return void request.end(body);
      request.write(body.subarray(0, Math.random() < 0.5 ? 5 : body.length));
      setTimeout(() => request.destroy(new Error("hung up")), Math.random() * 5);
    });
  }
}

async function torture(t: TestContext, kind: StoreKind): Promise<void> {
  const durable = kind !== "memory";
  const place = durable ? await newPlace(t, kind) : undefined;
  const herd = new Herd(kind, place?.name ?? "");
  t.after(() => herd.stop());
  await Promise.all(durable ? [herd.start(0), herd.start(1)] : [herd.start(0)]);
  const volley = new Volley(herd);
  t.after(() => volley.close());
  const began = Date.now();
  const every = Math.max(4, Math.floor(events / 20));
  let next = 0;
  await Promise.all(
    Array.from({ length: atATime }, async () => {
      while (next < events) {
        const event = next++;
        const delivered = volley.deliver(event);
        if (durable && event % every === every >> 1) herd.killOne(); // whatever it is doing
        await delivered;
      }
    }),
  );
  const effects = durable ? await herd.stop().then(() => place!.effects()) : await herd.ask();
  const { requests, dropped, refused, replayed } = volley.counts;
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  t.diagnostic(`${kind}: ${events} events in ${seconds} s, ${requests} requests: ${dropped} dropped, ${refused} refused for a while, ${replayed} replayed; ${herd.deaths} deaths`);
  assert.deepEqual([...herd.faults, ...volley.faults], []);
  const counts = new Map(Array.from({ length: events }, (_, n) => [eventId(n), 0]));
  for (const id of effects) counts.set(id, (counts.get(id) ?? 0) + 1);
  assert.deepEqual([...counts].filter(([, n]) => n !== 1), [], "effects that did not happen once");
  assert.ok(dropped > 0 && refused > 0 && replayed > 0 && (!durable || herd.deaths > 1), "that was no torture");
}

for (const kind of ["memory", "sqlite", "postgres", "redis"] as const) {
  test(`${kind}: duplicates, drops, failures and deaths, and one effect an event [CCW-IDM-1 CCW-IDM-7 CCW-IDM-11 IKH-DEF-4]`, { timeout: patience + 30_000 }, (t) => torture(t, kind));
}
