/** The client of the native API: generated, current, and right on the wire. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { everyItem, GodwitClient, GodwitError, Payload, type ClientOptions } from "@godwit/receiver/client";

const root = new URL("../", import.meta.url);

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

async function serve(t: TestContext, answer: (seen: Seen, response: ServerResponse) => void, options: Partial<ClientOptions> = {}): Promise<{ client: GodwitClient; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part as string;
    seen.push({ method: request.method!, url: request.url!, headers: request.headers, body });
    answer(seen.at(-1)!, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { client: new GodwitClient({ baseUrl, apiKey: "gwk_test", ...options }), seen };
}

const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
};

test("the generated file is current", () => {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/generate-client.mjs", "--check"], { cwd: root, encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

test("every operation of the document has a method", () => {
  const document = JSON.parse(readFileSync(new URL("../../spec/openapi.json", root), "utf8")) as { paths: Record<string, Record<string, { operationId: string }>> };
  const methods = new Set(Object.getOwnPropertyNames(GodwitClient.prototype));
  for (const operations of Object.values(document.paths)) {
    for (const { operationId } of Object.values(operations)) {
      assert.ok(methods.has(operationId.replace(/-(.)/g, (_, c: string) => c.toUpperCase())), operationId);
    }
  }
});

describe("on the wire", () => {
  test("an event as an envelope: JSON, the key quoted, the credentials sent", async (t) => {
    const accepted = { id: "evt_1", idempotency_key: "k", deliveries: 2, created_at: "2026-01-17T12:00:00Z" };
    const { client, seen } = await serve(t, (_, response) => {
      response.setHeader("Idempotency-Replayed", "true");
      json(response, 202, accepted);
    });
    let replayed: string | null = null;
    const got = await client.postEvent(
      { type: "order.paid", data: { id: 17 } },
      { idempotencyKey: 'a "quoted" key', onResponse: (response) => (replayed = response.headers.get("idempotency-replayed")) },
    );
    assert.deepEqual(got, accepted);
    assert.equal(replayed, "true");
    const { method, url, headers, body } = seen[0]!;
    assert.deepEqual([method, url, headers["content-type"], headers.authorization], ["POST", "/v1/events", "application/json", "Bearer gwk_test"]);
    assert.equal(headers["idempotency-key"], '"a \\"quoted\\" key"');
    assert.deepEqual(JSON.parse(body), { type: "order.paid", data: { id: 17 } });
  });

  test("an event as a payload: byte for byte, with type and attributes in the query", async (t) => {
    const { client, seen } = await serve(t, (_, response) => json(response, 202, {}));
    await client.postEvent(new Payload("<order/>", "text/xml"), { type: "order.paid", attr: { region: "e&u", tier: "1" } });
    assert.deepEqual([seen[0]!.url, seen[0]!.headers["content-type"], seen[0]!.body], ["/v1/events?type=order.paid&attr.region=e%26u&attr.tier=1", "text/xml", "<order/>"]);
  });

  test("paths are escaped, filters are in the query, another tenant in its header; pages follow each other", async (t) => {
    const { client, seen } = await serve(t, ({ url }, response) => {
      if (url.includes("cursor=2")) json(response, 200, { items: [{ id: "c" }] });
      else json(response, 200, { items: [{ id: "a" }, { id: "b" }], next_cursor: "2" });
    });
    const ids: string[] = [];
    for await (const event of everyItem((cursor) => client.listEvents({ cursor, limit: 2, type: "a.*", tenant: "ten_1" }))) ids.push(event.id);
    assert.deepEqual(ids, ["a", "b", "c"]);
    assert.deepEqual(seen.map((s) => [s.url, s.headers["godwit-tenant"]]), [
      ["/v1/events?limit=2&type=a.*", "ten_1"],
      ["/v1/events?limit=2&cursor=2&type=a.*", "ten_1"],
    ]);
    await client.getEvent("../keys?x");
    assert.equal(seen.at(-1)!.url, "/v1/events/..%2Fkeys%3Fx");
  });

  test("nothing comes back from a deletion; a body comes back raw", async (t) => {
    const { client } = await serve(t, ({ method }, response) => (method === "DELETE" ? response.writeHead(204).end() : response.end(Buffer.from([0, 255]))));
    assert.equal(await client.deleteEndpoint("end_1"), undefined);
    const response = await client.getEventBody("evt_1");
    assert.deepEqual([...new Uint8Array(await response.arrayBuffer())], [0, 255]);
  });

  test("exports come line by line, attempts event by event", async (t) => {
    const { client } = await serve(t, ({ url }, response) => {
      if (url.includes("export")) response.end('{"id":"1"}\n{"id":"2"}\n');
      else response.end(': hello\n\nevent: attempt\nid: 1\ndata: {"id":"é1"}\n\nevent: attempt\r\ndata: {"id":\r\ndata: "2"}\r\n\r\n');
    });
    const exported = [];
    for await (const letter of client.exportDeadLetters()) exported.push((letter as { id?: string }).id);
    assert.deepEqual(exported, ["1", "2"]);
    const attempts = [];
    for await (const attempt of client.streamAttempts()) attempts.push((attempt as unknown as { id: string }).id);
    assert.deepEqual(attempts, ["é1", "2"]);
  });

  test("a failure says each reason once", async (t) => {
    const { client } = await serve(t, (_, response) =>
      json(response, 400, { code: "invalid-request", detail: "url: must be https; name: is required", errors: [{ field: "url", detail: "must be https" }, { field: "name", detail: "is required" }] }),
    );
    await assert.rejects(client.getEndpoint("end_1"), (e) => e instanceof GodwitError && e.message === "400 url: must be https; name: is required" && e.fields.length === 2);
  });

  test("a failure that the server explains has its code; one that it does not has its status", async (t) => {
    let problem = true;
    const { client } = await serve(t, (_, response) => {
      response.setHeader("Retry-After", "7");
      if (problem) {
        json(response, 422, { type: "/docs", title: "Invalid", status: 422, code: "invalid", detail: "url is wrong", request_id: "r1", errors: [{ field: "url", detail: "must be https" }] });
      } else response.writeHead(502).end("<html>");
    });
    await assert.rejects(client.getEndpoint("end_1"), (e) => {
      assert.ok(e instanceof GodwitError);
      assert.deepEqual([e.status, e.code, e.requestId, e.retryAfter, e.fields.length], [422, "invalid", "r1", "7", 1]);
      assert.equal(e.message, "422 url is wrong; url: must be https");
      return true;
    });
    problem = false;
    await assert.rejects(client.getEndpoint("end_1"), (e) => e instanceof GodwitError && e.fields.length === 0 && e.status === 502 && e.code === "");
  });

  test("a key that cannot be sent, an address or an API key that is none: refused before anything is sent", async (t) => {
    const { client, seen } = await serve(t, (_, response) => json(response, 202, {}));
    await assert.rejects(client.postEvent({ type: "a.b" }, { idempotencyKey: "é" }), /printable ASCII/);
    assert.equal(seen.length, 0);
    assert.throws(() => new GodwitClient({ baseUrl: "ftp://x", apiKey: "k" }), /URL of a server/);
    for (const apiKey of ["", "gwk_x y", "gwk_\u00e9", "gwk_\u6f22", undefined as unknown as string]) {
      assert.throws(() => new GodwitClient({ baseUrl: "https://x.example", apiKey }), (e) => e instanceof Error && e.message === "the API key is missing or not one");
    }
  });

  test("a call can be given up", async (t) => {
    const { client } = await serve(t, () => undefined);
    const stop = new AbortController();
    const call = client.listEvents({ signal: stop.signal });
    stop.abort();
    await assert.rejects(call, { name: "AbortError" });
  });
});

describe("repeats", () => {
  const quick = { retry: { base: 1, cap: 1 } };

  test("a request that may be accepted later, under one key", async (t) => {
    const { client, seen } = await serve(
      t,
      (_, response) => {
        if (seen.length === 1) response.destroy(); // no response: the server may have received it
        else if (seen.length === 2) json(response, 503, { status: 503, code: "unavailable" });
        else if (seen.length === 3) json(response, 409, { status: 409, code: "idempotency-in-progress" });
        else json(response, 201, { id: "sub_1" });
      },
      quick,
    );
    const made = await client.createEndpoint({ url: "https://a.example/" });
    assert.equal(made.id, "sub_1");
    assert.equal(seen.length, 4);
    const keys = new Set(seen.map((s) => s.headers["idempotency-key"]));
    assert.equal(keys.size, 1);
    assert.match([...keys][0] as string, /^"[0-9a-f-]{36}"$/);
    assert.equal(new Set(seen.map((s) => s.body)).size, 1);
    await client.createEndpoint({ url: "https://a.example/" }, { idempotencyKey: "my own key, chosen" });
    assert.equal(seen.at(-1)!.headers["idempotency-key"], '"my own key, chosen"');
  });

  test("a read, but not what needs a correction, nor a deletion", async (t) => {
    let status = 500;
    const { client, seen } = await serve(t, (_, response) => json(response, seen.length % 2 === 1 ? status : 200, { items: [] }), quick);
    await client.listEndpoints();
    assert.equal(seen.length, 2);
    for (status of [400, 404, 422]) {
      const before: number = seen.length;
      await assert.rejects(client.createEndpoint({ url: "x" }), GodwitError);
      assert.equal(seen.length, before + 1);
      await client.listEndpoints(); // keeps the parity
    }
    status = 503;
    const before: number = seen.length;
    await assert.rejects(client.deleteEventType("a.b"), { status: 503 });
    assert.equal(seen.length, before + 1);
  });

  test("until there is no time left or the caller gives up", async (t) => {
    const { client, seen } = await serve(
      t,
      (_, response) => {
        response.setHeader("retry-after", "3600");
        json(response, 503, { status: 503 });
      },
      { retry: {} },
    );
    await assert.rejects(client.listEndpoints(), { status: 503 }); // an hour is more than the 30 s
    assert.equal(seen.length, 1);
    const never = await serve(t, (_, response) => json(response, 503, { status: 503 }), { retry: { base: 1, cap: 1, max: 3 } });
    await assert.rejects(never.client.listEndpoints(), { status: 503 });
    assert.equal(never.seen.length, 4);
    const stop = new AbortController();
    const stopped = await serve(t, (_, response) => {
      json(response, 503, { status: 503 });
      setImmediate(() => stop.abort());
    }, { retry: { base: 1_000_000, cap: 1_000_000, elapsed: Infinity } });
    await assert.rejects(stopped.client.listEndpoints({ signal: stop.signal }));
    assert.equal(stopped.seen.length, 1);
  });

  test("a server that does not answer in time", async (t) => {
    const { client, seen } = await serve(
      t,
      (_, response) => {
        if (seen.length > 1) json(response, 200, { items: [] });
      },
      { retry: { base: 1, cap: 1, max: Infinity, elapsed: Infinity }, timeout: 1000 },
    );
    assert.deepEqual((await client.listEndpoints()).items, []);
    assert.ok(seen.length >= 2);
    const alone = await serve(t, () => undefined, { timeout: 50 });
    await assert.rejects(alone.client.listEndpoints(), { name: "TimeoutError" });
  });

  test("nothing without the option", async (t) => {
    const { client, seen } = await serve(t, (_, response) => json(response, 503, { status: 503 }));
    await assert.rejects(client.listEndpoints(), { status: 503 });
    await assert.rejects(client.createEndpoint({ url: "https://a.example/" }), { status: 503 });
    assert.deepEqual([seen.length, seen[1]!.headers["idempotency-key"]], [2, undefined]);
  });
});
