/**
 * Live deliveries: a Godwit server sends over TLS to receivers of this package, in every profile, and the client drives
 * it. Runs when GODWIT_BINARY names the server's binary.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, describe, test, type TestContext } from "node:test";
import { cybercube, eds, ojs, retryAfter, standardWebhooks, type Profile } from "@godwit/receiver";
import { GodwitClient, Payload, type IssuedSecret, type NewEndpoint } from "@godwit/receiver/client";
import { nodeListener } from "@godwit/receiver/node";
import { selfSigned } from "./support/certificate.js";
import { harness, type Harness } from "./support/harness.js";

const binary = process.env["GODWIT_BINARY"];
if (binary) await live(binary);

async function live(binary: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "godwit-live-"));
  const { key, cert } = selfSigned();
  writeFileSync(join(dir, "cert.pem"), cert);
  const data = join(dir, "data");
  const made = execFileSync(binary, ["keys", "create", "--data", data, "--tenant-name", "acme", "--scopes", "all", "--json"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const { api_key: apiKey } = JSON.parse(made) as { api_key: string };
  const server = spawn(binary, ["serve", "--data", data, "--listen", "127.0.0.1:0", "--allow-address", "127.0.0.0/8", "--ca-file", join(dir, "cert.pem"), "--log-format", "json"]);
  const lines = createInterface({ input: server.stderr });
  const baseUrl = await new Promise<string>((resolve, fail) => {
    lines.on("line", (line) => {
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (url !== undefined) resolve(url);
    });
    server.on("exit", () => fail(new Error("the server did not start")));
  });
  const client = new GodwitClient({ baseUrl, apiKey });
  after(async () => {
    server.kill("SIGKILL");
    await once(server, "exit");
    rmSync(dir, { recursive: true, force: true });
  });

  async function endpoint(t: TestContext, settings: Partial<NewEndpoint>, type: string, options: Partial<Parameters<typeof harness>[0]> = {}): Promise<{ h: Harness; id: string }> {
    let listener: ReturnType<typeof nodeListener> | undefined;
    const receiving: Server = createServer({ key, cert }, (request, response) => listener!(request, response)).listen(0, "127.0.0.1");
    await once(receiving, "listening");
    t.after(() => {
      receiving.closeAllConnections();
      receiving.close();
    });
    const url = `https://127.0.0.1:${(receiving.address() as AddressInfo).port}/in?from=godwit%20live`;
    const { id, secret } = await client.createEndpoint({ url, patterns: [type], ...settings });
    const h = harness({ profile: profileOf(settings.profile ?? "eds", secret!), ...options });
    listener = nodeListener(h.receiver);
    return { h, id };
  }

  async function settled(eventId: string, attempts: number): Promise<void> {
    for (;;) {
      const { deliveries } = await client.getEvent(eventId);
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
    });

    test("a handler that asks to come again gets the event again, byte for byte", async (t) => {
      let calls = 0;
      const { h } = await endpoint(t, {}, "live.flaky", { handle: () => (++calls === 1 ? retryAfter(1, "not yet") : undefined) });
      const { id } = await client.postEvent(new Payload("<order/>", "text/xml"), { type: "live.flaky", idempotencyKey: "a-key-of-our-own-0001" });
      await settled(id, 2);
      assert.deepEqual(h.deliveries.map((d) => [d.key, d.contentType, d.text()]), Array(2).fill(["a-key-of-our-own-0001", "text/xml", "<order/>"]));
    });
  });
}

function profileOf(name: string, secret: IssuedSecret): Profile {
  const { id, value, public_key: publicKey } = secret;
  if (name === "eds") return eds({ keys: [{ id, principal: "godwit", ...(value === undefined ? { publicKey: publicKey! } : { secret: value }) }] });
  if (name === "ojs") return ojs({ secrets: value! });
  if (name === "cybercube") return cybercube({ secrets: value! });
  return standardWebhooks({ keys: value ?? `whpk_${publicKey!}` });
}
