import type { Endpoint, Tenant } from "@godwit/client";
import { SvelteMap } from "svelte/reactivity";
import { api } from "./api.svelte.ts";
import { location } from "./router.svelte.ts";
import { session } from "./session.svelte.ts";

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

/** Whether a tenant is another than the one whose pages are shown, as in the overview of an administrator. */
export function foreign(tenant: string | undefined): tenant is string {
  return tenant !== undefined && !location.query.has("tenant") && tenant !== session.current?.tenant?.id;
}

async function find(id: string, tenant: string | undefined): Promise<void> {
  const scope = `${location.query.get("environment") ?? ""} ${location.query.get("tenant") ?? ""}`;
  try {
    if (foreign(tenant)) {
      known.set(id, await api.getEndpoint(id, { tenant }));
      return;
    }
    let first = read.get(scope);
    if (first === undefined) read.set(scope, (first = all()));
    if ((await first) || known.has(id)) return;
    const endpoint = await api.getEndpoint(id);
    known.set(id, endpoint);
  } catch {
    // It stays without a name: it may be deleted, or the key may not read it.
  }
}

export function endpointOf(id: string, tenant?: string): Endpoint | undefined {
  const endpoint = known.get(id);
  if (endpoint === undefined && !asked.has(id)) {
    asked.add(id);
    void find(id, tenant);
  }
  return endpoint;
}

/** Remembers an endpoint that was read anyway. */
export function learn(endpoint: Endpoint): void {
  known.set(endpoint.id, endpoint);
}

const tenants = new SvelteMap<string, Tenant>();

export function tenantOf(id: string): Tenant | undefined {
  const tenant = tenants.get(id);
  if (tenant === undefined && !asked.has(id)) {
    asked.add(id);
    api.getTenant(id, { tenant: "" }).then(
      (t) => tenants.set(id, t),
      () => undefined, // it stays without a name
    );
  }
  return tenant;
}
