/** Open Job Spec: verification step by step, and order by time. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { NewestBySubject, ojs, sortByTime, verify, WebhookSignatureError } from "@godwit/receiver";
import { harness } from "./support/harness.js";
import { otherSecret, secret, signOjs } from "./support/sign.js";

describe("verification", () => {
  const now = 1_708_030_665;
  const options = { clock: (): number => now * 1000 };
  const profile = ojs({ secrets: secret });
  const body = '{"specversion":"1.0","type":"webhook.test"}';
  const signed = signOjs(body, { at: now });

  test("each step that is violated is a typed error; a good request passes [OJS-SIG-6]", async () => {
    await verify(profile, signed, options);
    const reasonOf = async (headers: Record<string, string>, text = body): Promise<string> => {
      try {
        await verify(profile, { ...signed, headers: { ...signed.headers, ...headers }, body: text }, options);
        return "passed";
      } catch (error) {
        assert.ok(error instanceof WebhookSignatureError);
        return error.reason;
      }
    };
    assert.equal(await reasonOf({ "X-OJS-Timestamp": "" }), "malformed-timestamp");
    assert.equal(await reasonOf({ "X-OJS-Signature": "" }), "missing");
    assert.equal(await reasonOf({ "X-OJS-Signature": "md5=00" }), "malformed");
    assert.equal(await reasonOf({}, "{}"), "mismatch");
    assert.equal(await reasonOf(signOjs(body, { at: now - 301 }).headers), "too-old");
    assert.equal(await reasonOf(signOjs(body, { at: now + 301 }).headers), "from-future");
  });

  test("five minutes either way, the bound included [OJS-SIG-7]", async () => {
    for (const [offset, good] of [[300, true], [-300, true], [301, false], [-301, false]] as const) {
      const verdict = verify(profile, signOjs(body, { at: now + offset }), options);
      if (good) await verdict;
      else await assert.rejects(verdict, WebhookSignatureError);
    }
  });

  test("a changed byte and a changed time fail [OJS-SIG-8]", async () => {
    await assert.rejects(verify(profile, { ...signed, body: body.replace("1.0", "1.1") }, options), WebhookSignatureError);
    await assert.rejects(verify(profile, { ...signed, headers: { ...signed.headers, "X-OJS-Timestamp": String(now + 1) } }, options), WebhookSignatureError);
  });

  test("the raw bytes count, before any parsing [OJS-SIG-9]", async () => {
    const raw = '{ "b" : 1,\n "a" : 2 }';
    const request = signOjs(raw, { at: now });
    await verify(profile, request, options);
    await assert.rejects(verify(profile, { ...request, body: JSON.stringify(JSON.parse(raw)) }, options), WebhookSignatureError);
    const h = harness({ profile });
    assert.equal((await h.post(signOjs("{not json"))).status, 200); // what it holds is the handler's to judge
    assert.equal((await h.post({ ...signOjs("{not json"), body: Buffer.from("{not jsom") })).status, 401);
  });

  test("signatures as Node's sample makes them [OJS-SIG-11]", async () => {
    const signature = createHmac("sha256", secret).update(`${now}.${body}`).digest("hex");
    await verify(profile, { headers: { "x-ojs-timestamp": String(now), "x-ojs-signature": `sha256=${signature}` }, body }, options);
  });

  test("during a rotation either secret is enough; other schemes are passed over [OJS-ROT-5]", async () => {
    const dual = signOjs(body, { at: now, secrets: [secret, otherSecret] });
    for (const secrets of [secret, otherSecret]) await verify(ojs({ secrets }), dual, options);
    const spaced = { ...dual.headers, "X-OJS-Signature": dual.headers["X-OJS-Signature"]!.replace(/^sha256=[^,]+,/, "sha512=abcd , sha256=00 , ") };
    await verify(ojs({ secrets: otherSecret }), { ...dual, headers: spaced }, options);
    await assert.rejects(verify(ojs({ secrets: "whsec_neither" }), dual, options), WebhookSignatureError);
  });
});

describe("order", () => {
  const event = (time: string, type: string): { time: string; type: string; subject: string } => ({ time, type, subject: "job-1" });
  const inOrder = [
    event("2026-01-17T12:00:00Z", "job.enqueued"),
    event("2026-01-17T14:00:00.1+02:00", "job.started"),
    event("2026-01-17T12:00:00.1000005Z", "job.progress"),
    event("2026-01-17T12:00:01Z", "job.completed"),
  ];

  test("events are ordered by their time, not by arrival [OJS-DLV-17]", () => {
    for (const arrival of [[3, 2, 1, 0], [2, 0, 3, 1], [0, 1, 2, 3]]) assert.deepEqual(sortByTime(arrival.map((i) => inOrder[i]!)), inOrder);
  });

  test("fed in reverse, the state ends right [OJS-DLV-18]", async () => {
    const newest = new NewestBySubject<(typeof inOrder)[0]>();
    const applied: string[] = [];
    const h = harness({
      profile: ojs({ secrets: secret }),
      handle: (d) => {
        const e = d.json() as (typeof inOrder)[0];
        if (newest.takes(e)) applied.push(e.type);
      },
    });
    for (const e of [...inOrder].reverse()) assert.equal((await h.post(signOjs(JSON.stringify(e)))).status, 200);
    assert.deepEqual(applied, ["job.completed"]);
    assert.equal(newest.get("job-1")!.type, "job.completed");
    assert.equal(newest.takes(inOrder[3]!), false);
    assert.equal(newest.takes({ ...inOrder[0]!, subject: "job-2" }), true);
  });
});
