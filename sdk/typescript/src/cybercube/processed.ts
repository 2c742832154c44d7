/** Where processed events are remembered: in memory, in Redis, or in the standard's own table (CCW-IDM-8). */
import { redisCommand, type RedisClient } from "../stores/redis.js";
import { createSchema, statements, tableName, type SqlOptions } from "../stores/sql.js";
import { day } from "../profiles/profile.js";
import type { ProcessedEvent, ProcessedEvents } from "./processor.js";

/** In this process alone. */
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
      if (held?.token === token) held.processed = { event_id: id, processed_at: now, result };
    },
    async releaseLock(id, token) {
      const held = events.get(id);
      if (held?.token === token && held.processed === undefined) events.delete(id);
    },
    async cleanup(before) {
      const old = [...events].filter(([, event]) => event.receivedAt < before.getTime());
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
 * In the standard's table. A pending row is the lock, and the time it was received is the holder's token: a row is taken
 * over only when that time is old enough, and it gets a new one then.
 */
export function sqlProcessedEvents(options: SqlProcessedOptions): ProcessedEvents & { migrate(): Promise<void> } {
  const sql = statements(options);
  const table = tableName(options.table ?? "processed_webhook_events");
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
      await sql`UPDATE ${table} SET processing_status = 'processed', processed_at = ${now.toISOString()}, result = ${result}
WHERE event_id = ${id} AND processing_status = 'pending' AND received_at = ${token}`;
    },
    async releaseLock(id, token) {
      await sql`DELETE FROM ${table} WHERE event_id = ${id} AND processing_status = 'pending' AND received_at = ${token}`;
    },
    async cleanup(before) {
      return (await sql`DELETE FROM ${table} WHERE received_at < ${before.toISOString()} RETURNING event_id`).length;
    },
  };
}

export interface RedisProcessedOptions {
  /** Put before every key. Defaults to "godwit:". */
  readonly prefix?: string;
  /** How long events are remembered, in seconds. Defaults to 30 days. */
  readonly retentionSeconds?: number;
}

const unlock = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** In Redis: the lock is SET NX with an expiry, and everything expires by itself. */
export function redisProcessedEvents(client: RedisClient, options: RedisProcessedOptions = {}): ProcessedEvents {
  const command = redisCommand(client);
  const { prefix = "godwit:", retentionSeconds = 30 * day } = options;
  const get = async (id: string): Promise<ProcessedEvent | undefined> => {
    const value = await command("GET", `${prefix}processed:${id}`);
    if (value === null || value === undefined) return undefined;
    const { at, result } = JSON.parse(String(value)) as { at: string; result: string };
    return { event_id: id, processed_at: new Date(at), result };
  };
  return {
    get,
    async lock({ id }, now, expiredBefore) {
      const token = crypto.randomUUID();
      const ttl = String(now.getTime() - expiredBefore.getTime());
      if ((await command("SET", `${prefix}lock:${id}`, token, "NX", "PX", ttl)) === null) return undefined;
      if ((await get(id)) === undefined) return token;
      await command("EVAL", unlock, "1", `${prefix}lock:${id}`, token); // processed since it was looked up
      return undefined;
    },
    async markProcessed(id, token, result, now) {
      const value = JSON.stringify({ at: now.toISOString(), result });
      await command("SET", `${prefix}processed:${id}`, value, "NX", "EX", String(retentionSeconds));
      await command("EVAL", unlock, "1", `${prefix}lock:${id}`, token);
    },
    async releaseLock(id, token) {
      await command("EVAL", unlock, "1", `${prefix}lock:${id}`, token);
    },
    async cleanup() {
      return 0;
    },
  };
}
