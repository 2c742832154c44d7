import { GodwitClient, GodwitError } from "@godwit/client";
import { location } from "./router.svelte.ts";

/** Called when the server no longer knows the session. */
let onSignedOut: () => void = () => undefined;

export function whenSignedOut(f: () => void): void {
  onSignedOut = f;
}

const own = new Map<string, string>();

/** Sets a header field that every request of the portal carries. Its pages act for the tenant of their session, whatever the address says. */
export function useHeader(name: string, value: string): void {
  own.set(name, value);
}

/** Header fields that name the tenant and the environment of the address bar, for requests that name none themselves. */
function scoped(headers: Headers): void {
  const tenant = location.query.get("tenant");
  const environment = location.query.get("environment");
  if (tenant !== null && !headers.has("godwit-tenant")) headers.set("godwit-tenant", tenant);
  if (environment !== null && !headers.has("godwit-environment")) headers.set("godwit-environment", environment);
  // An empty value means: for no tenant.
  if (headers.get("godwit-tenant") === "") headers.delete("godwit-tenant");
  if (headers.get("godwit-environment") === "") headers.delete("godwit-environment");
}

/** Requests to this server carry the session's cookie in place of a key. */
export const ownFetch: typeof globalThis.fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.delete("authorization");
  for (const [name, value] of own) headers.set(name, value);
  if (own.size === 0) scoped(headers);
  const response = await globalThis.fetch(input, { ...init, headers, credentials: "same-origin" });
  if (response.status === 401) onSignedOut();
  return response;
};

/** The client of the API: generated from the server's own document. */
export const api = new GodwitClient({ baseUrl: window.location.origin, apiKey: "cookie", fetch: ownFetch, timeout: 60_000 });

/** A request that the generated client has no method for, such as those of /ids/v1. */
export async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const init: RequestInit = { method, redirect: "error" };
  if (signal) init.signal = signal;
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const response = await ownFetch(path, init);
  if (!response.ok) throw await problem(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** What the server said about a refused request. */
export async function problem(response: Response): Promise<GodwitError> {
  let value: Record<string, unknown> = {};
  try {
    value = (await response.json()) as Record<string, unknown>;
  } catch {
    // Not the server's own answer: only the status is known.
  }
  const text = (name: string): string | undefined => (typeof value[name] === "string" ? value[name] : undefined);
  const errors = Array.isArray(value["errors"]) ? (value["errors"] as { field: string; detail: string }[]) : [];
  return new GodwitError(response.status, text("code") ?? "", text("detail") ?? text("title") ?? response.statusText, text("request_id"), response.headers.get("retry-after") ?? undefined, errors);
}

/** A new idempotency key, so that a repeated click is one request. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
