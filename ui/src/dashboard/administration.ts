/** Pages beside those of delivery: what is set up, who may do what, and what was done. */
import Command from "./pages/Command.svelte";
import Commands from "./pages/Commands.svelte";
import Environment from "./pages/Environment.svelte";
import Environments from "./pages/Environments.svelte";
import Evidence from "./pages/Evidence.svelte";
import EventType from "./pages/EventType.svelte";
import EventTypes from "./pages/EventTypes.svelte";
import Keys from "./pages/Keys.svelte";
import Nodes from "./pages/Nodes.svelte";
import Notices from "./pages/Notices.svelte";
import RunCommand from "./pages/RunCommand.svelte";
import Sessions from "./pages/Sessions.svelte";
import Settings from "./pages/Settings.svelte";
import Source from "./pages/Source.svelte";
import Sources from "./pages/Sources.svelte";
import Tenant from "./pages/Tenant.svelte";
import Tenants from "./pages/Tenants.svelte";

export const administration = [
  { path: "/event-types", page: EventTypes, under: "/event-types" },
  { path: "/event-types/:name", page: EventType, under: "/event-types" },
  { path: "/sources", page: Sources, under: "/sources" },
  { path: "/sources/:id", page: Source, under: "/sources" },
  { path: "/notices", page: Notices, under: "/notices" },
  { path: "/commands", page: Commands, under: "/commands" },
  { path: "/commands/run/:name", page: RunCommand, under: "/commands" },
  { path: "/commands/:id", page: Command, under: "/commands" },
  { path: "/evidence", page: Evidence, under: "/evidence" },
  { path: "/keys", page: Keys, under: "/keys" },
  { path: "/tenants", page: Tenants, under: "/tenants" },
  { path: "/tenants/:id", page: Tenant, under: "/tenants" },
  { path: "/environments", page: Environments, under: "/environments" },
  { path: "/environments/:id", page: Environment, under: "/environments" },
  { path: "/settings", page: Settings, under: "/settings" },
  { path: "/sessions", page: Sessions, under: "/sessions" },
  { path: "/nodes", page: Nodes, under: "/nodes" },
] as const;
