/**
 * Verifies exported evidence in the browser, as `godwit evidence verify` does: each item's hash, its link to the item before,
 * the signatures of checkpoints and of the export itself.
 */
import { ownFetch, problem } from "./api.svelte.ts";
import type { Item } from "./ids.ts";

export interface Header {
  readonly format: string;
  readonly tenant: string;
  readonly from_seq: number;
  readonly to_seq: number;
  readonly prev_hash: string;
  readonly to_hash: string;
  readonly exported_at: string;
  readonly key_id: string;
  readonly public_key: string;
  readonly signature: string;
}

export interface Broken {
  readonly seq: number;
  readonly what: string;
}

export interface Report {
  readonly header: Header;
  /** Last item that was verified; 0 while there is none. */
  readonly seq: number;
  readonly checkpoints: number;
  /** Last item that a verified checkpoint covers. */
  readonly covered: number;
  /** All announced items were there and the last has the announced hash. */
  readonly whole: boolean;
  readonly broken?: Broken;
}

/** Whether this browser can verify: pages that did not come over https or from this machine have no cryptography. */
export function able(): boolean {
  return globalThis.crypto?.subtle !== undefined;
}

/** The canonical form of RFC 8785 of values that evidence has: texts, whole numbers, booleans and objects. */
export function canonical(value: unknown): string {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const members = Object.entries(value as Record<string, unknown>).filter(([, v]) => v !== undefined);
    members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${members.map(([name, v]) => `${JSON.stringify(name)}:${canonical(v)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  return JSON.stringify(value);
}

const encoder = new TextEncoder();

export async function sha256(text: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", typeof text === "string" ? encoder.encode(text) : text));
  let hex = "sha256:";
  for (const b of sum) hex += b.toString(16).padStart(2, "0");
  return hex;
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

async function signed(key: CryptoKey, signature: string, over: unknown): Promise<boolean> {
  return crypto.subtle.verify("Ed25519", key, bytes(signature), encoder.encode(canonical(over)));
}

async function* lines(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
    if (rest !== "") yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export const exportPath = (from: number): string => `/ids/v1/evidence/export?from_seq=${from}`;

interface Work {
  /** First item. Absent: the last ones, as many as `last` says. */
  readonly from?: number | undefined;
  readonly last?: number;
  readonly signal: AbortSignal;
  /** Gets items in order, each verified, with the state so far. */
  readonly onitems: (items: readonly Item[], report: Report) => void;
  /** Reads no further once it returns true. */
  readonly until?: (report: Report) => boolean;
}

const batch = 256;

/** Reads the chain of the tenant from the server and verifies it item by item. */
export async function verify(work: Work): Promise<Report> {
  let from = work.from ?? 1;
  for (;;) {
    const response = await ownFetch(exportPath(from), { signal: work.signal, redirect: "error" });
    if (!response.ok) throw await problem(response);
    const text = lines(response.body as ReadableStream<Uint8Array<ArrayBuffer>>);
    const first = await text.next();
    const header = JSON.parse(first.value ?? "{}") as Header;
    const begin = Math.max(1, header.to_seq - (work.last ?? Infinity) + 1);
    if (work.from === undefined && from < begin) {
      await text.return(undefined);
      from = begin;
      continue;
    }
    return read(header, text, work);
  }
}

async function read(header: Header, text: AsyncGenerator<string>, work: Work): Promise<Report> {
  let report: Report = { header, seq: 0, checkpoints: 0, covered: 0, whole: false };
  const broken = (seq: number, what: string): Report => ({ ...report, broken: { seq, what } });
  const raw = bytes(header.public_key);
  if ((await sha256(raw)) !== header.key_id) return broken(0, "the export names a key that does not have its key id");
  const key = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  const { signature, ...said } = header;
  if (!(await signed(key, signature, said))) return broken(0, "the signature of the export is wrong");

  let prev = header.prev_hash;
  let next = header.from_seq;
  const hashes = new Map<number, string>([[header.from_seq - 1, header.prev_hash]]);
  let waiting: Item[] = [];

  const take = async (): Promise<Broken | undefined> => {
    const good: Item[] = [];
    const sums = await Promise.all(waiting.map(({ hash: _, ...rest }) => sha256(canonical(rest))));
    for (const [i, item] of waiting.entries()) {
      if (item.seq !== next) return { seq: next, what: `item ${next} is missing` };
      if (item.tenant !== header.tenant) return { seq: next, what: `item ${next} belongs to another chain` };
      if (item.prev_hash !== prev) return { seq: next, what: `item ${next} does not follow the item before it` };
      if (item.hash !== sums[i]) return { seq: next, what: `item ${next} was changed: its hash is not that of its content` };
      const c = item.checkpoint;
      if (c) {
        const over = { at: item.at, context: "godwit-evidence-checkpoint/1", hash: c.hash, seq: c.seq, tenant: item.tenant };
        if (c.key_id !== header.key_id) return { seq: next, what: `checkpoint ${next} is signed with another key, ${c.key_id}` };
        if (!(await signed(key, c.signature, over))) return { seq: next, what: `the signature of checkpoint ${next} is wrong` };
        const known = hashes.get(c.seq);
        if (known !== undefined && known !== c.hash) return { seq: c.seq, what: `checkpoint ${next} covers another item ${c.seq} than this chain has` };
        report = { ...report, checkpoints: report.checkpoints + 1, covered: known === undefined ? report.covered : Math.max(report.covered, c.seq) };
      }
      hashes.set(item.seq, item.hash);
      prev = item.hash;
      next++;
      good.push(item);
      report = { ...report, seq: item.seq };
    }
    waiting = [];
    work.onitems(good, report);
    return undefined;
  };

  for await (const line of text) {
    if (work.signal.aborted) return report;
    if (line === "") continue;
    waiting.push(JSON.parse(line) as Item);
    if (waiting.length < batch) continue;
    const wrong = await take();
    if (wrong) return { ...report, broken: wrong };
    if (work.until?.(report)) return report;
  }
  const wrong = await take();
  if (wrong) return { ...report, broken: wrong };
  if (next !== header.to_seq + 1) return broken(next, `the chain ends before item ${next}, which the export announces`);
  if (prev !== header.to_hash) return broken(header.to_seq, "the last item has another hash than the export announces");
  return { ...report, whole: true };
}

/**
 * Whether an outcome is the one whose digest is in the evidence. undefined: it cannot be told, since the server left out
 * members that this session may not see.
 */
export async function fits(outcome: { readonly masked?: readonly string[] }, digest: string): Promise<boolean | undefined> {
  if ((outcome.masked ?? []).length > 0) return undefined;
  const text = JSON.stringify(outcome);
  // The server stores the outcome with these characters escaped.
  const stored = text.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return (await sha256(stored)) === digest;
}
