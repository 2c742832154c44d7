import type { Component } from "svelte";
import { administration } from "./administration.ts";
import { match } from "../lib/router.svelte.ts";
import DeadLetters from "./pages/DeadLetters.svelte";
import Deliveries from "./pages/Deliveries.svelte";
import Delivery from "./pages/Delivery.svelte";
import EditEndpoint from "./pages/EditEndpoint.svelte";
import Endpoint from "./pages/Endpoint.svelte";
import Endpoints from "./pages/Endpoints.svelte";
import Event from "./pages/Event.svelte";
import Events from "./pages/Events.svelte";
import Live from "./pages/Live.svelte";
import NewEndpoint from "./pages/NewEndpoint.svelte";
import Overview from "./pages/Overview.svelte";

type Params = Record<string, string>;

/** A page, and where it stands in the navigation. */
export interface Route {
  readonly path: string;
  /** Each page declares its own parameters. */
  readonly page: Component<any>;
  /** Path of the entry in the navigation that it belongs to. */
  readonly under: string;
}

export const routes: readonly Route[] = [
  { path: "/", page: Overview, under: "/" },
  { path: "/events", page: Events, under: "/events" },
  { path: "/events/:id", page: Event, under: "/events" },
  { path: "/deliveries", page: Deliveries, under: "/deliveries" },
  { path: "/deliveries/:id", page: Delivery, under: "/deliveries" },
  { path: "/endpoints", page: Endpoints, under: "/endpoints" },
  { path: "/endpoints/new", page: NewEndpoint, under: "/endpoints" },
  { path: "/endpoints/:id", page: Endpoint, under: "/endpoints" },
  { path: "/endpoints/:id/edit", page: EditEndpoint, under: "/endpoints" },
  { path: "/dead-letters", page: DeadLetters, under: "/dead-letters" },
  { path: "/live", page: Live, under: "/live" },
  ...administration,
];

export const navigation: readonly { readonly title: string; readonly items: readonly { readonly path: string; readonly text: string }[] }[] = [
  {
    title: "Delivery",
    items: [
      { path: "/", text: "Overview" },
      { path: "/events", text: "Events" },
      { path: "/deliveries", text: "Deliveries" },
      { path: "/endpoints", text: "Endpoints" },
      { path: "/dead-letters", text: "Dead letters" },
      { path: "/live", text: "Live" },
    ],
  },
  {
    title: "Set-up",
    items: [
      { path: "/event-types", text: "Event types" },
      { path: "/sources", text: "Sources" },
    ],
  },
  {
    title: "Audit",
    items: [
      { path: "/notices", text: "Notices" },
      { path: "/commands", text: "Commands" },
      { path: "/evidence", text: "Evidence" },
    ],
  },
  {
    title: "Server",
    items: [
      { path: "/tenants", text: "Tenants" },
      { path: "/environments", text: "Environments" },
      { path: "/keys", text: "Keys" },
      { path: "/sessions", text: "Sessions" },
      { path: "/nodes", text: "Nodes" },
      { path: "/settings", text: "Settings" },
    ],
  },
];

export function find(path: string): { route: Route; params: Params } | undefined {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params) return { route, params };
  }
  return undefined;
}
