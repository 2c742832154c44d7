/** SQLite over Python's own module: Node 20 brings none, and the tests want a real file that several processes share. */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { SqlOptions, SqlRow } from "@godwit/receiver";

const server = `
import json, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
while True:
    try:
        db.execute("PRAGMA journal_mode=WAL")
        break
    except sqlite3.OperationalError:
        time.sleep(0.01)  # another process is switching; SQLite does not wait for that
for line in sys.stdin:
    request = json.loads(line)
    try:
        cursor = db.execute(request["sql"], request["params"])
        names = [d[0] for d in cursor.description or []]
        answer = {"rows": [dict(zip(names, row)) for row in cursor.fetchall()]}
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
`;

export class Sqlite {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting: { resolve(rows: SqlRow[]): void; reject(error: Error): void }[] = [];
  readonly options: SqlOptions;

  constructor(file: string) {
    this.#process = spawn("python3", ["-u", "-c", server, file]);
    this.#process.stderr.pipe(process.stderr);
    let gone = false;
    const fail = (): void => {
      gone = true;
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("the database is gone"));
    };
    this.#process.on("exit", fail).on("error", fail);
    this.#process.stdin.on("error", fail);
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      const { rows, error } = JSON.parse(line) as { rows: SqlRow[]; error?: string };
      const { resolve, reject } = this.#waiting.shift()!;
      if (error === undefined) resolve(rows);
      else reject(new Error(error));
    });
    this.options = {
      dialect: "sqlite",
      query: (sql, params) =>
        new Promise((resolve, reject) => {
          if (gone) return reject(new Error("the database is gone"));
          this.#waiting.push({ resolve, reject });
          this.#process.stdin.write(`${JSON.stringify({ sql, params })}\n`);
        }),
    };
  }

  async close(): Promise<void> {
    if (this.#process.kill("SIGKILL")) await once(this.#process, "exit");
  }
}
