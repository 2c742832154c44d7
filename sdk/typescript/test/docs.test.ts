/** The example of docs/eds.md, run as it is written. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

interface Case {
  name: string;
  now: number;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
  valid: boolean;
}

interface Vectors {
  keys: { id: string; secret?: string; public_key?: string }[];
  cases: Case[];
}

type Verify = (delivery: object) => { keyid: string; nonce: string };

const repository = new URL("../../../", import.meta.url);
const vectors = JSON.parse(readFileSync(new URL("spec/vectors/eds-requests.json", repository), "utf8")) as Vectors;

test("the page about eds deliveries verifies what our packages verify, and refuses what they refuse", async () => {
  const code = /```js\n([\s\S]*?)```/.exec(readFileSync(new URL("docs/eds.md", repository), "utf8"))![1]!;
  const dir = new URL("./docs/", import.meta.url);
  mkdirSync(dir, { recursive: true });
  writeFileSync(new URL("eds.mjs", dir), code);
  const { verifyDelivery } = (await import(new URL("eds.mjs", dir).href)) as { verifyDelivery: Verify };

  const keys = Object.fromEntries(vectors.keys.map(({ id, secret, public_key }) => [id, secret === undefined ? { public_key } : { value: secret }]));
  for (const { name, now, method, url, headers, body, valid } of vectors.cases) {
    const lower = Object.fromEntries(Object.entries(headers).map(([field, value]) => [field.toLowerCase(), value]));
    const verify = (): unknown => verifyDelivery({ method, url, headers: lower, body: Buffer.from(body), keys, now });
    if (valid) assert.doesNotThrow(verify, name);
    else assert.throws(verify, Error, name);
  }
});
