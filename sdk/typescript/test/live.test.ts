/** Live deliveries of a real server over TLS, in every profile, and through a relay. Needs GODWIT_BINARY: the path of a built server. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpsRequest, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, describe, test, type TestContext } from "node:test";
import { cybercube, eds, memoryStore, ojs, retryAfter, standardWebhooks, type Profile, type ReceiverOptions } from "@godwit/receiver";
import { GodwitClient, Payload, type IssuedSecret, type NewEndpoint } from "@godwit/receiver/client";
import { nodeListener } from "@godwit/receiver/node";
import { selfSigned } from "./support/certificate.js";
import { harness, type Harness } from "./support/harness.js";

const binary = process.env["GODWIT_BINARY"];
if (binary) await live(binary);

interface Running {
  readonly client: GodwitClient;
  readonly baseUrl: string;
}

async function live(binary: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "godwit-live-"));
  after(() => rmSync(dir, { recursive: true, force: true }));
  const { key, cert } = selfSigned();
  const files = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem") };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);

  /** Starts a server with a tenant of its own. */
  async function start(name: string, ...flags: string[]): Promise<Running> {
    const data = join(dir, name);
    const made = execFileSync(binary, ["keys", "create", "--data", data, "--tenant-name", name, "--scopes", "all", "--json"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const { api_key: apiKey } = JSON.parse(made) as { api_key: string };
    const server = spawn(binary, ["serve", "--data", data, "--listen", "127.0.0.1:0", "--allow-address", "127.0.0.0/8", "--ca-file", files.cert, "--log-format", "json", ...flags]);
    after(async () => {
      if (server.kill("SIGKILL")) await once(server, "exit");
    });
    const lines = createInterface({ input: server.stderr });
    const baseUrl = await new Promise<string>((resolve, fail) => {
      lines.on("line", (line) => {
        const url = /https?:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
        if (url !== undefined) resolve(url);
      });
      server.on("exit", () => fail(new Error("the server did not start")));
    });
    return { baseUrl, client: new GodwitClient({ baseUrl, apiKey, ...(baseUrl.startsWith("https") ? { fetch: trusting(cert) } : {}) }) };
  }

  const { client } = await start("acme");

  /** A receiver behind TLS whose secrets may change. */
  async function listen(t: TestContext): Promise<{ url: string; serve(h: Harness): void }> {
    let listener: ReturnType<typeof nodeListener> | undefined;
    const receiving: Server = createServer({ key, cert }, (request, response) => listener!(request, response)).listen(0, "127.0.0.1");
    await once(receiving, "listening");
    t.after(() => {
      receiving.closeAllConnections();
      receiving.close();
    });
    const url = `https://127.0.0.1:${(receiving.address() as AddressInfo).port}/in?from=godwit%20live`;
    return { url, serve: (h) => void (listener = nodeListener(h.receiver)) };
  }

  async function endpoint(t: TestContext, settings: Partial<NewEndpoint>, type: string, options: Partial<ReceiverOptions & { handle: never }> = {}, at = client): Promise<{ h: Harness; id: string; secret: IssuedSecret; serve(h: Harness): void }> {
    const { url, serve } = await listen(t);
    const { id, secret } = await at.createEndpoint({ url, patterns: [type], ...settings });
    const h = harness({ profile: profileOf(settings.profile ?? "eds", secret!), ...options });
    serve(h);
    return { h, id, secret: secret!, serve };
  }

  async function settled(eventId: string, attempts: number, at = client): Promise<void> {
    for (;;) {
      const { deliveries } = await at.getEvent(eventId);
      if (deliveries!.every((d) => d.status === "accepted" && d.attempt_count === attempts)) return;
      assert.ok(deliveries!.every((d) => d.attempt_count <= attempts), JSON.stringify(deliveries));
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  const kinds: Partial<NewEndpoint>[] = [
    { profile: "eds", algorithm: "hmac-sha256" },
    { profile: "eds", algorithm: "ed25519" },
    { profile: "ojs" },
    { profile: "cybercube" },
    { profile: "standard-webhooks", algorithm: "hmac-sha256" },
    { profile: "standard-webhooks", algorithm: "ed25519" },
  ];
  describe("live", () => {
    kinds.forEach((kind, i) => {
      test(`${kind.profile} ${kind.algorithm ?? ""}: delivered, verified, handled once although it is sent again`, async (t) => {
        const type = `live${i}.made`;
        const { h } = await endpoint(t, kind, type);
        const { id } = await client.postEvent({ type, data: { object: { id: "PRJ-X2M8KD-F", object: "project", name: "é" } } });
        await settled(id, 1);
        await client.replayEvent(id, undefined);
        await settled(id, 2);
        assert.equal(h.deliveries.length, 1);
        assert.deepEqual(h.log.failures, []);
        assert.ok(h.deliveries[0]!.text().includes("é"));
        assert.equal(h.log.duplicates.length, 1);
      });

      test(`${kind.profile} ${kind.algorithm ?? ""}: through a rotation, with the old secret, with both, with the new one; and not with a revoked one`, async (t) => {
        const type = `live${i}.rotated`;
        const { id, secret: old, serve } = await endpoint(t, kind, type);
        const store = memoryStore();
        const known = (...secrets: IssuedSecret[]): Harness => {
          const h = harness({ store, profile: profileOf(kind.profile!, ...secrets) });
          serve(h);
          return h;
        };
        const deliver = async (h: Harness): Promise<string> => {
          const event = await client.postEvent({ type, data: { object: { id: "PRJ-X2M8KD-F", object: "project" } } });
          await settled(event.id, 1);
          assert.deepEqual([h.deliveries.length, h.log.failures], [1, []]);
          return event.id;
        };
        const fresh = await client.rotateSecret(id, { overlap_seconds: 3600 });
        const first = await deliver(known(old));
        await deliver(known(old, fresh));
        const last = known(fresh);
        await client.replayEvent(first, undefined); // signed with both, verified with another than the first time: the same event still
        await settled(first, 2);
        assert.equal(last.deliveries.length, 0);
        await deliver(last);
        await client.rotateSecret(id, { overlap_seconds: 0 });
        const { id: refused } = await client.postEvent({ type, data: { object: { id: "PRJ-X2M8KD-F", object: "project" } } });
        while (last.log.failures.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
        assert.equal(last.deliveries.length, 1);
        assert.ok((await client.getEvent(refused)).deliveries!.every((d) => d.status !== "accepted"));
      });
    });

    test("a handler that asks to come again gets the event again, byte for byte", async (t) => {
      let calls = 0;
      const { h } = await endpoint(t, {}, "live.flaky", { handle: (() => (++calls === 1 ? retryAfter(1, "not yet") : undefined)) as never });
      const { id } = await client.postEvent(new Payload("<order/>", "text/xml"), { type: "live.flaky", idempotencyKey: "a-key-of-our-own-0001" });
      await settled(id, 2);
      assert.deepEqual(h.deliveries.map((d) => [d.key, d.contentType, d.text()]), Array(2).fill(["a-key-of-our-own-0001", "text/xml", "<order/>"]));
    });

    for (const algorithm of ["hmac-sha256", "ed25519"] as const) {
      test(`through a relay, ${algorithm}: one key over both hops, and two upstreams with the same one are two producers`, async (t) => {
        const relay = await start(`relay-${algorithm}`, "--tls-cert", files.cert, "--tls-key", files.key);
        const type = `relayed.${algorithm.replace("-", "_")}`;
        const suffixes: string[] = [];
        for (const name of ["one", "two"]) {
          const { id, secret } = await client.createEndpoint({ url: `${relay.baseUrl}/in/none`, patterns: [type], paused: true, profile: "eds", algorithm });
          const credential = algorithm === "ed25519" ? { id: secret!.id, public_key: secret!.public_key! } : { id: secret!.id, secret: secret!.value! };
          const source = await relay.client.createSource({ name, scheme: "eds", credentials: [credential] });
          suffixes.push(source.key_id_suffix);
          await client.updateEndpoint(id, { url: relay.baseUrl + source.path });
          await client.resumeEndpoint(id);
        }
        const { h } = await endpoint(t, { profile: "eds", algorithm }, type, {}, relay.client);
        const idempotencyKey = `one-key-over-both-${algorithm}`;
        const { id } = await client.postEvent(new Payload("<paid n='1'/>\n", "text/xml; charset=utf-8"), { type, idempotencyKey });
        await settled(id, 1);
        await client.replayEvent(id, undefined);
        await settled(id, 2);
        assert.deepEqual(h.deliveries.map((d) => [d.key, d.contentType, d.text(), d.eventType]), Array(2).fill([idempotencyKey, "text/xml; charset=utf-8", "<paid n='1'/>\n", type]));
        assert.deepEqual(h.deliveries.map((d) => d.principal).sort(), suffixes.map((suffix) => `godwit${suffix}`).sort());
        assert.deepEqual(h.log.failures, []);
      });
    }
  });
}

function profileOf(name: string, ...secrets: IssuedSecret[]): Profile {
  const values = secrets.map(({ value, public_key: publicKey }) => value ?? `whpk_${publicKey!}`);
  if (name === "ojs") return ojs({ secrets: values });
  if (name === "cybercube") return cybercube({ secrets: values });
  if (name === "standard-webhooks") return standardWebhooks({ keys: values });
  return eds({ keys: secrets.map(({ id, value, public_key: publicKey }) => ({ id, principal: "godwit", ...(value === undefined ? { publicKey: publicKey! } : { secret: value }) })) });
}

/** A fetch that trusts a certificate of the test's own. */
function trusting(ca: string): typeof fetch {
  return async (input, init) => {
    const request = new Request(input as string, init);
    const sent = httpsRequest(request.url, { method: request.method, headers: Object.fromEntries(request.headers), ca });
    sent.end(new Uint8Array(await request.arrayBuffer()));
    const [response] = (await once(sent, "response")) as [NodeJS.ReadableStream & { statusCode: number; headers: Record<string, string> }];
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    const { statusCode: status, headers } = response;
    return new Response(status === 204 ? null : Buffer.concat(parts), { status, headers });
  };
}
