/** The least of PostgreSQL's protocol: one connection, trusted, one statement at a time, everything as text. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { SqlOptions, SqlRow, SqlValue } from "@godwit/receiver";

interface Pending {
  readonly rows: SqlRow[];
  columns: { name: string; type: number }[];
  error?: string;
  resolve(rows: SqlRow[]): void;
  reject(error: Error): void;
}

const integers = new Set([20, 21, 23]);
const timestamps = new Set([1114, 1184]);

export class Postgres {
  readonly #socket: Socket;
  readonly #pending: Pending[] = [];
  #buffer = Buffer.alloc(0);
  #ready!: () => void;
  readonly options: SqlOptions;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (data) => this.#read(data));
    const fail = (): void => {
      for (const p of this.#pending.splice(0)) p.reject(new Error("the database is gone"));
    };
    socket.on("close", fail).on("error", fail);
    this.options = { dialect: "postgres", query: (sql, params) => this.query(sql, params) };
  }

  /** Connects to the server of GODWIT_TEST_POSTGRES, in a schema of the test's own. */
  static async connect(schema: string): Promise<Postgres> {
    const url = new URL(process.env["GODWIT_TEST_POSTGRES"]!);
    const socket = connect(Number(url.port || 5432), url.hostname);
    await once(socket, "connect");
    const client = new Postgres(socket);
    const ready = new Promise<void>((resolve) => (client.#ready = resolve));
    const parameters = `user\0${decodeURIComponent(url.username)}\0database\0${url.pathname.slice(1)}\0\0`;
    const start = Buffer.alloc(8);
    start.writeInt32BE(8 + parameters.length);
    start.writeInt32BE(196608, 4);
    socket.write(Buffer.concat([start, Buffer.from(parameters)]));
    await ready;
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`, []);
    await client.query(`SET search_path TO ${schema}`, []);
    return client;
  }

  query(sql: string, params: readonly SqlValue[]): Promise<SqlRow[]> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ rows: [], columns: [], resolve, reject });
      const values = params.map((value) => (value === null ? int32(-1) : sized(String(value))));
      this.#socket.write(
        Buffer.concat([
          message("P", text(""), text(sql), int16(0)),
          message("B", text(""), text(""), int16(0), int16(params.length), ...values, int16(0)),
          message("D", Buffer.from("P"), text("")),
          message("E", text(""), int32(0)),
          message("S"),
        ]),
      );
    });
  }

  async close(): Promise<void> {
    this.#socket.destroy();
  }

  #read(data: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, data]);
    while (this.#buffer.length >= 5 && this.#buffer.length >= 1 + this.#buffer.readInt32BE(1)) {
      const end = 1 + this.#buffer.readInt32BE(1);
      this.#take(String.fromCharCode(this.#buffer[0]!), this.#buffer.subarray(5, end));
      this.#buffer = this.#buffer.subarray(end);
    }
  }

  #take(type: string, body: Buffer): void {
    const current = this.#pending[0];
    if (type === "T") current!.columns = readColumns(body);
    else if (type === "D") current!.rows.push(readRow(body, current!.columns));
    else if (type === "E" && current) current.error = body.toString("utf8").replaceAll("\0", " ");
    else if (type === "Z") {
      if (current === undefined) return this.#ready();
      this.#pending.shift();
      if (current.error === undefined) current.resolve(current.rows);
      else current.reject(new Error(current.error));
    }
  }
}

const text = (value: string): Buffer => Buffer.from(`${value}\0`);
const sized = (value: string): Buffer => Buffer.concat([int32(Buffer.byteLength(value)), Buffer.from(value)]);

function int16(n: number): Buffer {
  const b = Buffer.alloc(2);
  b.writeInt16BE(n);
  return b;
}

function int32(n: number): Buffer {
  const b = Buffer.alloc(4);
  b.writeInt32BE(n);
  return b;
}

function message(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function readColumns(body: Buffer): { name: string; type: number }[] {
  const columns = [];
  for (let i = 0, at = 2; i < body.readInt16BE(0); i++) {
    const end = body.indexOf(0, at);
    columns.push({ name: body.toString("utf8", at, end), type: body.readInt32BE(end + 7) });
    at = end + 19;
  }
  return columns;
}

function readRow(body: Buffer, columns: { name: string; type: number }[]): SqlRow {
  const row: Record<string, unknown> = {};
  let at = 2;
  for (const { name, type } of columns) {
    const length = body.readInt32BE(at);
    at += 4;
    const value = length < 0 ? null : body.toString("utf8", at, at + length);
    at += Math.max(0, length);
    row[name] = value === null ? null : integers.has(type) ? Number(value) : timestamps.has(type) ? new Date(value) : value;
  }
  return row;
}
