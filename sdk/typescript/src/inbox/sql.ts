import type { StoredDelivery } from "../receiver/delivery.js";
import { createSchema, Raw, statements, tableName, type SqlOptions, type SqlRow } from "../stores/sql.js";
import type { ClaimedJob, Inbox, InboxJob } from "./inbox.js";

export interface SqlInboxOptions extends SqlOptions {
  /** Defaults to webhook_inbox. */
  readonly table?: string;
}

/** The statements that make the table; run them once, in your migrations or by `migrate()`. */
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
  ];
}

/** A durable inbox in PostgreSQL or SQLite (3.35 or newer), shared by all receivers and workers. */
export function sqlInbox(options: SqlInboxOptions): Inbox & { migrate(): Promise<void> } {
  const sql = statements(options);
  const table = tableName(options.table ?? "webhook_inbox");
  // Workers of PostgreSQL pass over what another is just claiming; SQLite has one writer at a time anyway.
  const skipLocked = new Raw(options.dialect === "postgres" ? "FOR UPDATE SKIP LOCKED" : "");

  const end = async (job: ClaimedJob, state: string, at: number, reason: string): Promise<void> => {
    await sql`UPDATE ${table} SET state = ${state}, at = ${at}, reason = ${reason.slice(0, 1000)}
WHERE id = ${job.id} AND token = ${job.token} AND state = 'claimed'`;
  };

  return {
    migrate: () => createSchema(options, sqlInboxSchema(options)),

    async enqueue(job: InboxJob) {
      await sql`INSERT INTO ${table} (id, event_id, event_type, delivery, received_at)
VALUES (${job.id}, ${job.data.event_id}, ${job.data.event_type}, ${JSON.stringify({ payload: job.data.payload, delivery: job.delivery })},
  ${job.data.received_at})
ON CONFLICT (id) DO NOTHING`;
    },

    async claim(limit, leaseUntil, now) {
      const token = crypto.randomUUID();
      const rows = await sql`WITH due AS (SELECT id FROM ${table} WHERE state IN ('waiting', 'claimed') AND at <= ${now}
  ORDER BY received_at, id LIMIT ${limit} ${skipLocked})
UPDATE ${table} SET state = 'claimed', attempt = attempt + 1, token = ${token}, at = ${leaseUntil}
WHERE id IN (SELECT id FROM due)
RETURNING id, event_id, event_type, delivery, received_at, attempt`;
      return rows.map((row) => claimed(row, token)).sort((a, b) => (a.data.received_at < b.data.received_at ? -1 : 1));
    },

    done: (job, now) => end(job, "done", now, ""),
    later: (job, dueAt, reason) => end(job, "waiting", dueAt, reason),
    dead: (job, reason, now) => end(job, "dead", now, reason),

    async purge(before) {
      const gone = await sql`DELETE FROM ${table} WHERE state = 'done' AND at < ${before} RETURNING id`;
      return gone.length;
    },
  };
}

function claimed(row: SqlRow, token: string): ClaimedJob {
  const { payload, delivery } = JSON.parse(String(row["delivery"])) as { payload: unknown; delivery: StoredDelivery };
  return {
    id: String(row["id"]),
    name: "process-webhook",
    data: {
      event_id: String(row["event_id"]),
      event_type: String(row["event_type"]),
      payload,
      received_at: String(row["received_at"]),
    },
    delivery,
    attempt: Number(row["attempt"]),
    token,
  };
}
