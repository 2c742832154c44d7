/** CYBERCUBE webhooks. They are deduplicated by the event's id, for all attempts (CCW-IDM-2). */
import { jsonAnswer } from "./answers.js";
import { day, type Profile } from "./profile.js";
import { boundedKey, positiveInteger, requireObject, textKeys, textMember, type SharedSecretOptions } from "./secrets.js";
import { authenticateTimestamped, type TimestampedScheme } from "./timestamped.js";

export function cybercube(options: SharedSecretOptions): Profile {
  const scheme: TimestampedScheme = {
    signatureField: "x-webhook-signature",
    timestampField: "x-webhook-timestamp",
    principal: options.principal ?? "cybercube",
    keys: textKeys("cybercube", options.secrets),
    strictPrefix: true,
  };
  return {
    name: "cybercube",
    methods: ["POST"],
    signsTime: true,
    alwaysDedup: true,
    windowFloor: 7 * day,
    lease: 300, // the lock of CCW-IDM-6
    fingerprint: true,
    problems: false,
    refusal: "Invalid signature", // CCW-RCV-9
    keySource: "the member id of the event",
    authenticate: (message, check) => authenticateTimestamped(scheme, message, check),
    identify(message) {
      const event = requireObject(message.body);
      const key = boundedKey(textMember(event, "id"), "the event's id");
      const deliveryId = message.fields.get("x-webhook-id");
      const attempt = positiveInteger(message.fields.get("x-webhook-delivery-attempt"));
      return {
        key,
        eventId: key,
        eventType: textMember(event, "type") ?? "",
        ...(deliveryId === undefined ? {} : { deliveryId }),
        ...(attempt === undefined ? {} : { attempt }),
      };
    },
    success: (identity) => jsonAnswer(200, { received: true, event_id: identity.eventId }),
  };
}
