/** A database of a test: where it is, connections to it, and transactions on connections of their own. */
import type { SqlOptions, SqlQuery } from "@godwit/receiver";
import { Postgres } from "./postgres.js";
import { Sqlite } from "./sqlite.js";

export type Kind = "sqlite" | "postgres";

export interface Database {
  readonly options: SqlOptions;
  close(): Promise<void>;
}

/** Connects; `place` is a file, or a schema. */
export async function openDatabase(kind: Kind, place: string): Promise<Database> {
  const open = async (): Promise<Sqlite | Postgres> => (kind === "sqlite" ? new Sqlite(place) : Postgres.connect(place));
  const main = await open();
  const writer = await open();
  let turn: Promise<unknown> = Promise.resolve();
  const transaction = <T>(run: (query: SqlQuery) => Promise<T>): Promise<T> => {
    // One connection, so one transaction at a time.
    const mine = turn.then(async () => {
      const { query } = writer.options;
      await query("BEGIN", []); // SQLite locks at the first write, not before
      try {
        const value = await run(query);
        await query("COMMIT", []);
        return value;
      } catch (error) {
        await query("ROLLBACK", []);
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
