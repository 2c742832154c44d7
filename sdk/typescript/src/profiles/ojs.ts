/**
 * The Open Job Spec's webhook deliveries. They are deduplicated by delivery id (OJS-DLV-20), which is not signed: an
 * attacker who has broken TLS could repeat a captured request under another id within the tolerance.
 */
import { jsonAnswer } from "./answers.js";
import { day, type Profile } from "./profile.js";
import { boundedKey, jsonObject, textKeys, textMember, type SharedSecretOptions } from "./secrets.js";
import { authenticateTimestamped, type TimestampedScheme } from "./timestamped.js";

export function ojs(options: SharedSecretOptions): Profile {
  const scheme: TimestampedScheme = {
    signatureField: "x-ojs-signature",
    timestampField: "x-ojs-timestamp",
    principal: options.principal ?? "ojs",
    keys: textKeys("ojs", options.secrets),
    strictPrefix: false,
  };
  return {
    name: "ojs",
    methods: ["POST"],
    signsTime: true,
    alwaysDedup: true,
    windowFloor: day,
    lease: 60,
    fingerprint: true,
    problems: false,
    keySource: "the header X-OJS-Delivery-ID",
    authenticate: (message, check) => authenticateTimestamped(scheme, message, check),
    identify(message) {
      const key = boundedKey(message.fields.get("x-ojs-delivery-id"), "X-OJS-Delivery-ID");
      const event = jsonObject(message.body);
      return { key, deliveryId: key, eventId: textMember(event, "id") ?? key, eventType: textMember(event, "type") ?? "" };
    },
    success: () => jsonAnswer(200, { received: true }),
  };
}
