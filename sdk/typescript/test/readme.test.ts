/** The README's quick starts, run as they are written. */
import assert from "node:assert/strict";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { asRequest, cybercubeEvent, edsSecretText, secret, signCybercube, signEds, signStandard, type Signed } from "./support/sign.js";

// Inside the package, so that its own name resolves to it.
const dir = new URL("./readme/", import.meta.url);
mkdirSync(dir, { recursive: true });

const blocks = new Map<string, string>();
for (const [, code] of readFileSync(new URL("../README.md", import.meta.url), "utf8").matchAll(/```js\n([\s\S]*?)```/g)) {
  const name = /^\/\/ (\S+\.mjs)\n/.exec(code!)![1]!;
  blocks.set(name, code!);
  writeFileSync(new URL(name, dir), code!);
}

async function started(t: TestContext, name: string, env: Record<string, string>): Promise<{ origin: string; lines: string[]; nextLine(): Promise<string> }> {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, ["--no-warnings", fileURLToPath(new URL(name, dir))], { env: { ...process.env, PORT: "0", ...env } });
  t.after(() => child.kill());
  child.stderr.pipe(process.stderr);
  const lines: string[] = [];
  const waiting: ((line: string) => void)[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    waiting.shift()?.(line);
  });
  const nextLine = (): Promise<string> => new Promise((resolve) => waiting.push(resolve));
  const port = /listening on (\d+)/.exec(await nextLine())![1]!;
  return { origin: `http://127.0.0.1:${port}`, lines, nextLine };
}

const post = (origin: string, signed: Signed, path: string): Promise<Response> =>
  fetch(origin + path, { method: "POST", headers: signed.headers, body: new Uint8Array(signed.body) });

test("all quick starts are here, none holds a secret, and each reads WEBHOOK_SECRET [CCW-SEC-12 CCW-RCV-4]", () => {
  assert.deepEqual([...blocks.keys()], ["node.mjs", "express.mjs", "edge.mjs", "cybercube.mjs"]);
  for (const [name, code] of blocks) {
    assert.match(code, /WEBHOOK_SECRET/, name);
    assert.doesNotMatch(code, /whsec_/, name);
  }
});

test("Node: verified, handled once, answered", async (t) => {
  const { origin, lines, nextLine } = await started(t, "node.mjs", { WEBHOOK_KEY_ID: "key-1", WEBHOOK_SECRET: edsSecretText });
  const key = '"8e03978e-40d5-43e8-bc93-6894a57f9324"';
  const url = `${origin}/webhooks`;
  const line = nextLine();
  assert.equal((await post(origin, signEds('{"order":17}', { url, key, eventType: "order.paid" }), "/webhooks")).status, 204);
  assert.equal(await line, "handled 8e03978e-40d5-43e8-bc93-6894a57f9324 order.paid { order: 17 }");
  assert.equal((await post(origin, signEds('{"order":17}', { url, key, eventType: "order.paid" }), "/webhooks")).status, 204);
  assert.equal((await post(origin, signEds("{}", { url, secret: Buffer.alloc(32) }), "/webhooks")).status, 401);
  assert.equal((await fetch(`${origin}/docs/idempotency`)).status, 200);
  assert.equal(lines.length, 2);
});

test("Express: verified, and each result as it is meant", async (t) => {
  const { origin, lines, nextLine } = await started(t, "express.mjs", { WEBHOOK_SECRET: secret });
  const send = async (id: string, type: string): Promise<number> => (await post(origin, signCybercube(cybercubeEvent(id, type)), "/webhooks")).status;
  const line = nextLine();
  assert.equal(await send("evt_1", "invoice.paid"), 200);
  assert.equal(await line, "handled evt_1");
  assert.deepEqual([await send("evt_1", "invoice.paid"), await send("evt_2", "invoice.voided"), await send("evt_3", "invoice.sent"), await send("evt_4", "task.created")], [200, 503, 422, 200]);
  assert.equal((await fetch(`${origin}/webhooks`, { method: "POST", body: "{}" })).status, 401);
  assert.equal((await fetch(`${origin}/webhooks`)).status, 405);
  assert.equal(lines.length, 2);
});

test("edge: verified, handled once, answered", async (t) => {
  const lines: unknown[][] = [];
  t.mock.method(console, "log", (...args: unknown[]) => lines.push(args));
  const { default: worker } = (await import(new URL("edge.mjs", dir).href)) as {
    default: { fetch(request: Request, env: object, ctx: { waitUntil(work: Promise<unknown>): void }): Promise<Response> };
  };
  const send = (signed: Signed): Promise<Response> => worker.fetch(asRequest(signed), { WEBHOOK_SECRET: secret }, { waitUntil: () => undefined });
  for (let i = 0; i < 2; i++) assert.equal((await send(signStandard('{"a":1}', { id: "msg_1" }))).status, 204);
  assert.equal((await send({ ...signStandard('{"a":1}'), body: Buffer.from("{}") })).status, 401);
  assert.deepEqual(lines, [["handled", "msg_1", { a: 1 }]]);
});

test("CYBERCUBE's sample: 200, 401 with the message, 500 [CCW-SDK-9]", async (t) => {
  t.mock.method(console, "log", () => undefined);
  process.env["WEBHOOK_SECRET"] = secret;
  const { handle } = (await import(new URL("cybercube.mjs", dir).href)) as { handle(body: Buffer, headers: Record<string, string>): { status: number; body: object } };
  const call = ({ headers, body }: Signed, raw = body): unknown => handle(raw, Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toLowerCase(), v])));
  const signed = signCybercube(cybercubeEvent());
  assert.deepEqual(call(signed), { status: 200, body: { received: true } });
  assert.deepEqual(call(signed, Buffer.from("{}")), { status: 401, body: { error: "Signature mismatch" } });
  assert.deepEqual(call(signCybercube("{bad")), { status: 500, body: { error: "Internal error" } });
});
