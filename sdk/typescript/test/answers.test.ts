/** Answers that get out whatever the handler says, and hooks that change nothing about them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { accepted, cybercube, Fields, memoryStore, ojs, receiver, type Hooks, type Result } from "@godwit/receiver";
import { nodeListener } from "@godwit/receiver/node";
import { problemCodes } from "../dist/receiver/problem.js";
import { edsProfile, gate, harness } from "./support/harness.js";
import { asRequest, cybercubeEvent, secret, signCybercube, signEds, signOjs, type Signed } from "./support/sign.js";

const key = '"8e03978e-40d5-43e8-bc93-6894a57f9324"';

async function serve(t: TestContext, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const send = (origin: string, { url, headers, body }: Signed): Promise<Response> =>
  fetch(origin + new URL(url).pathname, { method: "POST", headers, body: new Uint8Array(body) });

describe("what a handler says", () => {
  const odd: Record<string, string> = { "X-Good": "gr\u00fcn", "X-Split": "a\r\nSet-Cookie: b=1", "X-Far": "\u6f22", "Not A Name": "x", "Content-Length": "3", Connection: "x", "Transfer-Encoding": "chunked" };

  test("headers that cannot be sent are left out and told; the answer gets out, and so does its repeat", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }), handle: () => accepted("made", { headers: odd }) });
    const origin = await serve(t, createServer(nodeListener(h.receiver)));
    const event = cybercubeEvent();
    for (const answer of [await send(origin, signCybercube(event)), await send(origin, signCybercube(event)), await h.post(signCybercube(event))]) {
      assert.deepEqual([answer.status, answer.headers.get("x-good"), await answer.text()], [200, "gr\u00fcn", "made"]);
      for (const name of ["x-split", "x-far", "set-cookie"]) assert.equal(answer.headers.get(name), null);
    }
    assert.equal(h.deliveries.length, 1);
    assert.deepEqual(h.log.errors.map(([e]) => (e as Error).message), ['header "x-split" cannot be sent', 'header "x-far" cannot be sent', 'header "not a name" cannot be sent']);
  });

  test("statuses that have no body get none, whatever the handler gives", async () => {
    for (const status of [204, 205]) {
      const h = harness({ handle: () => accepted("text", { status }) });
      for (let i = 0; i < 2; i++) {
        const answer = await h.post(signEds("{}", { key }));
        assert.deepEqual([answer.status, await answer.text(), answer.headers.get("idempotency-replayed")], [status, "", i === 0 ? null : "true"]);
      }
    }
  });

  test("results made by hand are taken as far as they make sense", async () => {
    const made = harness({ profile: ojs({ secrets: secret }), handle: () => ({ kind: "accepted", headers: { "Retry-After": "9", "X-A": "1" } }) as unknown as Result });
    const answer = await made.post(signOjs("{}"));
    assert.deepEqual([answer.status, answer.headers.get("x-a"), answer.headers.get("retry-after")], [200, "1", null]);
    const body = harness({ handle: () => ({ kind: "accepted", body: { a: 1 } }) as unknown as Result });
    assert.equal((await body.post(signEds("{}"))).status, 500);
  });

  test("a connection whose answer was begun by somebody else ends; the process does not", async (t) => {
    const { receiver: made } = harness({ profile: cybercube({ secrets: secret }) });
    const listener = nodeListener(made);
    const origin = await serve(
      t,
      createServer((request, response) => {
        response.write("begun"); // by a middleware that was in a hurry
        listener(request, response);
      }),
    );
    await assert.rejects(send(origin, signCybercube(cybercubeEvent())).then((answer) => answer.text()));
    await assert.rejects(send(origin, signCybercube(cybercubeEvent())).then((answer) => answer.text()));
  });

  test("a Host that is none is the sender's fault, not ours", async (t) => {
    const h = harness({ profile: cybercube({ secrets: secret }), publicOrigin: "https://hooks.example.com" });
    const origin = new URL(await serve(t, createServer(nodeListener(h.receiver))));
    const raw = async ({ headers, body }: Signed): Promise<string> => {
      const socket = connect(Number(origin.port), "127.0.0.1");
      const lines = Object.entries(headers).map(([n, v]) => `${n}: ${v}`);
      socket.write(`POST /cybercube HTTP/1.1\r\nHost: a@b c\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${lines.join("\r\n")}\r\n\r\n`);
      socket.write(body);
      let got = "";
      for await (const part of socket.setEncoding("utf8")) got += part as string;
      return got.slice(9, 12);
    };
    assert.equal(await raw({ ...signCybercube(cybercubeEvent()), headers: { "X-A": "1" } }), "401");
    assert.equal(await raw(signCybercube(cybercubeEvent())), "200");
    assert.deepEqual(h.log.errors, []);
    const open = harness({ profile: cybercube({ secrets: secret }) });
    const { method, headers, body } = signCybercube(cybercubeEvent());
    const answer = await open.receiver.receive({ method, url: "http://a@b c/x", fields: new Fields(headers), readBody: async () => new Uint8Array(body) });
    assert.equal(answer.status, 200);
  });
});

describe("hooks", () => {
  test("an async hook that fails changes nothing, and does not end the process", async () => {
    const fail = async (): Promise<never> => {
      throw new Error("hook");
    };
    const hooks = { onReceipt: fail, onResult: fail, onDuplicate: fail, onVerificationFailure: fail, count: fail, onError: fail, onWarning: fail } as unknown as Hooks;
    const h = harness({ hooks });
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.equal((await h.post(signEds("{}", { secret: Buffer.alloc(16) }))).status, 401);
    await new Promise((resolve) => setImmediate(resolve)); // an unhandled rejection would fail this test
  });

  test("every answer is told once, also that of a handler which was late", async () => {
    const open = gate();
    const h = harness({ timeout: 0.02, handle: () => open.opened });
    assert.equal((await h.post(signEds("{}", { key }))).status, 503);
    open.open();
    await h.receiver.wait();
    assert.equal((await h.post(signEds("{}", { key }))).status, 204);
    assert.deepEqual(h.log.results.map((r) => [r.kind, r.status]), [["timeout", 503], ["replayed", 204]]);
  });

  test("waitUntil keeps its object, and one that fails changes nothing", async () => {
    class Context {
      readonly #work: Promise<unknown>[] = [];
      waitUntil(work: Promise<unknown>): void {
        this.#work.push(work);
      }
    }
    const h = harness();
    assert.equal((await h.receiver.fetch(asRequest(signEds("{}")), new Context())).status, 204);
    const broken = { waitUntil: (): never => { throw new TypeError("Illegal invocation"); } };
    assert.equal((await h.receiver.fetch(asRequest(signEds("{}")), broken)).status, 204);
  });

  test("what goes wrong and nobody hears is on the console, without secrets", (t) => {
    const lines: unknown[][] = [];
    for (const level of ["warn", "error"] as const) t.mock.method(console, level, (...args: unknown[]) => lines.push(args));
    const made = receiver({ profile: edsProfile(), handler: () => { throw new Error("boom"); } });
    return made
      .fetch(asRequest(signEds("{}")))
      .then(() => made.fetch(asRequest(signEds("{}", { secret: Buffer.alloc(32) }))))
      .then(() => {
        assert.deepEqual(lines.map(([text]) => text), [
          "webhook receiver: keys are remembered in this process alone: give a shared store if there are several, or if it may restart",
          "webhook receiver: handler failed:",
          "webhook receiver: verification failed: mismatch",
        ]);
        assert.doesNotMatch(JSON.stringify(lines), /sig1=/);
        lines.length = 0;
        receiver({ profile: edsProfile(), handler: () => undefined, hooks: { onWarning: () => undefined } });
        assert.deepEqual(lines, []);
      });
  });

  test("the failures of the last minute are counted, and no more", async () => {
    let now = 1_700_000_000_000;
    const h = harness({ clock: () => now });
    const forged = (): Promise<unknown> => h.post({ ...signEds("{}"), headers: {} });
    for (const [wait, count] of [[0, 1], [1, 2], [59, 2], [0, 3], [61, 1]] as const) {
      now += wait * 1000;
      await forged();
      assert.equal(h.log.failures.at(-1)!.recent, count);
    }
  });
});

describe("the page", () => {
  test("every type of problem is an address on it; it brings nothing along and is not guessed at", async () => {
    const h = harness({ publicOrigin: "https://hooks.example.com" });
    const page = await h.receiver.fetch(new Request("https://hooks.example.com/docs/idempotency"));
    const text = await page.text();
    for (const code of problemCodes) assert.ok(text.includes(`id="${code}"`), code);
    assert.deepEqual([page.headers.get("content-security-policy"), page.headers.get("x-content-type-options")], ["default-src 'none'", "nosniff"]);
    const refused = await h.post(signEds("{}", { key: null }));
    assert.equal(refused.headers.get("link"), '<https://hooks.example.com/docs/idempotency>; rel="describedby"; type="text/html"');
  });
});

test("a receiver that is told to stop can wait for its handlers", async () => {
  const open = gate();
  const order: string[] = [];
  const h = harness({
    timeout: 0.02,
    store: memoryStore(),
    handle: async () => {
      await open.opened;
      order.push("handled");
    },
  });
  assert.equal((await h.post(signEds("{}"))).status, 503);
  const waited = h.receiver.wait().then(() => order.push("waited"));
  open.open();
  await waited;
  assert.deepEqual(order, ["handled", "waited"]);
});

test("the address may be whatever the application knows it to be", async () => {
  const h = harness({ targetUri: ({ url }) => url.replace("http://10.0.0.7/", "https://hooks.example.com/public/") });
  const signed = signEds("{}", { url: "https://hooks.example.com/public/in" });
  assert.equal((await h.post({ ...signed, url: "http://10.0.0.7/in" })).status, 204);
  assert.equal(h.deliveries[0]!.url, "https://hooks.example.com/public/in");
});

test("the package says nothing when it is only loaded", () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", 'await import("@godwit/receiver")'], { encoding: "utf8" });
  assert.deepEqual([stdout, stderr, status], ["", "", 0]);
});
