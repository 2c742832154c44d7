/** Senders: they sign with Node's own cryptography, independently of the package. */
import { createHash, createHmac, createPrivateKey, generateKeyPairSync, randomUUID, sign as signWith, type KeyObject } from "node:crypto";

export const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY";
export const otherSecret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA";
export const seconds = (): number => Math.floor(Date.now() / 1000);

export interface Signed {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: Buffer;
}

export function asRequest({ method, url, headers, body }: Signed): Request {
  return new Request(url, { method, headers, ...(method === "GET" || method === "HEAD" ? {} : { body: new Uint8Array(body) }) });
}

const hmac = (key: string | Buffer, ...parts: (string | Buffer)[]): Buffer => {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  return mac.digest();
};

interface Options {
  url?: string;
  at?: number;
  headers?: Record<string, string>;
}

export const edsSecret = Buffer.from("0123456789abcdef0123456789abcdef");
export const edsSecretText = edsSecret.toString("base64");

export interface EdsSigning extends Options {
  method?: string;
  /** With quotes, as on the wire; null: no header. */
  key?: string | null;
  keyId?: string;
  secret?: Buffer;
  privateKey?: KeyObject;
  nonce?: string | null;
  created?: number | null;
  contentType?: string;
  components?: string[];
  alg?: string;
  eventType?: string;
}

/** A delivery of profile eds, with RFC 9421 done by hand. */
export function signEds(text: string | Buffer, o: EdsSigning = {}): Signed {
  const body = Buffer.from(text);
  const method = o.method ?? "POST";
  const url = o.url ?? "https://hooks.example.com/in";
  const key = o.key === undefined ? `"${randomUUID()}"` : o.key;
  const headers: Record<string, string> = {
    "Content-Type": o.contentType ?? "application/json",
    "Content-Digest": `sha-256=:${createHash("sha256").update(body).digest("base64")}:`,
    ...(key === null ? {} : { "Idempotency-Key": key }),
    ...(o.eventType === undefined ? {} : { "Godwit-Event-Type": o.eventType }),
  };
  const components = o.components ?? [
    "@method",
    "@target-uri",
    "content-digest",
    "content-type",
    ...(key === null ? [] : ["idempotency-key"]),
    ...(o.eventType === undefined ? [] : ["godwit-event-type"]),
  ];
  const value = (name: string): string => {
    if (name === "@method") return method;
    if (name === "@target-uri") return url;
    return Object.entries(headers).find(([field]) => field.toLowerCase() === name)![1].trim();
  };
  const created = o.created === undefined ? (o.at ?? seconds()) : o.created;
  const nonce = o.nonce === undefined ? randomUUID() : o.nonce;
  const params = [
    `(${components.map((c) => `"${c}"`).join(" ")})`,
    ...(created === null ? [] : [`created=${created}`]),
    `keyid="${o.keyId ?? "key-1"}"`,
    ...(o.alg === undefined ? [] : [`alg="${o.alg}"`]),
    ...(nonce === null ? [] : [`nonce="${nonce}"`]),
  ].join(";");
  const base = [...components.map((c) => `"${c}": ${value(c)}`), `"@signature-params": ${params}`].join("\n");
  const signature = o.privateKey ? signWith(null, Buffer.from(base), o.privateKey) : hmac(o.secret ?? edsSecret, base);
  headers["Signature-Input"] = `sig1=${params}`;
  headers["Signature"] = `sig1=:${signature.toString("base64")}:`;
  return { method, url, headers: { ...headers, ...o.headers }, body };
}

