import { utf8 } from "../crypto/bytes.js";
import type { Answer } from "./profile.js";

export function jsonAnswer(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { "content-type": "application/json", ...headers }, body: utf8(JSON.stringify(value)) };
}

export function emptyAnswer(status: number, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers, body: null };
}
