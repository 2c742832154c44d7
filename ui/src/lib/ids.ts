import { GodwitError } from "@godwit/client";
import { ownFetch } from "./api.svelte.ts";

/** A JSON Schema, as far as the pages look into it. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** A command that may be submitted. */
export interface Declaration {
  readonly entity: string;
  readonly action: string;
  readonly description: string;
  readonly class?: string;
  readonly class_justification?: string;
  readonly critical?: boolean;
  readonly ttl?: string;
  readonly args_schema?: Schema;
  readonly scopes: readonly string[];
  readonly target_required?: boolean;
  readonly requires_confirmation?: boolean;
  readonly requires_step_up?: boolean;
  readonly shielding?: readonly string[];
  readonly tenant?: string;
  readonly remote?: { readonly endpoint: string };
}

export interface Registry {
  readonly commands: readonly Declaration[];
  readonly caller: { readonly tenant_id: string; readonly actor_id: string; readonly scopes: readonly string[] };
}

export interface Outcome {
  readonly status: string;
  readonly summary?: string;
  readonly result?: unknown;
  readonly reason?: string;
  readonly detail?: string;
  readonly secret_redacted?: boolean;
  readonly masked?: readonly string[];
}

/** What the server says about a command. */
export interface Answer {
  readonly status: string;
  readonly substatus?: string;
  readonly decision?: string;
  readonly executed: boolean;
  readonly command_id: string;
  readonly intent: { readonly entity: string; readonly action: string; readonly target?: string };
  readonly idempotency_key: string;
  readonly envelope_fingerprint?: string;
  readonly summary?: string;
  readonly outcome?: Outcome;
  readonly created_at?: string;
  readonly updated_at?: string;
  readonly ttl_expires_at?: string;
  readonly confirmation_token?: string;
  readonly expires_at?: string;
  readonly step_up_url?: string;
  readonly affects?: { readonly dead_letters: number; readonly more: boolean; readonly endpoints: readonly { readonly id: string; readonly dead_letters: number }[] };
}

export interface Approval {
  readonly command_id: string;
  readonly step_up_token: string;
  readonly expires_at: string;
}

/** An item of the chain of evidence. */
export interface Item {
  readonly seq: number;
  readonly tenant: string;
  readonly type: string;
  readonly at: string;
  readonly executed: boolean;
  readonly prev_hash: string;
  readonly hash: string;
  readonly decision?: string;
  readonly command_id?: string;
  readonly submitted_command_id?: string;
  readonly idempotency_key?: string;
  readonly command?: string;
  readonly target?: string;
  readonly actor_id?: string;
  readonly channel?: string;
  readonly outcome_status?: string;
  readonly outcome_digest?: string;
  readonly reason?: string;
  readonly event_id?: string;
  readonly delivery_id?: string;
  readonly endpoint_id?: string;
  readonly response_status?: number;
  readonly checkpoint?: { readonly seq: number; readonly hash: string; readonly key_id: string; readonly signature: string };
}

/** A refusal of /ids/v1 names its reason where problems have a code. */
function refusal(response: Response, body: Record<string, unknown>): GodwitError {
  const text = (name: string): string | undefined => (typeof body[name] === "string" ? body[name] : undefined);
  const errors = Array.isArray(body["errors"]) ? (body["errors"] as { field: string; detail: string }[]) : [];
  return new GodwitError(
    response.status,
    text("reason") ?? text("code") ?? "",
    text("detail") ?? text("title") ?? response.statusText,
    text("request_id"),
    response.headers.get("retry-after") ?? undefined,
    errors,
  );
}

async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, redirect: "error" };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const response = await ownFetch(`/ids/v1/${path}`, init);
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  // A command that was executed and then rejected or failed is an answer: it has an outcome.
  if (!response.ok && answer["outcome"] === undefined) throw refusal(response, answer);
  return answer as T;
}

export const registry = (signal?: AbortSignal): Promise<Registry> => call("GET", "registry", undefined, signal);
export const status = (id: string, signal?: AbortSignal): Promise<Answer> => call("GET", `commands/${encodeURIComponent(id)}`, undefined, signal);
export const approve = (id: string): Promise<Approval> => call("POST", `commands/${encodeURIComponent(id)}/step-up`, {});

export function confirm(id: string, token: string, stepUp: string): Promise<Answer> {
  return call("POST", `commands/${encodeURIComponent(id)}/confirm`, { confirmation_token: token, ...(stepUp === "" ? {} : { step_up_token: stepUp }) });
}

export async function evidenceOf(command: string, signal?: AbortSignal): Promise<readonly Item[]> {
  return (await call<{ evidence: readonly Item[] }>("GET", `evidence?limit=1000&command_id=${encodeURIComponent(command)}`, undefined, signal)).evidence;
}

/** The evidence of commands and changes that are about an object, also after it is gone; the oldest first. */
export async function evidenceAbout(target: string, signal?: AbortSignal): Promise<readonly Item[]> {
  const found: Item[] = [];
  let after = 0;
  for (;;) {
    const page = await call<{ evidence: readonly Item[]; next_after?: number }>("GET", `evidence?limit=1000&after=${after}&target=${encodeURIComponent(target)}`, undefined, signal);
    found.push(...page.evidence);
    if (page.next_after === undefined || found.length >= 10_000) return found;
    after = page.next_after;
  }
}

/** Runs a command whose dialog asked already: submits it, and confirms it with the token of the answer. */
export async function runConfirmed(entity: string, action: string, target: string): Promise<Answer> {
  const { commands, caller } = await registry();
  const declared = commands.find((d) => d.entity === entity && d.action === action);
  if (!declared) throw new Error(`This server has no command ${entity}.${action}.`);
  let answer = await submit(caller, declared, target, undefined);
  if (answer.substatus === "awaiting_confirmation") {
    if (!answer.confirmation_token) throw new Error("The same command awaits confirmation where it was submitted before. Confirm it there, or wait until that has run out.");
    answer = await confirm(answer.command_id, answer.confirmation_token, "");
  }
  if (answer.outcome && answer.outcome.status !== "executed") throw new Error(answer.outcome.detail ?? answer.outcome.reason ?? "The command was not executed.");
  return answer;
}

/** The server's public key, to check signatures with. */
export const evidenceKey = (signal?: AbortSignal): Promise<{ key_id: string; public_key: string }> => call("GET", "evidence/key", undefined, signal);

/** "cmd_" and a UUID of version 7. */
export function newCommand(now = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  for (let i = 0; i < 6; i++) bytes[i] = Math.floor(now / 2 ** (8 * (5 - i))) % 256;
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  return `cmd_${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function submit(caller: Registry["caller"], d: Declaration, target: string, args: unknown): Promise<Answer> {
  return call("POST", "commands", {
    command_id: newCommand(),
    issued_at: new Date().toISOString(),
    tenant_id: caller.tenant_id,
    actor_id: caller.actor_id,
    channel: "dashboard",
    intent: { entity: d.entity, action: d.action, ...(target === "" ? {} : { target }) },
    ...(args === undefined ? {} : { args }),
  });
}
