/** A Redis: the server on the PATH if there is one, else a double that knows the commands and scripts of the package. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { RedisClient } from "@godwit/receiver";
import { redisScripts } from "../../dist/stores/redis.js";

export interface Redis {
  readonly isReal: boolean;
  /** Of a real one. */
  readonly port?: number;
  /** A client like ioredis. */
  readonly client: RedisClient;
  /** A second connection, like node-redis. */
  readonly other: RedisClient;
  close(): Promise<void>;
}

export async function startRedis(): Promise<Redis> {
  if (spawnSync(process.env["GODWIT_TEST_REDIS"] ?? "redis-server", ["--version"]).status !== 0) return double();
  const port = await freePort();
  // Under a shell that ends it when this process ends, however it ends.
  const program = process.env["GODWIT_TEST_REDIS"] ?? "redis-server";
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const guard = '"$0" "$@" >/dev/null 2>&1 & server=$!; read _; kill -9 $server';
  const server = spawn("sh", ["-c", guard, program, ...args], { stdio: ["pipe", "ignore", "ignore"] });
  const first = await connected(port, server);
  const second = await connected(port, server);
  return {
    isReal: true,
    port,
    client: { call: (command, ...args) => first.send([command, ...args]) },
    other: { sendCommand: (args) => second.send(args) },
    async close() {
      first.close();
      second.close();
      server.stdin.end();
      await once(server, "exit");
    },
  };
}

/** One more client of a server that runs. */
export async function connectRedis(port: number): Promise<RedisClient> {
  const connection = await connected(port);
  return { call: (command, ...args) => connection.send([command, ...args]) };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

async function connected(port: number, server?: { readonly exitCode: number | null }): Promise<Connection> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const up = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    if (up) return new Connection(socket);
    if (server === undefined || server.exitCode !== null || Date.now() > deadline) throw new Error("redis-server did not start");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

class Connection {
  readonly #waiting: { resolve(value: unknown): void; reject(error: Error): void }[] = [];
  #buffer = Buffer.alloc(0);

  constructor(readonly socket: Socket) {
    socket.on("error", () => undefined);
    socket.on("close", () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error("Redis is gone"));
    });
    socket.on("data", (data) => {
      this.#buffer = Buffer.concat([this.#buffer, data]);
      while (this.#next());
    });
  }

  send(args: string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.socket.write(`*${args.length}\r\n${args.map((a) => `$${Buffer.byteLength(a)}\r\n${a}\r\n`).join("")}`);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  /** Takes one reply: simple strings, errors, integers and bulk strings are all that the package gets. */
  #next(): boolean {
    const line = this.#buffer.indexOf("\r\n");
    if (line < 0) return false;
    const head = this.#buffer.toString("utf8", 1, line);
    let end = line + 2;
    let value: unknown = head;
    switch (String.fromCharCode(this.#buffer[0]!)) {
      case "$":
        value = null;
        if (Number(head) >= 0) {
          if (this.#buffer.length < end + Number(head) + 2) return false;
          value = this.#buffer.toString("utf8", end, end + Number(head));
          end += Number(head) + 2;
        }
        break;
      case ":":
        value = Number(head);
        break;
      case "-":
        value = new Error(head);
    }
    this.#buffer = this.#buffer.subarray(end);
    const { resolve, reject } = this.#waiting.shift()!;
    if (value instanceof Error) reject(value);
    else resolve(value);
    return true;
  }
}

function double(): Redis {
  const values = new Map<string, { value: string; until: number }>();
  const list: string[] = []; // the one list that effects are pushed to
  const get = (key: string): string | null => {
    const entry = values.get(key);
    return entry !== undefined && entry.until > Date.now() ? entry.value : null;
  };
  const set = (key: string, value: string, ms: number): void => void values.set(key, { value, until: Date.now() + ms });
  const script = (source: string, key: string, args: string[]): unknown => {
    const held = get(key);
    if (source === redisScripts.reserve) return held ?? (set(key, args[0]!, Number(args[1])), null);
    if (source !== redisScripts.complete && source !== redisScripts.release) return held === args[0] ? Number(values.delete(key)) : 0;
    const entry = held === null ? undefined : (JSON.parse(held) as { token: string; outcome?: unknown });
    if (entry === undefined || entry.token !== args[0] || entry.outcome !== undefined) return 0;
    if (source === redisScripts.release) return Number(values.delete(key));
    for (const command of JSON.parse(args[3]!) as string[][]) list.push(...command.slice(2));
    return set(key, args[1]!, Number(args[2])), 1;
  };
  const call = async (command: string, ...args: string[]): Promise<unknown> => {
    if (command === "GET") return get(args[0]!);
    if (command === "LLEN") return list.length;
    if (command === "EVAL") return script(args[0]!, args[2]!, args.slice(3));
    if (command !== "SET") throw new Error(`the double does not know ${command}`);
    if (args.includes("NX") && get(args[0]!) !== null) return null;
    const seconds = args.indexOf("EX");
    set(args[0]!, args[1]!, seconds < 0 ? Number(args[args.indexOf("PX") + 1]) : 1000 * Number(args[seconds + 1]));
    return "OK";
  };
  return { isReal: false, client: { call }, other: { sendCommand: ([command, ...args]) => call(command!, ...args) }, close: async () => undefined };
}
