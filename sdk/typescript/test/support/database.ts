/** A database of a test: where it is, connections to it, and transactions on connections of their own. */
import type { SqlOptions, SqlQuery, SqlRow } from "@godwit/receiver";
import { Sqlite } from "./sqlite.js";

export type Kind = "sqlite" | "postgres";

export interface Database {
  readonly options: SqlOptions;
  rows(sql: string): Promise<readonly SqlRow[]>;
  close(): Promise<void>;
}

/** Connects; `place` is a file, or a schema. */
export async function openDatabase(kind: Kind, place: string): Promise<Database> {
  const { options, close } = kind === "sqlite" ? openSqlite(place) : await openPostgres(place);
  const rows = async (sql: string): Promise<readonly SqlRow[]> => {
    const answer = await options.query(sql, []);
    return "rows" in answer ? answer.rows : answer;
  };
  return { options, rows, close };
}

async function openPostgres(schema: string): Promise<Omit<Database, "rows">> {
  const { Postgres } = await import("./postgres.js");
  const postgres = await Postgres.connect(schema);
  return { options: postgres.options, close: () => postgres.close() };
}

/** One connection for single statements, one for transactions, which take turns on it. */
function openSqlite(file: string): Omit<Database, "rows"> {
  const main = new Sqlite(file);
  const writer = new Sqlite(file);
  const { query } = writer.options;
  let turn: Promise<unknown> = Promise.resolve();
  const transaction = <T>(run: (query: SqlQuery) => Promise<T>): Promise<T> => {
    const mine = turn.then(async () => {
      await query("BEGIN", []); // locks at the first write, not before
      try {
        const value = await run(query);
        await query("COMMIT", []);
        return value;
      } catch (error) {
        await query("ROLLBACK", []).catch(() => undefined); // SQLite may have done it already
        throw error;
      }
    });
    turn = mine.catch(() => undefined);
    return mine;
  };
  return {
    options: { ...main.options, transaction },
    async close() {
      await Promise.all([main.close(), writer.close()]);
    },
  };
}
