/** Errors as the sender sees them: problem details (RFC 9457) for eds, `{"error": …}` for the others. */
import { utf8 } from "../crypto/bytes.js";
import { jsonAnswer } from "../profiles/answers.js";
import type { Answer, Profile } from "../profiles/profile.js";

export type ProblemCode =
  | "method-not-allowed"
  | "too-large"
  | "too-early"
  | "rate-limited"
  | "unauthenticated"
  | "key-missing"
  | "key-malformed"
  | "key-length"
  | "payload-malformed"
  | "payload-invalid"
  | "in-progress"
  | "key-reused"
  | "unavailable"
  | "rejected"
  | "retry-after"
  | "internal";

const titles: Readonly<Record<ProblemCode, string>> = {
  "method-not-allowed": "Method not allowed",
  "too-large": "Payload too large",
  "too-early": "Too early",
  "rate-limited": "Rate limit exceeded",
  unauthenticated: "Not authenticated",
  "key-missing": "Idempotency-Key is missing",
  "key-malformed": "Idempotency-Key is malformed",
  "key-length": "Idempotency-Key has the wrong length",
  "payload-malformed": "Payload is malformed",
  "payload-invalid": "Payload is not valid",
  "in-progress": "A request with this key is in progress",
  "key-reused": "Idempotency-Key was used with another payload",
  unavailable: "Unavailable",
  rejected: "Rejected",
  "retry-after": "Try again later",
  internal: "Internal error",
};

/** The page about the policy, to which every error about a key links (IKH K-8). */
export function describedBy(docsUrl: string): string {
  return `<${docsUrl}>; rel="describedby"; type="text/html"`;
}

export function problemAnswer(
  profile: Profile,
  docsUrl: string,
  status: number,
  code: ProblemCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const all = { link: describedBy(docsUrl), ...headers };
  if (!profile.problems) return jsonAnswer(status, { error: detail }, all);
  const problem = { type: `${docsUrl}#${code}`, title: titles[code], status, detail };
  return { status, headers: { "content-type": "application/problem+json", ...all }, body: utf8(JSON.stringify(problem)) };
}

export const problemCodes = Object.keys(titles) as readonly ProblemCode[];
export const problemTitle = (code: ProblemCode): string => titles[code];
