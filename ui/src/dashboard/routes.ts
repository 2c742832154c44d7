import type { Component } from "svelte";
import { administration } from "./administration.ts";
import { match } from "../lib/router.svelte.ts";
import Deliveries from "./pages/Deliveries.svelte";
import Delivery from "./pages/Delivery.svelte";
import Event from "./pages/Event.svelte";
import Events from "./pages/Events.svelte";

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
  { path: "/events", page: Events, under: "/events" },
  { path: "/events/:id", page: Event, under: "/events" },
  { path: "/deliveries", page: Deliveries, under: "/deliveries" },
  { path: "/deliveries/:id", page: Delivery, under: "/deliveries" },
  ...administration,
];

export const navigation: readonly { readonly title: string; readonly items: readonly { readonly path: string; readonly text: string }[] }[] = [
  {
    title: "Delivery",
    items: [
      { path: "/events", text: "Events" },
      { path: "/deliveries", text: "Deliveries" },
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
      { path: "/keys", text: "Keys" },
      { path: "/nodes", text: "Nodes" },
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
