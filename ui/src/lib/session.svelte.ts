import { ownFetch, problem, whenSignedOut } from "./api.svelte.ts";

/** Who is signed in. The cookie that proves it is not readable here. */
export interface Session {
  readonly id: string;
  readonly kind: "dashboard" | "portal";
  readonly name: string;
  readonly key_id?: string;
  readonly user?: string;
  readonly scopes: readonly string[];
  readonly tenant?: { readonly id: string; readonly uid?: string; readonly name: string };
  readonly environment?: { readonly id: string; readonly uid?: string; readonly name: string };
}

let current = $state.raw<Session | undefined>();
let known = $state(false);
let leftProvider = $state(false);

export const session = {
  get current(): Session | undefined {
    return current;
  },
  /** Whether a user of an identity provider has just signed out; the provider may still have a session. */
  get leftProvider(): boolean {
    return leftProvider;
  },
  /** Whether the server was asked already. */
  get known(): boolean {
    return known;
  },
  /** Whether it has this very scope: some are not part of admin. */
  has(scope: string): boolean {
    return current?.scopes.includes(scope) === true;
  },
  may(scope: string): boolean {
    return current?.scopes.includes(scope) === true || current?.scopes.includes("admin") === true;
  },
};

whenSignedOut(() => (current = undefined));

/** Exchanges a key, or the single-use code of a link, for a session. */
export async function signIn(by: { key?: string; code?: string }): Promise<void> {
  const response = await ownFetch("/v1/sessions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(by) });
  if (!response.ok) throw await problem(response);
  current = (await response.json()) as Session;
  known = true;
}

/** Asks whether the browser has a session already; a code in the fragment of the address makes one. */
export async function restore(): Promise<void> {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  try {
    if (code !== null) {
      // The code must not stay in the history.
      history.replaceState(null, "", window.location.pathname + window.location.search);
      await signIn({ code });
      return;
    }
    const response = await globalThis.fetch("/v1/sessions/current", { credentials: "same-origin" });
    const body = (await response.json()) as unknown;
    if (response.ok) current = body as Session;
  } finally {
    known = true;
  }
}

export async function signOut(): Promise<void> {
  const response = await ownFetch("/v1/sessions/current", { method: "DELETE" });
  await response.text();
  leftProvider = current?.user !== undefined;
  current = undefined;
}
