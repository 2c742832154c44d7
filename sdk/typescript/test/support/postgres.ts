/** A schema of a test's own on the server of GODWIT_TEST_POSTGRES, by the client that the README names. */
import pg from "pg";
import type { SqlOptions, SqlQuery, SqlRow, SqlValue } from "@godwit/receiver";

export class Postgres {
  readonly #pool: pg.Pool;
  readonly options: SqlOptions;

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
    pool.on("error", () => undefined); // of an idle connection: the next query gets another one
    this.options = {
      dialect: "postgres",
      query: (sql, params) => pool.query(sql, [...params]),
      transaction: async <T>(run: (query: SqlQuery) => Promise<T>): Promise<T> => {
        const client = await pool.connect();
        let broken: Error | undefined;
        try {
          await client.query("BEGIN");
          const value = await run((sql, params) => client.query(sql, [...params]));
          await client.query("COMMIT");
          return value;
        } catch (error) {
          await client.query("ROLLBACK").catch((failure: Error) => (broken = failure));
          throw error;
        } finally {
          client.release(broken);
        }
      },
    };
  }

  static async connect(schema: string): Promise<Postgres> {
    const pool = new pg.Pool({ connectionString: process.env["GODWIT_TEST_POSTGRES"]!, options: `-c search_path=${schema}`, max: 6 });
    await pool.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`).catch((error: { code?: string }) => {
      if (error.code !== "23505" && error.code !== "42P06") throw error; // another process was faster
    });
    return new Postgres(pool);
  }

  async query(sql: string, params: readonly SqlValue[]): Promise<SqlRow[]> {
    return (await this.#pool.query(sql, [...params])).rows as SqlRow[];
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}
