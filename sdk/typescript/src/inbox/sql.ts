import { restoredDelivery, type StoredDelivery } from "../receiver/delivery.js";
import { createSchema, plainText, rowsOfOthers, statements, tableName, whileOpen, type SqlOptions, type SqlRow, type Statements } from "../stores/sql.js";
import type { ClaimedJob, Inbox, InboxJob, InboxTransaction, Settlement } from "./inbox.js";

export interface SqlInboxOptions extends SqlOptions {
  /** Defaults to webhook_inbox. */
  readonly table?: string;
}

/** The statements that create the table; run them once, in your migrations or by `migrate()`. */
export function sqlInboxSchema(options: Pick<SqlInboxOptions, "table"> = {}): string[] {
  const table = tableName(options.table ?? "webhook_inbox").text;
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  id VARCHAR(64) PRIMARY KEY,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  delivery TEXT NOT NULL,
  received_at TEXT NOT NULL,
  state VARCHAR(10) NOT NULL DEFAULT 'waiting',
  attempt INTEGER NOT NULL DEFAULT 0,
  token VARCHAR(64) NOT NULL DEFAULT '',
  at BIGINT NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT ''
)`,
    `CREATE INDEX IF NOT EXISTS ${table.replace(".", "_")}_due ON ${table} (state, at)`,
    `CREATE INDEX IF NOT EXISTS ${table.replace(".", "_")}_open ON ${table} (at, received_at, id) WHERE state IN ('waiting', 'claimed')`,
  ];
}

/** The longest reason that is kept. */
const maxReason = 1000;

/** A durable inbox in PostgreSQL or SQLite (3.35 or newer), shared by all receivers and workers. */
export function sqlInbox(options: SqlInboxOptions): Inbox & { migrate(): Promise<void> } {
  const sql = statements(options);
  const table = tableName(options.table ?? "webhook_inbox");
  const skipLocked = rowsOfOthers(options);

  async function settle(sql: Statements, { id, token }: Pick<ClaimedJob, "id" | "token">, s: Settlement): Promise<boolean> {
    const settled = await sql`UPDATE ${table} SET state = ${s.state}, at = ${s.at}, reason = ${plainText(s.reason).slice(0, maxReason)},
  attempt = attempt - ${s.interrupted ? 1 : 0}
WHERE id = ${id} AND token = ${token} AND state = 'claimed' RETURNING id`;
    return settled.length > 0;
  }

  /** Follows an index, so that a claim does not sort a long queue. */
  async function take(limit: number, token: string, leaseUntil: number, now: number): Promise<readonly SqlRow[]> {
    if (options.dialect === "postgres") {
      return sql`WITH due AS MATERIALIZED (SELECT id FROM ${table} WHERE state IN ('waiting', 'claimed') AND at <= ${now}
  ORDER BY at, received_at, id LIMIT ${limit} ${skipLocked})
UPDATE ${table} AS job SET state = 'claimed', attempt = attempt + 1, token = ${token}, at = ${leaseUntil}
FROM due WHERE job.id = due.id
RETURNING job.id, event_id, event_type, delivery, received_at, attempt`;
    }
    // Idle workers do not block writers. SQLite follows the index for either state by itself.
    const idle = (await sql`SELECT 1 FROM ${table} WHERE state IN ('waiting', 'claimed') AND at <= ${now} LIMIT 1`).length === 0;
    if (idle) return [];
    return sql`UPDATE ${table} SET state = 'claimed', attempt = attempt + 1, token = ${token}, at = ${leaseUntil} WHERE id IN (SELECT id FROM (
  SELECT * FROM (SELECT id, at, received_at FROM ${table} WHERE state = 'waiting' AND at <= ${now} ORDER BY at, received_at, id LIMIT ${limit})
  UNION ALL
  SELECT * FROM (SELECT id, at, received_at FROM ${table} WHERE state = 'claimed' AND at <= ${now} ORDER BY at, received_at, id LIMIT ${limit})
) ORDER BY at, received_at, id LIMIT ${limit})
RETURNING id, event_id, event_type, delivery, received_at, attempt`;
  }

  return {
    migrate: () => createSchema(options, sqlInboxSchema(options)),

    async enqueue({ replaces = 0, ...job }: InboxJob) {
      await sql`INSERT INTO ${table} AS known (id, event_id, event_type, delivery, received_at, at)
VALUES (${job.id}, ${plainText(job.data.event_id)}, ${plainText(job.data.event_type)}, ${JSON.stringify(job)}, ${job.data.received_at},
  ${Date.parse(job.data.received_at)})
ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id, event_type = excluded.event_type, delivery = excluded.delivery,
  received_at = excluded.received_at, state = 'waiting', attempt = 0, token = '', at = excluded.at, reason = ''
WHERE known.state IN ('done', 'dead') AND known.at < ${replaces}`;
    },

    async claim(limit, leaseUntil, now) {
      const token = crypto.randomUUID();
      const rows = await take(limit, token, leaseUntil, now);
      const jobs: ClaimedJob[] = [];
      for (const row of rows) {
        const job = claimed(row, token);
        if (job !== undefined) jobs.push(job);
        else await settle(sql, { id: String(row["id"]), token }, { state: "dead", at: now, reason: "cannot be read" });
      }
      return jobs.sort((a, b) => (a.data.received_at < b.data.received_at ? -1 : 1));
    },

    settle: (job, settlement) => settle(sql, job, settlement),

    ...(options.transaction === undefined
      ? {}
      : {
          transaction: <T>(run: (transaction: InboxTransaction) => Promise<T>): Promise<T> =>
            options.transaction!((query) => {
              const inside = statements({ ...options, query });
              return whileOpen(query, (handle) => run({ handle, settle: (job, settlement) => settle(inside, job, settlement) }));
            }),
        }),

    async purge(before, limit = 1_000_000) {
      const gone = await sql`DELETE FROM ${table} WHERE id IN
  (SELECT id FROM ${table} WHERE state = 'done' AND at < ${before} LIMIT ${limit} ${skipLocked}) RETURNING id`;
      return gone.length;
    },
  };
}

/** Reads a row written in any language; undefined if it is invalid. */
function claimed(row: SqlRow, token: string): ClaimedJob | undefined {
  try {
    const stored = JSON.parse(String(row["delivery"])) as { data?: { payload?: unknown }; payload?: unknown; delivery?: StoredDelivery };
    if (stored.delivery === undefined) return undefined;
    restoredDelivery(stored.delivery); // throws if it is damaged
    return {
      id: String(row["id"]),
      name: "process-webhook",
      data: {
        event_id: String(row["event_id"]),
        event_type: String(row["event_type"]),
        payload: stored.data === undefined ? stored.payload : stored.data.payload,
        received_at: String(row["received_at"]),
      },
      delivery: stored.delivery,
      attempt: Number(row["attempt"]),
      token,
    };
  } catch {
    return undefined;
  }
}
