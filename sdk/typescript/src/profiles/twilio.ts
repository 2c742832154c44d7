/**
 * Twilio: `X-Twilio-Signature` is base64 of HMAC-SHA1 over the full public address and, for a form, its parameters in
 * order of their names. JSON is covered by its digest in the query parameter bodySHA256, which is part of the address.
 */
import { equalBytes, fromBase64, fromHex, utf8, type Bytes } from "../crypto/bytes.js";
import { digest } from "../crypto/keys.js";
import { WebhookSignatureError } from "../errors.js";
import { splitUri } from "../httpsig/message.js";
import type { Message, Profile } from "./profile.js";
import { anyVerifies, bodyKey, boundedKey, mismatch, textKeys, type SharedSecretOptions } from "./secrets.js";
import { formParams, one, required, vendor } from "./vendors.js";

export function twilio(options: SharedSecretOptions): Profile {
  const keys = textKeys("twilio", options.secrets, "SHA-1");
  return {
    ...vendor,
    name: "twilio",
    signsTime: false,
    signsTarget: true,
    keySource: "the header I-Twilio-Idempotency-Token; else the message or call and its status",
    async authenticate(message) {
      const signature = one(fromBase64(required(message, "x-twilio-signature")));
      const params = isForm(message) ? sortedParams(message.body) : await digestBound(message);
      for (const url of spellings(message.url)) {
        if (await anyVerifies(keys, utf8(url + params), signature)) return { principal: options.principal ?? "twilio" };
      }
      throw mismatch();
    },
    async identify(message) {
      const params = isForm(message) ? formParams(message.body) : new URLSearchParams();
      const subject = params.get("MessageSid") || params.get("CallSid");
      const status = params.get("MessageStatus") || params.get("CallStatus") || params.get("SmsStatus") || "";
      const token = message.fields.get("i-twilio-idempotency-token");
      const key = token || (subject ? `${subject}:${status}` : await bodyKey(message));
      return { key: boundedKey(key, "I-Twilio-Idempotency-Token"), eventId: subject || key, eventType: status };
    },
  };
}

function isForm(message: Message): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(message.fields.get("content-type") ?? "");
}

/** Names in code-unit order; the distinct values of a repeated name in order as well. */
function sortedParams(body: Bytes): string {
  const params = formParams(body);
  const names = [...new Set(params.keys())].sort();
  return names.flatMap((name) => [...new Set(params.getAll(name))].sort().map((value) => name + value)).join("");
}

async function digestBound(message: Message): Promise<string> {
  const query = new URLSearchParams(splitUri(message.url).query ?? "");
  const claimed = fromHex(query.get("bodySHA256") ?? "");
  if (claimed === undefined || !equalBytes(claimed, await digest("SHA-256", message.body))) {
    throw new WebhookSignatureError("bodySHA256 does not fit the body", "digest-mismatch");
  }
  return "";
}

/** Twilio signs some addresses with the port and some without. */
function spellings(url: string): readonly string[] {
  const { scheme, host, path, query } = splitUri(url);
  const rest = path + (query === undefined ? "" : `?${query}`);
  const bare = host.replace(/:[0-9]*$/, "");
  const port = /:([0-9]+)$/.exec(host)?.[1] ?? (scheme === "https" ? "443" : "80");
  return [...new Set([url, `${scheme}://${bare}${rest}`, `${scheme}://${bare}:${port}${rest}`])];
}
