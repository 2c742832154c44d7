import type { Endpoint } from "@godwit/client";
import { SvelteMap } from "svelte/reactivity";
import { api } from "./api.svelte.ts";
import { location } from "./router.svelte.ts";

/** Endpoints by id, so that tables can name them. They are read when the first name is asked for. */
const known = new SvelteMap<string, Endpoint>();
const asked = new Set<string>();
const read = new Map<string, Promise<boolean>>();

/** Reads the first endpoints of the tenant; true if there are no others. */
async function all(): Promise<boolean> {
  const page = await api.listEndpoints({ limit: 200 });
  for (const e of page.items) known.set(e.id, e);
  return page.next_cursor === undefined;
}

async function find(id: string): Promise<void> {
  const scope = `${location.query.get("environment") ?? ""} ${location.query.get("tenant") ?? ""}`;
  try {
    let first = read.get(scope);
    if (first === undefined) read.set(scope, (first = all()));
    if ((await first) || known.has(id)) return;
    const endpoint = await api.getEndpoint(id);
    known.set(id, endpoint);
  } catch {
    // It stays without a name: it may be deleted, or the key may not read it.
  }
}

export function endpointOf(id: string): Endpoint | undefined {
  const endpoint = known.get(id);
  if (endpoint === undefined && !asked.has(id)) {
    asked.add(id);
    void find(id);
  }
  return endpoint;
}

/** Remembers an endpoint that was read anyway. */
export function learn(endpoint: Endpoint): void {
  known.set(endpoint.id, endpoint);
}
