/** SQL through an injected query function: the SDK has no driver of its own. */

/** A row, by column name. */
export type SqlRow = Readonly<Record<string, unknown>>;

/**
 * Runs one statement and returns its rows, for example `(sql, params) => pool.query(sql, params)` of pg, or `async
 * (sql, params) => db.prepare(sql).all(...params)` of a SQLite driver. It must throw on failure.
 */
export type SqlQuery = (sql: string, params: readonly SqlValue[]) => Promise<readonly SqlRow[] | { readonly rows: readonly SqlRow[] }>;
export type SqlValue = string | number | null;
export type SqlDialect = "postgres" | "sqlite";

export interface SqlOptions {
  readonly dialect: SqlDialect;
  readonly query: SqlQuery;
  /**
   * Runs a function in a transaction of its own connection: commits when it resolves, rolls back and throws when it
   * rejects. Only `transactional` receivers need it.
   */
  readonly transaction?: <T>(run: (query: SqlQuery) => Promise<T>) => Promise<T>;
}

/** Inserts the dialect's placeholders for values: `sql\`… where id = ${id}\``. */
export function statements({ dialect, query }: SqlOptions) {
  const run = async (strings: TemplateStringsArray, ...values: readonly (SqlValue | Raw)[]): Promise<readonly SqlRow[]> => {
    let text = strings[0]!;
    const params: SqlValue[] = [];
    values.forEach((value, i) => {
      if (value instanceof Raw) text += value.text;
      else text += dialect === "postgres" ? `$${params.push(value)}` : (params.push(value), "?");
      text += strings[i + 1]!;
    });
    const answer = await query(text, params);
    return "rows" in answer ? answer.rows : answer;
  };
  return run;
}

export type Statements = ReturnType<typeof statements>;

/** Text that is inserted into a statement as it is: names of tables, never values. */
export class Raw {
  constructor(readonly text: string) {}
}

export function tableName(name: string): Raw {
  if (!/^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/.test(name)) throw new Error(`not a table name: ${name}`);
  return new Raw(name);
}

/** "godwitrx" in ASCII: the advisory lock for creating tables, in every language's receiver. */
const migration = "7453286372354585208";

/** Runs the statements of a schema. Processes that start together would conflict in PostgreSQL, so they take turns. */
export async function createSchema({ dialect, query }: SqlOptions, schema: readonly string[]): Promise<void> {
  if (dialect === "postgres") {
    await query(`DO $schema$ BEGIN PERFORM pg_advisory_xact_lock(${migration}); ${schema.join(";\n")}; END $schema$`, []);
    return;
  }
  for (const statement of schema) await query(statement, []);
}

/** A text that every database accepts: PostgreSQL allows no NUL. */
export function plainText(text: string): string {
  return text.replaceAll("\0", "");
}

/** Skips rows that another worker is changing, in PostgreSQL; SQLite has one writer at a time anyway. */
export function rowsOfOthers({ dialect }: SqlOptions): Raw {
  return new Raw(dialect === "postgres" ? "FOR UPDATE SKIP LOCKED" : "");
}

/**
 * Lends the query function of a transaction. A caller that uses it after the transaction gets an error: on a connection
 * that was returned to its pool it would write outside of any transaction.
 */
export async function whileOpen<T>(query: SqlQuery, run: (query: SqlQuery) => Promise<T>): Promise<T> {
  let open = true;
  try {
    return await run(async (sql, params) => {
      if (!open) throw new Error("the transaction is over");
      return query(sql, params);
    });
  } finally {
    open = false;
  }
}
