import type { Delivery } from "../receiver/delivery.js";

const members: readonly [name: string, type: string, required: boolean][] = [
  ["id", "string", true],
  ["type", "string", true],
  ["created_at", "string", true],
  ["data", "object", true],
  ["api_version", "string", false],
  ["account_id", "string", false],
  ["livemode", "boolean", false],
];

/**
 * Returns what is wrong with a CYBERCUBE event, or undefined; fits `validate` of a receiver. The four members of the
 * minimal form are required; the others must have their type if present (CCW-EVT-32, CCW-RCV-15).
 */
export function validateCybercubeEvent(delivery: Pick<Delivery, "json">): string | undefined {
  let event: unknown;
  try {
    event = delivery.json();
  } catch {
    return "the event is not JSON";
  }
  if (!isObject(event)) return "the event is not an object";
  for (const [name, type, required] of members) {
    const value = event[name];
    if (value === undefined && !required) continue;
    const fits = type === "object" ? isObject(value) : typeof value === type;
    if (!fits) return `${name} is not ${type === "object" ? "an object" : `a ${type}`}`;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