export function ed25519Pair(): { publicKey: string; privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { publicKey: publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64"), privateKey };
}

export function ed25519FromPem(pem: string): KeyObject {
  return createPrivateKey(pem);
}

export function signOjs(text: string | Buffer, o: Options & { secrets?: string[]; deliveryId?: string } = {}): Signed {
  const body = Buffer.from(text);
  const at = String(o.at ?? seconds());
  return {
    method: "POST",
    url: o.url ?? "https://hooks.example.com/ojs",
    headers: {
      "Content-Type": "application/json",
      "X-OJS-Delivery-ID": o.deliveryId ?? `del_${randomUUID()}`,
      "X-OJS-Timestamp": at,
      "X-OJS-Signature": (o.secrets ?? [secret]).map((s) => `sha256=${hmac(s, `${at}.`, body).toString("hex")}`).join(","),
      ...o.headers,
    },
    body,
  };
}

export function cybercubeEvent(id = `evt_${randomUUID().replaceAll("-", "").slice(0, 26)}`, type = "project.created"): string {
  const object = { id: "PRJ-X2M8KD-F", object: "project", name: "A", created_at: "2026-01-17T12:00:00Z", updated_at: "2026-01-17T12:00:00Z" };
  return JSON.stringify({
    id,
    type,
    api_version: "2026-01-17",
    created_at: "2026-01-17T12:00:00Z",
    data: { object },
    account_id: "ACC-9F4K7Q-T",
    livemode: true,
  });
}

export function signCybercube(text: string | Buffer, o: Options & { secrets?: string[]; attempt?: number } = {}): Signed {
  const body = Buffer.from(text);
  const at = String(o.at ?? seconds());
  return {
    method: "POST",
    url: o.url ?? "https://hooks.example.com/cybercube",
    headers: {
      "Content-Type": "application/json",
      "X-Webhook-ID": `wh_${randomUUID().replaceAll("-", "").slice(0, 24)}`,
      "X-Webhook-Delivery-Attempt": String(o.attempt ?? 1),
      "X-Webhook-Timestamp": at,
      "X-Webhook-Signature": (o.secrets ?? [secret]).map((s) => `sha256=${hmac(s, `${at}.`, body).toString("hex")}`).join(","),
      ...o.headers,
    },
    body,
  };
}

export function signStandard(text: string | Buffer, o: Options & { id?: string } = {}): Signed {
  const body = Buffer.from(text);
  const id = o.id ?? `msg_${randomUUID()}`;
  const at = String(o.at ?? seconds());
  const mac = hmac(Buffer.from(secret.slice(6), "base64"), `${id}.${at}.`, body).toString("base64");
  return {
    method: "POST",
    url: o.url ?? "https://hooks.example.com/standard",
    headers: { "Content-Type": "application/json", "webhook-id": id, "webhook-timestamp": at, "webhook-signature": `v1,${mac}`, ...o.headers },
    body,
  };
}

export function signGithub(text: string | Buffer, o: Options & { deliveryId?: string } = {}): Signed {
  const body = Buffer.from(text);
  return {
    method: "POST",
    url: o.url ?? "https://hooks.example.com/github",
    headers: {
      "Content-Type": "application/json",
      "X-GitHub-Event": "push",
      "X-GitHub-Delivery": o.deliveryId ?? randomUUID(),
      "X-Hub-Signature-256": `sha256=${hmac(secret, body).toString("hex")}`,
      ...o.headers,
    },
    body,
  };
}

export function signSlack(text: string | Buffer, o: Options = {}): Signed {
  const body = Buffer.from(text);
  const at = String(o.at ?? seconds());
  return {
    method: "POST",
    url: o.url ?? "https://hooks.example.com/slack",
    headers: {
      "Content-Type": "application/json",
      "X-Slack-Request-Timestamp": at,
      "X-Slack-Signature": `v0=${hmac(secret, `v0:${at}:`, body).toString("hex")}`,
      ...o.headers,
    },
    body,
  };
}

export function signStripe(text: string | Buffer, o: Options = {}): Signed {
  const body = Buffer.from(text);
  const at = String(o.at ?? seconds());
  return {
    method: "POST",
    url: o.url ?? "https://hooks.example.com/stripe",
    headers: { "Content-Type": "application/json", "Stripe-Signature": `t=${at},v1=${hmac(secret, `${at}.`, body).toString("hex")}`, ...o.headers },
    body,
  };
}
