/**
 * A receiver as a process of its own, for the torture test: it may be killed at any time, and kills itself now and then.
 * Arguments: kind and place of the store, and how many milliseconds its clock is ahead.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { accepted, memoryStore, receiver, redisOf, redisStore, retryAfter, sqlOf, sqlStore, standardWebhooks, type HandlerContext, type Result, type Store } from "@godwit/receiver";
import { nodeIncoming, nodeListener } from "@godwit/receiver/node";
import { secret } from "./sign.js";

process.on("disconnect", () => process.exit(1)); // never outlive the test

export type StoreKind = "memory" | "sqlite" | "postgres" | "redis";

interface Opened {
  readonly store: Store;
  /** Writes an effect, in the handler's transaction where there is one. */
  effect(context: HandlerContext, id: string): Promise<void>;
}

async function open(kind: StoreKind, place: string): Promise<Opened> {
  if (kind === "memory") {
    const effects: string[] = [];
    process.on("message", () => process.send!(effects));
    return { store: memoryStore(), effect: async (_, id) => void effects.push(id) };
  }
  if (kind === "redis") {
    const { openRedis } = await import("./redis.js"); // each loads its clients alone: it starts often
    const { client } = await openRedis(place);
    return { store: redisStore(client, { prefix: place }), effect: async (context, id) => redisOf(context)("RPUSH", `${place}effects`, id) };
  }
  const { openDatabase } = await import("./database.js");
  const { options } = await openDatabase(kind, place);
  const store = sqlStore(options);
  const insert = `INSERT INTO effects (id) VALUES (${kind === "sqlite" ? "?" : "$1"})`;
  return {
    store,
    async effect(context, id) {
      await sqlOf(context)(insert, [id]);
    },
  };
}

const [kind, place, ahead] = process.argv.slice(2) as [StoreKind, string, string];
const { store, effect } = await open(kind, place);
const durable = kind !== "memory";
const chance = (percent: number): boolean => Math.random() * 100 < percent;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Fails in any way. With a transaction that may be after the effect, which is undone then; without one it must be before. */
async function suffer(): Promise<Result | undefined> {
  if (durable && chance(5)) process.kill(process.pid, "SIGKILL"); // after the effect, before its completion
  if (chance(5)) throw new Error("failed");
  if (chance(5)) return Promise.reject(new TypeError("failed later"));
  if (chance(5)) return retryAfter(0.001, "not now");
  // Slow enough for the other receiver, whose clock may be ahead, to take the key over.
  if (chance(25)) await pause(Math.random() * 100);
  return undefined;
}

const hooks = receiver({
  profile: standardWebhooks({ keys: secret }),
  store,
  transactional: durable,
  publicOrigin: "https://hooks.example.com", // the port is another one after each start, the receiver is not
  timeout: 2,
  dedup: { lease: 3 },
  freshness: { tolerance: 3600 },
  clock: () => Date.now() + Number(ahead),
  hooks: { onError: () => undefined, onWarning: () => undefined },
  async handler(delivery, context) {
    if (durable) await effect(context, delivery.key);
    const result = await suffer();
    if (!durable && result === undefined) await effect(context, delivery.key);
    return result ?? accepted(delivery.key);
  },
});

/** Drops connections before the receiver has seen a request, and after it has dealt with it. */
const listener = nodeListener(hooks);
const server = createServer((request, response) => {
  if (chance(3)) request.socket.destroy();
  else if (chance(3)) void hooks.receive(nodeIncoming(request)).then(() => request.socket.destroy());
  else listener(request, response);
});
server.listen(0, "127.0.0.1", () => process.send!((server.address() as AddressInfo).port));
