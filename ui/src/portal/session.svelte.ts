import type { GodwitError } from "@godwit/client";
import { ownFetch, problem, useHeader, whenSignedOut } from "../lib/api.svelte.ts";
import { framed, tell } from "./embed.ts";
import type { Theme } from "./look.ts";

/** What a link may allow. None implies another. */
export type Capability = "view_endpoints" | "manage_endpoints" | "secrets" | "send_tests" | "view_payloads" | "replay" | "event_types";

/** The session of a portal. The cookie that proves it is not readable here. */
export interface Session {
  readonly id: string;
  readonly tenant?: { readonly id: string; readonly uid?: string; readonly name: string };
  readonly capabilities?: readonly Capability[];
  readonly theme?: "light" | "dark" | "system";
  readonly return_url?: string;
  readonly start_page?: string;
  readonly hide_navigation?: boolean;
  readonly expires_at: string;
}

/** How the environment wants its portal to look. */
export interface Look {
  readonly environment: { readonly name: string; readonly live: boolean };
  readonly theme: Theme;
}

let current = $state.raw<Session | undefined>();
let look = $state.raw<Look | undefined>();
let known = $state(false);
let ended = $state(false);

export const session = {
  get current(): Session | undefined {
    return current;
  },
  get look(): Look | undefined {
    return look;
  },
  /** Whether the server was asked already. */
  get known(): boolean {
    return known;
  },
  /** Whether there was a session that has ended since. */
  get ended(): boolean {
    return ended;
  },
  may(capability: Capability): boolean {
    return current?.capabilities?.includes(capability) === true;
  },
};

async function read<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await ownFetch(path, init);
  if (!response.ok) throw await problem(response);
  return (await response.json()) as T;
}

/** Takes the code out of the address, so that it does not stay in the history. */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  const query = new URLSearchParams(window.location.search);
  query.delete("opened");
  const search = query.size > 0 ? `?${query}` : "";
  if (window.location.hash !== "" || search !== window.location.search) history.replaceState(null, "", window.location.pathname + search);
  return code;
}

/** Exchanges the code of a link for a session, or finds the session that the browser has. */
export async function begin(): Promise<void> {
  // The value tells the server which cookie counts: that of a frame belongs to the page around it.
  useHeader("godwit-portal", framed ? "frame" : "1");
  // The environment of this page says who may frame it. The server refuses a session of another one.
  const environment = /^\/portal\/(env_[^/]+)/.exec(window.location.pathname)?.[1];
  if (environment === undefined) {
    known = true;
    return;
  }
  useHeader("godwit-environment", environment);
  whenSignedOut(() => {
    if (current === undefined) return; // several requests may be refused at once
    ended = true;
    current = undefined;
    tell({ type: "expired" });
  });
  const code = takeCode();
  try {
    const opened =
      code === null
        ? await read<Session>("/v1/sessions/current")
        : await read<Session>("/v1/sessions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) });
    look = await read<Look>("/v1/portal");
    current = opened;
  } catch (error) {
    if (code === null && (error as GodwitError).status === 401) error = undefined;
    tell({ type: "expired" });
    if (error !== undefined) throw error;
  } finally {
    known = true;
  }
}

export async function end(): Promise<void> {
  await ownFetch("/v1/sessions/current", { method: "DELETE" }).catch(() => undefined);
  ended = true;
  current = undefined;
}
