/** Connections to the Redis of GODWIT_TEST_REDIS, one by each client that the README names. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import type { RedisClient } from "@godwit/receiver";

export interface RedisPlace {
  /** ioredis. */
  readonly client: RedisClient;
  /** node-redis. */
  readonly other: RedisClient;
  /** Of keys that no other test uses. */
  readonly prefix: string;
  /** Sends one command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  close(): Promise<void>;
}

export function redisUrl(): string {
  const url = process.env["GODWIT_TEST_REDIS"];
  if (url === undefined) throw new Error("no Redis for this test: run npm test, or set GODWIT_TEST_REDIS");
  return url;
}

export async function openRedis(prefix = `ts-${process.pid}-${crypto.randomUUID()}:`): Promise<RedisPlace> {
  const client = new Redis(redisUrl());
  const other = createClient({ url: redisUrl() });
  client.on("error", () => undefined); // who sends a command hears of it
  other.on("error", () => undefined);
  await other.connect();
  return {
    client,
    other,
    prefix,
    call: (command, ...args) => client.call(command, ...args),
    async close() {
      client.disconnect();
      other.destroy();
    },
  };
}
