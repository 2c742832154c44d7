import type { Component } from "svelte";
import { match } from "../lib/router.svelte.ts";
import { session, type Capability } from "./session.svelte.ts";
import { words } from "./words.svelte.ts";
import Activity from "./pages/Activity.svelte";
import Deliveries from "./pages/Deliveries.svelte";
import Delivery from "./pages/Delivery.svelte";
import EditEndpoint from "./pages/EditEndpoint.svelte";
import Endpoint from "./pages/Endpoint.svelte";
import Endpoints from "./pages/Endpoints.svelte";
import Event from "./pages/Event.svelte";
import Events from "./pages/Events.svelte";
import EventType from "./pages/EventType.svelte";
import EventTypes from "./pages/EventTypes.svelte";
import Live from "./pages/Live.svelte";
import NewEndpoint from "./pages/NewEndpoint.svelte";
import Recover from "./pages/Recover.svelte";
import Verify from "./pages/Verify.svelte";

export interface Route {
  readonly path: string;
  /** Each page declares its own parameters. */
  readonly page: Component<any>;
  /** All of them are needed. */
  readonly needs: readonly Capability[];
  /** Path of the entry in the navigation that it belongs to. */
  readonly under: string;
}

const routes: readonly Route[] = [
  { path: "/endpoints", page: Endpoints, needs: ["view_endpoints"], under: "/endpoints" },
  { path: "/endpoints/new", page: NewEndpoint, needs: ["manage_endpoints"], under: "/endpoints/new" },
  { path: "/endpoints/:id", page: Endpoint, needs: ["view_endpoints"], under: "/endpoints" },
  { path: "/endpoints/:id/edit", page: EditEndpoint, needs: ["view_endpoints", "manage_endpoints"], under: "/endpoints" },
  { path: "/endpoints/:id/verify", page: Verify, needs: ["view_endpoints"], under: "/endpoints" },
  { path: "/deliveries", page: Deliveries, needs: ["view_endpoints"], under: "/deliveries" },
  { path: "/deliveries/:id", page: Delivery, needs: ["view_endpoints"], under: "/deliveries" },
  { path: "/events", page: Events, needs: ["view_payloads"], under: "/events" },
  { path: "/events/:id", page: Event, needs: ["view_payloads"], under: "/events" },
  { path: "/event-types", page: EventTypes, needs: ["event_types"], under: "/event-types" },
  { path: "/event-types/:name", page: EventType, needs: ["event_types"], under: "/event-types" },
  { path: "/activity", page: Activity, needs: ["view_endpoints"], under: "/activity" },
  { path: "/live", page: Live, needs: ["view_endpoints"], under: "/live" },
  { path: "/recover", page: Recover, needs: ["replay"], under: "/recover" },
];

const open = (route: Route): boolean => route.needs.every((capability) => session.may(capability));

export interface Entry {
  readonly path: string;
  readonly text: string;
}

/** The navigation: pages that the session may open. */
export function navigation(): Entry[] {
  const entries: Entry[] = [
    { path: "/endpoints", text: words.endpoints },
    { path: "/endpoints/new", text: "Add an endpoint" },
    { path: "/deliveries", text: words.deliveries },
    { path: "/activity", text: "Activity" },
    { path: "/live", text: "Live" },
    { path: "/events", text: "Events" },
    { path: "/event-types", text: words.eventTypes },
    { path: "/recover", text: "Recover" },
  ];
  const listed = session.may("view_endpoints");
  return entries.filter((e) => routes.some((r) => r.path === e.path && open(r)) && !(listed && e.path === "/endpoints/new"));
}

/** The page to begin with. */
export function start(): string {
  const wanted = `/${session.current?.start_page ?? ""}`;
  return find(wanted) ? wanted : (navigation()[0]?.path ?? "/");
}

export function find(path: string): { route: Route; params: Record<string, string> } | undefined {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params) return open(route) ? { route, params } : undefined;
  }
  return undefined;
}
