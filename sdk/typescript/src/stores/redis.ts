import type { CompleteRequest, Outcome, Reservation, ReserveRequest, Store, StoreTransaction } from "./store.js";

/** A node-redis client (`sendCommand`) or an ioredis client (`call`). You create, connect and close it. */
export type RedisClient =
  | { call(command: string, ...args: string[]): Promise<unknown> }
  | { sendCommand(args: string[]): Promise<unknown> };

export interface RedisStoreOptions {
  /** Prefix of every key. Defaults to "godwit:". */
  readonly prefix?: string;
}

/** Sends one command with either client. */
export function redisCommand(client: RedisClient): (...args: string[]) => Promise<unknown> {
  if ("call" in client) return (command, ...args) => client.call(command!, ...args);
  return (...args) => client.sendCommand(args);
}

/** Adds a command that Redis runs in the step that completes the key. It must be one that cannot fail. */
export type RedisQueue = (command: string, ...args: string[]) => void;

/**
 * Scripts compare the holder's token and change the key in one step. The time is the caller's. Redis also expires
 * entries by its own clock, so that nothing needs to be purged. A client that lost the reply may send a script again
 * (ioredis does): if it finds its own token, the first call succeeded.
 */
export const redisScripts = {
  reserve: `local held = redis.call('GET', KEYS[1])
if held then
  local entry = cjson.decode(held)
  if entry.token == ARGV[4] and not entry.outcome then return false end
  if not entry['until'] or entry['until'] > tonumber(ARGV[3]) then return held end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false`,
  complete: `local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
for _, command in ipairs(cjson.decode(ARGV[4])) do redis.call(unpack(command)) end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`,
  release: `local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local entry = cjson.decode(held)
if entry.token ~= ARGV[1] or entry.outcome then return 0 end
return redis.call('DEL', KEYS[1])`,
  remember: `local known = redis.call('GET', KEYS[1])
if known == ARGV[1] then return 1 end
if known and (known == '1' or tonumber(string.match(known, '^%d+')) > tonumber(ARGV[3])) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`,
} as const;

interface Entry {
  readonly token: string;
  readonly fingerprint: string;
  /** The end of the lease or the window, by the writer's clock. */
  readonly until: number;
  readonly outcome?: Outcome;
}

/**
 * A store in Redis or a compatible server, shared by all processes. Use an instance that does not evict keys
 * (maxmemory-policy noeviction) and writes to disk (appendonly yes, appendfsync always); otherwise duplicates are
 * processed.
 *
 * In a cluster, queued commands need keys in the slot of the store's own, by a hash tag in `prefix`.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  const command = redisCommand(client);
  const prefix = options.prefix ?? "godwit:";
  const run = (script: keyof typeof redisScripts, key: string, ...args: string[]): Promise<unknown> =>
    command("EVAL", redisScripts[script], "1", key, ...args);
  const ttl = (until: number, now: number): string => String(Math.max(1, Math.ceil(until - now)));
  const complete = async ({ scope, fingerprint, token, outcome, now, expiresAt }: CompleteRequest, effects: readonly string[][]): Promise<boolean> => {
    const entry: Entry = { token, fingerprint, until: expiresAt, outcome };
    const args = [token, JSON.stringify(entry), ttl(expiresAt, now), JSON.stringify(effects)];
    return Number(await run("complete", `${prefix}key:${scope}`, ...args)) === 1;
  };
  return {
    async reserve({ scope, fingerprint, token, now, leaseUntil }: ReserveRequest): Promise<Reservation> {
      const entry: Entry = { token, fingerprint, until: leaseUntil };
      const held = await run("reserve", `${prefix}key:${scope}`, JSON.stringify(entry), ttl(leaseUntil, now), String(now), token);
      if (held === null || held === undefined) return { state: "reserved" };
      const found = JSON.parse(String(held)) as Entry;
      if (found.outcome === undefined) return { state: "in-progress", fingerprint: found.fingerprint };
      return { state: "completed", fingerprint: found.fingerprint, outcome: found.outcome };
    },
    complete: (request) => complete(request, []),
    async transaction<T>(run: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
      const commands: string[][] = [];
      let open = true;
      const queue: RedisQueue = (...command) => {
        if (!open) throw new Error("the transaction is over");
        commands.push(command);
      };
      try {
        return await run({ handle: queue, complete: (request) => ((open = false), complete(request, commands)) });
      } finally {
        open = false;
      }
    },
    async release(scope: string, token: string): Promise<void> {
      await run("release", `${prefix}key:${scope}`, token);
    },
    async remember(value: string, until: number, now: number): Promise<boolean> {
      const mark = `${until} ${crypto.randomUUID()}`;
      return Number(await run("remember", `${prefix}nonce:${value}`, mark, ttl(until, now), String(now))) === 1;
    },
    async purge(): Promise<number> {
      return 0;
    },
  };
}
