/**
 * A receiver as a process: serves deliveries of CYBERCUBE over HTTP and writes one effect an event, in the transaction that
 * completes its key. It may be killed at any time. Arguments: the store's kind, its place, a port.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { cybercube, receiver, redisOf, redisStore, sqlOf, sqlStore, type Handler, type Store } from "@godwit/receiver";
import { nodeListener } from "@godwit/receiver/node";
import { openDatabase } from "./database.js";
import { openRedis } from "./redis.js";
import { secret } from "./sign.js";

process.on("disconnect", () => process.exit(1)); // never outlive the test

const [kind, place] = process.argv.slice(2) as ["sqlite" | "postgres" | "redis", string];
let store: Store;
let effect: Handler;
if (kind === "redis") {
  const redis = await openRedis(place);
  store = redisStore(redis.client, { prefix: place });
  effect = (delivery, context) => redisOf(context)("RPUSH", `${place}effects`, delivery.eventId);
} else {
  const database = await openDatabase(kind, place);
  store = sqlStore(database.options);
  effect = async (delivery, context) => {
    await sqlOf(context)(`INSERT INTO effects (event_id) VALUES (${kind === "sqlite" ? "?" : "$1"})`, [delivery.eventId]);
  };
}

const hooks = receiver({
  profile: cybercube({ secrets: secret }),
  store,
  transactional: true,
  publicOrigin: "https://hooks.example.com", // the port is another one after each start, the receiver is not
  timeout: 0.6,
  dedup: { lease: 0.7 },
  async handler(delivery, context) {
    await effect(delivery, context);
    await new Promise((resolve) => setTimeout(resolve, 2)); // a moment in which to be killed
  },
});

const server = createServer(nodeListener(hooks)).listen(0, "127.0.0.1", () => process.send!((server.address() as AddressInfo).port));
