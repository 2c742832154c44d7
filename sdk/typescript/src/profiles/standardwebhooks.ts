/**
 * Standard Webhooks: `v1` (HMAC-SHA256 with the decoded base64 behind whsec_) and `v1a` (Ed25519, public key whpk_)
 * over `<id>.<timestamp>.<body>`. Entries of other versions are skipped.
 */
import { fromBase64, type Bytes } from "../crypto/bytes.js";
import { ed25519Key, hmacKey, type VerifyingKey } from "../crypto/keys.js";
import { WebhookSignatureError } from "../errors.js";
import { emptyAnswer } from "./answers.js";
import { day, type Profile } from "./profile.js";
import { anyVerifies, boundedKey, checkFresh, jsonObject, mismatch, prefixed, secretList, textMember, unixSeconds, type Secrets } from "./secrets.js";

export interface StandardWebhooksOptions {
  /** The accepted shared secrets (whsec_…) and public keys (whpk_…). Required. */
  readonly keys: Secrets;
  /** The name of the sender. Deduplication is per principal. Defaults to standard-webhooks. */
  readonly principal?: string;
}

export function standardWebhooks(options: StandardWebhooksOptions): Profile {
  const name = "standard-webhooks";
  const keys = { v1: [] as VerifyingKey[], v1a: [] as VerifyingKey[] };
  for (const text of secretList(name, options.keys)) {
    const isPublic = text.startsWith("whpk_");
    const bytes = fromBase64(text.replace(/^wh(?:pk|sec)_/, ""));
    if (bytes === undefined) throw new Error(`${name}: a key is not base64`);
    if (isPublic) keys.v1a.push(ed25519Key(bytes));
    else keys.v1.push(hmacKey("SHA-256", bytes));
  }
  return {
    name,
    methods: ["POST"],
    signsTime: true,
    windowFloor: day,
    lease: 60,
    fingerprint: true,
    problems: false,
    keySource: "the header webhook-id",
    async authenticate(message, check) {
      const id = message.fields.get("webhook-id");
      const timestamp = message.fields.get("webhook-timestamp");
      const header = message.fields.get("webhook-signature");
      if (!id || !header) throw new WebhookSignatureError("no signature", "missing");
      const signedAt = unixSeconds(timestamp);
      checkFresh(signedAt, check);
      const signed = prefixed(`${id}.${timestamp}.`, message.body);
      const good =
        (await anyVerifies(keys.v1, signed, entries(header, "v1"))) || (await anyVerifies(keys.v1a, signed, entries(header, "v1a")));
      if (!good) throw mismatch();
      return { principal: options.principal ?? name, signedAt, once: `${id} ${timestamp}` };
    },
    identify(message) {
      const key = boundedKey(message.fields.get("webhook-id"), "webhook-id");
      return { key, deliveryId: key, eventId: key, eventType: textMember(jsonObject(message.body), "type") ?? "" };
    },
    success: () => emptyAnswer(204),
  };
}

function entries(header: string, version: string): Bytes[] {
  return header
    .split(" ")
    .filter((entry) => entry.startsWith(`${version},`))
    .map((entry) => fromBase64(entry.slice(version.length + 1)))
    .filter((signature) => signature !== undefined) as Bytes[];
}
