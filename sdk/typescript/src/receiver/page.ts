/** The page that publishes the receiver's policy (IKH-RSP-3). It is made from the running configuration. */
import { utf8 } from "../crypto/bytes.js";
import type { Answer } from "../profiles/profile.js";
import type { Settings } from "./settings.js";
import { problemTitle, type ProblemCode } from "./problem.js";

/** The page as it is served, without credentials. */
export function policyAnswer(s: Settings): Answer {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
  };
  return { status: 200, headers, body: utf8(policyPage(s)) };
}

export function policyPage(s: Settings): string {
  const rows = rules(s).map(([name, text]) => `<dt>${escape(name)}</dt><dd>${escape(text)}</dd>`);
  const errors = errorRows(s).map(
    ([status, code, text]) => `<tr id="${code}"><td>${status}</td><td>${escape(problemTitle(code))}</td><td>${escape(text)}</td></tr>`,
  );
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Webhook receiver: idempotency policy</title></head>
<body>
<h1>Webhook receiver: idempotency policy</h1>
<dl>
${rows.join("\n")}
</dl>
<h2>Errors</h2>
<table>
<tr><th>Status</th><th>Error</th><th>When, and what to do</th></tr>
${errors.join("\n")}
</table>
</body>
</html>
`;
}

function rules(s: Settings): [string, string][] {
  const { profile } = s;
  const list: [string, string][] = [
    ["Profile", profile.name],
    ["Methods", profile.methods.join(", ")],
    ["Size", `at most ${s.limit} bytes`],
    ["Authentication", "required on every request, over the raw bytes"],
    ["Freshness", s.tolerance === undefined ? "not checked" : `the signed time may differ from ours by at most ${s.tolerance} seconds`],
    ["Key", `required; taken from ${profile.keySource}`],
  ];
  if (profile.name === "eds") {
    const lenient = s.keyPolicy.lenient ? "; a bare value is accepted as well" : "";
    list.push([
      "Key format",
      `one structured-field String (RFC 9651) in double quotes, ${s.keyPolicy.minLength} to ${s.keyPolicy.maxLength} printable ASCII characters${lenient}`,
    ]);
  }
  if (!s.dedup) {
    list.push(["Deduplication", "off: replays are refused by their signed time and nonce alone; handlers must bear duplicates"]);
    return list;
  }
  list.push(
    ["Key scope", "unique per authenticated producer and endpoint URI"],
    ["Expiry", `a key is remembered for ${s.window / 3600} hours (${s.window} seconds) after the first request with it has completed; after that it is a new one`],
    ["Fingerprint", s.fingerprint === undefined ? "off: a repeat is told by its key alone" : "on: a key may not be used again with another payload"],
    ["Repeats", "a repeat of a completed request gets the stored answer again, with the header Idempotency-Replayed: true"],
  );
  return list;
}

/** A row for each type of problem: the types are addresses into this table. */
function errorRows(s: Settings): [number, ProblemCode, string][] {
  const wait = "come again later, unchanged";
  const correct = "Correct the request before sending it again.";
  const keyed: [number, ProblemCode, string][] = [
    [400, "key-missing", `The key is missing. ${correct}`],
    [400, "key-malformed", `The key does not have the published format. ${correct}`],
    [400, "key-length", `The key is too short or too long. ${correct}`],
  ];
  const dedup: [number, ProblemCode, string][] = [
    [s.api ? 409 : 503, "in-progress", `A request with this key is being processed: ${wait}.`],
    [422, "key-reused", `The key was used with another payload. ${correct}`],
  ];
  return [
    ...keyed,
    ...(s.dedup ? dedup : []),
    [400, "payload-malformed", `The payload cannot be read. ${correct}`],
    [400, "payload-invalid", `The payload is not what it should be. ${correct}`],
    [422, "rejected", "The event will never be taken as it is; the status may be another one of 400 to 499."],
    [503, "retry-after", `The event cannot be taken now: ${wait}.`],
    [401, "unauthenticated", "The signature is missing, wrong, or not fresh. Sign anew before sending again."],
    [405, "method-not-allowed", "Another method is needed; see Allow."],
    [413, "too-large", "The payload is too large."],
    [425, "too-early", "Sent as early data, which this receiver does not take: send it again after the handshake."],
    [429, "rate-limited", `Too many requests: ${wait}.`],
    [503, "unavailable", `The receiver cannot remember keys at the moment: ${wait}.`],
    [500, "internal", `The receiver failed: ${wait}.`],
  ];
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}
