import { api } from "./api.svelte.ts";
import { shorten } from "./format.ts";
import { location } from "./router.svelte.ts";
import { session } from "./session.svelte.ts";

let names = $state.raw<ReadonlyMap<string, string>>(new Map());
let read: string | undefined;

/** Reads the names of the keys of the tenant that is shown, once. A session that may not list keys sees ids. */
function load(): void {
  const scope = `${location.query.get("environment") ?? ""} ${location.query.get("tenant") ?? ""}`;
  if (read === scope || !session.may("admin")) return;
  read = scope;
  api.listKeys({ limit: 200 }).then(
    (page) => (names = new Map(page.items.flatMap((k) => [[k.id, k.name] as const, [k.principal, k.name] as const]))),
    () => undefined,
  );
}

/** The name of an API key, user or session in records. */
export function actorName(id: string): string {
  load();
  const first = id.split("/")[0] ?? id;
  return names.get(first) ?? shorten(id);
}
