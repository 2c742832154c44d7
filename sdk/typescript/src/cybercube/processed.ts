/** Where processed events are remembered: in memory, in Redis, or in the standard's own table (CCW-IDM-8). */
import { redisCommand, type RedisClient } from "../stores/redis.js";
import { createSchema, plainText, rowsOfOthers, statements, tableName, type SqlOptions } from "../stores/sql.js";
import { day } from "../profiles/profile.js";
import type { ProcessedEvent, ProcessedEvents } from "./processor.js";

/** Remembers processed events in the memory of this process only. */
export function memoryProcessedEvents(): ProcessedEvents {
  const events = new Map<string, { token: string; receivedAt: number; processed?: ProcessedEvent }>();
  return {
    async get(id) {
      return events.get(id)?.processed;
    },
    async lock({ id }, now, expiredBefore) {
      const held = events.get(id);
      if (held !== undefined && (held.processed !== undefined || held.receivedAt > expiredBefore.getTime())) return undefined;
      const token = crypto.randomUUID();
      events.set(id, { token, receivedAt: now.getTime() });
      return token;
    },
    async markProcessed(id, token, result, now) {
      const held = events.get(id);
      if (held?.token !== token || held.processed !== undefined) return false;
      held.processed = { event_id: id, processed_at: now, result };
      return true;
    },
    async releaseLock(id, token) {
      const held = events.get(id);
      if (held?.token === token && held.processed === undefined) events.delete(id);
    },
    async cleanup(before, limit = Infinity) {
      const old = [...events].filter(([, event]) => event.receivedAt < before.getTime()).slice(0, limit);
      for (const [id] of old) events.delete(id);
      return old.length;
    },
  };
}

/** The schema of section 6.3, for both dialects. */
export function processedEventsSchema({ dialect, table = "processed_webhook_events" }: Pick<SqlProcessedOptions, "dialect" | "table">): string[] {
  const name = tableName(table).text;
  const now = dialect === "postgres" ? "NOW()" : "(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";
  return [
    `CREATE TABLE IF NOT EXISTS ${name} (
  event_id VARCHAR(30) PRIMARY KEY,
  event_type VARCHAR(100) NOT NULL,
  received_at TIMESTAMPTZ NOT NULL DEFAULT ${now},
  processed_at TIMESTAMPTZ,
  processing_status VARCHAR(20) NOT NULL DEFAULT 'pending',
  result TEXT
)`,
    `CREATE INDEX IF NOT EXISTS idx_received_at ON ${name} (received_at)`,
  ];
}

export interface SqlProcessedOptions extends SqlOptions {
  /** Defaults to processed_webhook_events. */
  readonly table?: string;
}

/**
 * In the standard's table. A pending row is the lock, and its time of receipt is the holder's token: another holder
 * takes a row over only when that time is old enough, and sets a new one.
 */
export function sqlProcessedEvents(options: SqlProcessedOptions): ProcessedEvents & { migrate(): Promise<void> } {
  const sql = statements(options);
  const table = tableName(options.table ?? "processed_webhook_events");
  const skipLocked = rowsOfOthers(options);
  return {
    migrate: () => createSchema(options, processedEventsSchema(options)),
    async get(id) {
      const [row] = await sql`SELECT event_id, processed_at, result FROM ${table}
WHERE event_id = ${id} AND processing_status = 'processed'`;
      if (row === undefined) return undefined;
      const at = row["processed_at"];
      return { event_id: id, processed_at: at instanceof Date ? at : new Date(String(at)), result: String(row["result"] ?? "") };
    },
    async lock({ id, type }, now, expiredBefore) {
      const token = now.toISOString();
      const taken = await sql`INSERT INTO ${table} AS held (event_id, event_type, received_at)
VALUES (${id}, ${type}, ${token})
ON CONFLICT (event_id) DO UPDATE SET received_at = excluded.received_at
WHERE held.processing_status = 'pending' AND held.received_at <= ${expiredBefore.toISOString()}
RETURNING event_id`;
      return taken.length > 0 ? token : undefined;
    },
    async markProcessed(id, token, result, now) {
      const kept = await sql`UPDATE ${table} SET processing_status = 'processed', processed_at = ${now.toISOString()}, result = ${plainText(result)}
WHERE event_id = ${id} AND processing_status = 'pending' AND received_at = ${token} RETURNING event_id`;
      return kept.length > 0;
    },
    async releaseLock(id, token) {
      await sql`DELETE FROM ${table} WHERE event_id = ${id} AND processing_status = 'pending' AND received_at = ${token}`;
    },
    async cleanup(before, limit = 1_000_000) {
      const gone = await sql`DELETE FROM ${table} WHERE event_id IN
  (SELECT event_id FROM ${table} WHERE received_at < ${before.toISOString()} LIMIT ${limit} ${skipLocked}) RETURNING event_id`;
      return gone.length;
    },
  };
}

export interface RedisProcessedOptions {
  /** Prefix of every key. Defaults to "godwit:". */
  readonly prefix?: string;
  /** How long events are remembered, in seconds. Defaults to 30 days; the floor is 7 (CCW-IDM-9). */
  readonly retentionSeconds?: number;
}

/** As in a store: a script that is sent again, because its reply was lost, finds its own token. */
const scripts = {
  lock: `local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then return 1 end
if held or redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`,
  mark: `local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
if held then redis.call('DEL', KEYS[1]) end
local kept = redis.call('GET', KEYS[2])
if kept then return kept == ARGV[2] and 1 or 0 end
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
return 1`,
  unlock: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`,
} as const;

/** In Redis: the lock ends by Redis' own clock, and all entries expire by themselves. */
export function redisProcessedEvents(client: RedisClient, options: RedisProcessedOptions = {}): ProcessedEvents {
  const command = redisCommand(client);
  const { prefix = "godwit:", retentionSeconds = 30 * day } = options;
  if (!(retentionSeconds >= 7 * day)) throw new Error("events must be remembered for 7 days at least");
  const processed = (id: string): string => `${prefix}processed:{${id}}`;
  const run = async (script: keyof typeof scripts, id: string, ...args: string[]): Promise<boolean> =>
    Number(await command("EVAL", scripts[script], "2", `${prefix}lock:{${id}}`, processed(id), ...args)) === 1;
  return {
    async get(id) {
      const value = await command("GET", processed(id));
      if (value === null || value === undefined) return undefined;
      const { at, result } = JSON.parse(String(value)) as { at: string; result: string };
      return { event_id: id, processed_at: new Date(at), result };
    },
    async lock({ id }, now, expiredBefore) {
      const token = crypto.randomUUID();
      const ttl = String(Math.max(1, now.getTime() - expiredBefore.getTime()));
      return (await run("lock", id, token, ttl)) ? token : undefined;
    },
    markProcessed(id, token, result, now) {
      return run("mark", id, token, JSON.stringify({ at: now.toISOString(), result, token }), String(Math.ceil(retentionSeconds)));
    },
    async releaseLock(id, token) {
      await run("unlock", id, token);
    },
    async cleanup() {
      return 0;
    },
  };
}
