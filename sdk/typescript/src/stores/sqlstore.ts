import { createSchema, rowsOfOthers, statements, tableName, whileOpen, type SqlOptions, type SqlRow, type Statements } from "./sql.js";
import type { CompleteRequest, Outcome, Reservation, ReserveRequest, Store, StoreTransaction } from "./store.js";

export interface SqlStoreOptions extends SqlOptions {
  /** Table of the keys. Defaults to webhook_receipts. */
  readonly table?: string;
  /** Table of the nonces. Defaults to webhook_nonces. */
  readonly nonceTable?: string;
}

/** The statements that create the tables; run them once, in your migrations or by `migrate()`. */
export function sqlStoreSchema(options: Pick<SqlStoreOptions, "table" | "nonceTable"> = {}): string[] {
  const table = tableName(options.table ?? "webhook_receipts").text;
  const nonces = tableName(options.nonceTable ?? "webhook_nonces").text;
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (
  scope VARCHAR(64) PRIMARY KEY,
  fingerprint VARCHAR(64) NOT NULL,
  token VARCHAR(64) NOT NULL,
  status INTEGER,
  headers TEXT,
  body TEXT,
  until BIGINT NOT NULL
)`,
    `CREATE INDEX IF NOT EXISTS ${table.replace(".", "_")}_until ON ${table} (until)`,
    `CREATE TABLE IF NOT EXISTS ${nonces} (value VARCHAR(64) PRIMARY KEY, until BIGINT NOT NULL)`,
    `CREATE INDEX IF NOT EXISTS ${nonces.replace(".", "_")}_until ON ${nonces} (until)`,
  ];
}

/**
 * A store in PostgreSQL or SQLite (3.35 or newer), shared by all processes. Keep the clocks of the processes
 * synchronised: each compares leases with its own. Call `purge` from time to time.
 */
export function sqlStore(options: SqlStoreOptions): Store & { migrate(): Promise<void> } {
  const sql = statements(options);
  const table = tableName(options.table ?? "webhook_receipts");
  const nonces = tableName(options.nonceTable ?? "webhook_nonces");
  const skipLocked = rowsOfOthers(options);

  /** Takes the key if it is new or has expired: the row's lock decides between two callers. */
  async function take({ scope, fingerprint, token, now, leaseUntil }: ReserveRequest): Promise<boolean> {
    const taken = await sql`INSERT INTO ${table} AS held (scope, fingerprint, token, until)
VALUES (${scope}, ${fingerprint}, ${token}, ${leaseUntil})
ON CONFLICT (scope) DO UPDATE SET fingerprint = excluded.fingerprint, token = excluded.token,
  until = excluded.until, status = NULL, headers = NULL, body = NULL
WHERE held.until <= ${now}
RETURNING token`;
    return taken.length > 0;
  }

  /** The state of a key, unless it has expired. */
  async function known({ scope, now }: ReserveRequest): Promise<Reservation | undefined> {
    const [row] = await sql`SELECT fingerprint, status, headers, body FROM ${table} WHERE scope = ${scope} AND until > ${now}`;
    return row === undefined ? undefined : reservation(row);
  }

  async function complete(sql: Statements, { scope, token, outcome, expiresAt }: CompleteRequest): Promise<boolean> {
    const kept = await sql`UPDATE ${table} SET status = ${outcome.status}, headers = ${JSON.stringify(outcome.headers)},
  body = ${outcome.body}, until = ${expiresAt}
WHERE scope = ${scope} AND token = ${token} AND status IS NULL
RETURNING scope`;
    return kept.length > 0;
  }

  return {
    migrate: () => createSchema(options, sqlStoreSchema(options)),

    async reserve(request: ReserveRequest): Promise<Reservation> {
      // SQLite has one writer at a time: a repeat does not wait for it. In PostgreSQL most requests are first ones.
      let look = options.dialect === "sqlite";
      for (let turn = 0; turn < 10; turn++) {
        const found = look ? await known(request) : undefined;
        if (found !== undefined) return found;
        if (await take(request)) return { state: "reserved" };
        look = true; // another caller has it, or had it and has released it since: try again
      }
      return { state: "in-progress", fingerprint: request.fingerprint };
    },

    complete: (request) => complete(sql, request),

    ...(options.transaction === undefined
      ? {}
      : {
          transaction: <T>(run: (transaction: StoreTransaction) => Promise<T>): Promise<T> =>
            options.transaction!((query) => {
              const inside = statements({ ...options, query });
              return whileOpen(query, (handle) => run({ handle, complete: (request) => complete(inside, request) }));
            }),
        }),

    async release(scope: string, token: string): Promise<void> {
      await sql`DELETE FROM ${table} WHERE scope = ${scope} AND token = ${token} AND status IS NULL`;
    },

    async remember(value: string, until: number, now: number): Promise<boolean> {
      const fresh = await sql`INSERT INTO ${nonces} AS known (value, until) VALUES (${value}, ${until})
ON CONFLICT (value) DO UPDATE SET until = excluded.until WHERE known.until <= ${now}
RETURNING value`;
      return fresh.length > 0;
    },

    async purge(now: number, limit = 1_000_000): Promise<number> {
      const keys = await sql`DELETE FROM ${table} WHERE scope IN
  (SELECT scope FROM ${table} WHERE until <= ${now} LIMIT ${limit} ${skipLocked}) RETURNING scope`;
      const values = await sql`DELETE FROM ${nonces} WHERE value IN
  (SELECT value FROM ${nonces} WHERE until <= ${now} LIMIT ${limit - keys.length} ${skipLocked}) RETURNING value`;
      return keys.length + values.length;
    },
  };
}

function reservation(row: SqlRow): Reservation {
  const fingerprint = String(row["fingerprint"]);
  if (row["status"] === null || row["status"] === undefined) return { state: "in-progress", fingerprint };
  const outcome: Outcome = {
    status: Number(row["status"]),
    headers: JSON.parse(String(row["headers"])) as Record<string, string>,
    body: row["body"] === null || row["body"] === undefined ? null : String(row["body"]),
  };
  return { state: "completed", fingerprint, outcome };
}
