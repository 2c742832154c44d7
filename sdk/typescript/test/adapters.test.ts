/** The adapters on real sockets: Node's http and http2, Express; and Fetch as edge runtimes have it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type IncomingMessage, createServer, type RequestListener, type Server } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import { createServer as createTlsServer, request as tlsRequest } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";
import express from "express";
import { accepted, cybercube, github } from "@godwit/receiver";
import { expressHandler, rateLimit as expressRateLimit } from "@godwit/receiver/express";
import * as fetchEntry from "@godwit/receiver/fetch";
import { nodeIncoming, nodeListener, rateLimit } from "@godwit/receiver/node";
import { selfSigned } from "./support/certificate.js";
import { gate, harness, type Harness } from "./support/harness.js";
import { cybercubeEvent, secret, signCybercube, signEds, signGithub, type Signed } from "./support/sign.js";

async function listening(t: TestContext, listener: RequestListener): Promise<{ server: Server; origin: string; port: number }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { server, port, origin: `http://127.0.0.1:${port}` };
}

const send = (origin: string, signed: Signed, path?: string): Promise<Response> =>
  fetch(origin + (path ?? new URL(signed.url).pathname), { method: signed.method, headers: signed.headers, body: new Uint8Array(signed.body) });

/** Writes bytes to a socket and reads what comes back until it closes. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(text, "latin1");
  let got = "";
  socket.setEncoding("utf8").on("data", (part) => (got += part));
  socket.on("error", () => undefined);
  await once(socket, "close");
  return got;
}

const wire = (signed: Signed, port: number, extra: string[] = []): string =>
  [
    `${signed.method} ${signed.url.replace(/^https?:\/\/[^/]+/, "")} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    "Connection: close",
    `Content-Length: ${signed.body.length}`,
    ...Object.entries(signed.headers).map(([name, value]) => `${name}: ${value}`),
    ...extra,
    "",
    signed.body.toString("latin1"),
  ].join("\r\n");

describe("node:http", () => {
  test("a delivery over a real socket, with the address as it went over the wire", async (t) => {
    const h = harness({ handle: () => accepted({ ok: true }, { status: 201, headers: { Location: "/x" } }) });
    const { origin } = await listening(t, nodeListener(h.receiver));
    const signed = signEds('{"é":1}', { url: `${origin}/In/./a%2Fb?x=%41&y` });
    const { port } = new URL(origin);
    const answer = await raw(Number(port), wire(signed, Number(port)));
    assert.match(answer, /^HTTP\/1\.1 201 /);
    assert.match(answer, /location: \/x/i);
    assert.match(answer, /\{"ok":true\}$/);
    assert.equal(h.deliveries[0]!.text(), Buffer.from('{"é":1}').toString());
  });

  test("two field lines of Idempotency-Key are refused, even when they are equal [IKH-SYN-5]", async (t) => {
    const h = harness();
    const { origin, port } = await listening(t, nodeListener(h.receiver));
    const key = '"8e03978e-40d5-43e8-bc93-6894a57f9324"';
    const once = signEds("{}", { key, url: `${origin}/in` });
    assert.match(await raw(port, wire(once, port)), /^HTTP\/1\.1 204 /);
    // Signed over both lines joined, as a sender would that sends two.
    const twice = signEds("{}", { key: `${key}, ${key}`, url: `${origin}/in` });
    twice.headers["Idempotency-Key"] = key;
    assert.match(await raw(port, wire(twice, port, [`Idempotency-Key: ${key}`])), /^HTTP\/1\.1 400 /);
    assert.equal(h.deliveries.length, 1);
  });

  test("every request is authenticated, also on one connection [EDS-SEC-AUT-1]", async (t) => {
    const h = harness({ profile: github({ secrets: secret }) });
    const { port } = await listening(t, nodeListener(h.receiver));
    const good = wire(signGithub("{}"), port).replace("Connection: close\r\n", "");
    const bad = `POST /github HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`;
    const answer = await raw(port, good + bad);
    assert.deepEqual(answer.match(/HTTP\/1\.1 (\d+)/g), ["HTTP/1.1 200", "HTTP/1.1 401"]);
    assert.equal(h.deliveries.length, 1);
  });

  test("a sender that hangs up after sending: the handler ends, its result counts, the repeat gets it [EDS-DUP-3]", async (t) => {
    const running = gate();
    const open = gate();
    const ended = gate();
    const h = harness({
      profile: cybercube({ secrets: secret }),
      handle: async (_, { signal }) => {
        running.open();
        await open.opened;
        assert.equal(signal.aborted, false);
        ended.open();
      },
    });
    const { port, origin, server } = await listening(t, nodeListener(h.receiver));
    const event = cybercubeEvent();
    let socket!: Socket;
    server.once("connection", (s: Socket) => (socket = s));
    const client = connect(port, "127.0.0.1");
    client.write(wire(signCybercube(event), port));
    await running.opened;
    client.destroy();
    await once(socket, "close");
    open.open();
    await ended.opened;
    const repeat = await send(origin, signCybercube(event));
    assert.equal(repeat.status, 200);
    assert.equal(h.deliveries.length, 1);
  });

  test("a sender that hangs up while sending: nothing runs and nothing is remembered", async (t) => {
    const h = harness({ profile: github({ secrets: secret }) });
    const answered = gate<number>();
    const { port } = await listening(t, (request, response) => {
      void h.receiver.receive(nodeIncoming(request)).then((answer) => answered.open(answer.status));
      response.on("error", () => undefined);
    });
    const signed = signGithub("x".repeat(1000));
    const client = connect(port, "127.0.0.1");
    client.write(wire(signed, port).slice(0, -500), () => client.destroy());
    assert.equal(await answered.opened, 400);
    assert.equal(h.deliveries.length, 0);
  });

  test("a body that is too large: the answer arrives, the rest is not waited for", async (t) => {
    const h = harness({ limit: 1000 });
    const { port } = await listening(t, nodeListener(h.receiver));
    const declared = await raw(port, "POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + "x".repeat(50000));
    assert.match(declared, /^HTTP\/1\.1 413 /);
    const chunked = await raw(port, "POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + "fa0\r\n" + "x".repeat(4000) + "\r\n0\r\n\r\n");
    assert.match(chunked, /^HTTP\/1\.1 413 /);
    assert.match(await raw(port, "GET /in HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), /^HTTP\/1\.1 405 [\s\S]*allow: POST/i);
  });

  test("50 duplicates over real connections: one effect", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const { origin } = await listening(t, nodeListener(h.receiver));
    const event = cybercubeEvent();
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(origin, signCybercube(event))));
    for (const answer of answers) assert.ok(answer.status === 200 || answer.status === 503);
    assert.equal(h.deliveries.length, 1);
  });

  test("the page is served without credentials [IKH-RSP-3]", async (t) => {
    const { origin } = await listening(t, nodeListener(harness().receiver));
    const page = await fetch(`${origin}/docs/idempotency`);
    assert.equal(page.status, 200);
    assert.match(await page.text(), /idempotency policy/);
  });

  test("the sender's address reaches the hooks", async (t) => {
    const h = harness();
    const { origin } = await listening(t, nodeListener(h.receiver));
    await fetch(`${origin}/in`, { method: "POST", body: "{}" });
    assert.match(h.log.failures[0]!.ip!, /127\.0\.0\.1$/);
  });

  test("rateLimit before a listener [CCW-LIM-12]", async (t) => {
    const limit = rateLimit({ max: 2 });
    const { origin } = await listening(t, (request, response) => limit(request, response, () => response.end("ok")));
    const statuses = [];
    for (let i = 0; i < 3; i++) {
      const answer = await fetch(origin);
      statuses.push(answer.status, answer.headers.get("ratelimit-remaining"));
      if (answer.status === 429) assert.deepEqual(await answer.json(), { error: "Rate limit exceeded" });
    }
    assert.deepEqual(statuses, [200, "1", 200, "0", 429, "0"]);
  });

  test("over TLS: the signed address is https, the unsigned and the stale get 401, and who does not trust us sends nothing [CCW-RCV-17]", async (t) => {
    const h = harness();
    const { key, cert } = selfSigned();
    const server = createTlsServer({ key, cert }, nodeListener(h.receiver)).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/in`;
    const post = ({ headers, body }: Signed, ca?: string): Promise<number> =>
      new Promise((resolve, fail) => {
        const request = tlsRequest(url, { method: "POST", headers, agent: false, ...(ca === undefined ? {} : { ca }) }, (response) => {
          response.resume();
          resolve(response.statusCode!);
        });
        request.on("error", fail).end(body);
      });
    assert.equal(await post(signEds("{}", { url }), cert), 204);
    assert.equal(await post({ ...signEds("{}", { url }), headers: {} }, cert), 401);
    assert.equal(await post(signEds("{}", { url, at: Math.floor(Date.now() / 1000) - 400 }), cert), 401);
    await assert.rejects(post(signEds("{}", { url })), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    assert.equal(h.log.receipts.length, 3);
    assert.equal(h.deliveries.length, 1);
  });

  test("HTTP/2, where fields have no Host", async (t) => {
    const h = harness();
    const server = createHttp2Server(nodeListener(h.receiver) as never).listen(0, "127.0.0.1");
    await once(server, "listening");
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = connectHttp2(origin);
    t.after(() => {
      client.close();
      server.close();
    });
    const signed = signEds("{}", { url: `${origin}/in?x=1` });
    const stream = client.request({ ":method": "POST", ":path": "/in?x=1", ...signed.headers });
    stream.end(signed.body);
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    assert.equal(headers[":status"], 204);
    stream.resume();
    await once(stream, "end");
  });
});

describe("Express", () => {
  async function app(t: TestContext, h: Harness, before: Parameters<ReturnType<typeof express>["use"]> = []): Promise<string> {
    const app = express();
    if (before.length > 0) app.use(...before);
    app.all("/cybercube", expressHandler(h.receiver));
    return (await listening(t, app)).origin;
  }
  const spaced = cybercubeEvent("evt_1").replaceAll(":", " : ");

  test("the raw body is verified: alone, and behind express.raw [CCW-SIG-15]", async (t) => {
    for (const before of [[], [express.raw({ type: "*/*" })]]) {
      const h = harness({ profile: cybercube({ secrets: secret }) });
      const origin = await app(t, h, before);
      const answer = await send(origin, signCybercube(spaced));
      assert.deepEqual([answer.status, await answer.json()], [200, { received: true, event_id: "evt_1" }]);
      assert.equal(h.deliveries[0]!.text(), spaced);
      assert.equal((await fetch(`${origin}/cybercube`)).status, 405);
    }
  });

  test("behind a parser that ate the raw body it is our failure, with the reason for the operator", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const origin = await app(t, h, [express.json()]);
    assert.equal((await send(origin, signCybercube(spaced))).status, 500);
    assert.match(String(h.log.errors[0]![0]), /body parser has consumed the body/);
    assert.equal(h.deliveries.length, 0);
  });

  test("behind anything else that read the body it is our failure, too: 401 would be the end of the event", async (t) => {
    for (const reader of [
      (request: IncomingMessage, _: unknown, next: () => void) => void request.resume().on("end", next),
      (request: IncomingMessage, _: unknown, next: () => void) => void request.once("data", () => next()),
    ]) {
      const h = harness({ profile: cybercube({ secrets: secret }) });
      const origin = await app(t, h, [reader as never]);
      assert.equal((await send(origin, signCybercube(spaced))).status, 500);
      assert.match(String(h.log.errors[0]![0]), /consumed the body/);
      assert.deepEqual(h.log.failures, []);
    }
  });

  test("the spellings of a path that Express routes to one place are one address, where it is not signed", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const origin = await app(t, h);
    const captured = signCybercube(cybercubeEvent());
    for (const path of ["/cybercube", "/CyberCube", "/cybercube/", "/CYBERCUBE/?x=1"]) assert.equal((await send(origin, captured, path)).status, 200, path);
    assert.equal(h.deliveries.length, 1);
  });

  test("a parser that left the bytes beside what it made of them", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const keep = (request: IncomingMessage & { rawBody?: Buffer }, _: unknown, raw: Buffer): void => void (request.rawBody = raw);
    const origin = await app(t, h, [express.json({ verify: keep })]);
    assert.equal((await send(origin, signCybercube(spaced))).status, 200);
    const untouched = harness({ profile: cybercube({ secrets: secret }) });
    const other = await app(t, untouched, [express.raw({ type: "text/plain" })]); // another type: it reads nothing
    assert.equal((await send(other, signCybercube(spaced))).status, 200);
  });

  test("the sender's address is what the application says behind a proxy", async (t) => {
    const h = harness();
    const app = express();
    app.all("/in", expressHandler(h.receiver, { ip: (request) => String(request.headers["x-forwarded-for"]) }));
    const { origin } = await listening(t, app);
    await fetch(`${origin}/in`, { method: "POST", body: "{}", headers: { "X-Forwarded-For": "203.0.113.9" } });
    assert.equal(h.log.failures[0]!.ip, "203.0.113.9");
  });

  test("a router's own path does not change the address that is signed", async (t) => {
    const h = harness();
    const app = express();
    app.use("/hooks", (request, response, next) => expressHandler(h.receiver)(request, response, next));
    const { origin } = await listening(t, app);
    assert.equal((await send(origin, signEds("{}", { url: `${origin}/hooks/in` }), "/hooks/in")).status, 204);
  });

  test("rateLimit as middleware [CCW-LIM-12]", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }) });
    const origin = await app(t, h, [expressRateLimit({ max: 1 })]);
    assert.equal((await send(origin, signCybercube(cybercubeEvent()))).status, 200);
    assert.equal((await send(origin, signCybercube(cybercubeEvent()))).status, 429);
  });
});

describe("Fetch and edge runtimes", () => {
  test("Request in, Response out, under the name /fetch as well", async () => {
    const hooks = fetchEntry.receiver({ profile: fetchEntry.ojs({ secrets: secret }), handler: () => undefined });
    const answer = await hooks.fetch(new Request("https://edge.example/in", { method: "POST", body: "{}" }));
    assert.ok(answer instanceof Response);
    assert.equal(answer.status, 401);
  });

  test("a body that was read already is our failure", async () => {
    const h = harness();
    const signed = signEds("{}");
    const request = new Request(signed.url, { method: "POST", headers: signed.headers, body: new Uint8Array(signed.body) });
    await request.text();
    assert.equal((await h.receiver.fetch(request)).status, 500);
    assert.deepEqual(h.log.failures, []);
  });

  test("waitUntil gets the work, so that it ends although the answer has left", async () => {
    const waits: Promise<unknown>[] = [];
    const h = harness();
    const signed = signEds("{}");
    const request = new Request(signed.url, { method: "POST", headers: signed.headers, body: new Uint8Array(signed.body) });
    assert.equal((await h.receiver.fetch(request, { waitUntil: (work) => waits.push(work) })).status, 204);
    assert.equal(waits.length, 1);
    await Promise.all(waits);
  });

  test("a request whose signal is aborted while the handler runs is handled all the same", async () => {
    const running = gate();
    const open = gate();
    const h = harness({
      handle: async () => {
        running.open();
        await open.opened;
      },
    });
    const gone = new AbortController();
    const signed = signEds("{}");
    const answer = h.receiver.fetch(new Request(signed.url, { method: "POST", headers: signed.headers, body: new Uint8Array(signed.body), signal: gone.signal }));
    await running.opened;
    gone.abort();
    open.open();
    assert.equal((await answer).status, 204);
  });

  test("the core, the client and the portal's element import nothing but their own files", () => {
    const dist = new URL("../dist/", import.meta.url);
    const files = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".js") && !/^(node|express|portal\/react)\.js$/.test(f));
    assert.ok(files.length > 30);
    for (const file of files) {
      const source = readFileSync(new URL(file, dist), "utf8");
      assert.doesNotMatch(source, /from "(?!\.)|import\("|\brequire\(|\bprocess\.|\bBuffer\b/, file);
    }
    const about = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Record<string, unknown>;
    assert.equal(about["dependencies"], undefined);
    // React is needed by the entry for React alone.
    assert.deepEqual([about["peerDependencies"], about["peerDependenciesMeta"]], [{ react: ">=18" }, { react: { optional: true } }]);
  });
});
