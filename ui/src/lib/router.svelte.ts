/**
 * The address bar is the state of the pages: path and query are read from it, and each change goes into it.
 * `environment` and `tenant` stay in the query from page to page, so that a pasted address shows the same to others.
 */
const sticky = ["environment", "tenant"] as const;

let base = "/ui";
let path = $state("/");
let query = $state.raw(new URLSearchParams());

export const location = {
  /** Path below the base, such as /events/evt_1. */
  get path(): string {
    return path;
  },
  get query(): URLSearchParams {
    return query;
  },
};

export type Query = Readonly<Record<string, string | undefined>>;

/** The address of a page. */
export function href(to: string, values: Query = {}): string {
  const params = new URLSearchParams();
  for (const name of sticky) {
    const value = query.get(name);
    if (value !== null) params.set(name, value);
  }
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === "") params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  return base + to + (text === "" ? "" : `?${text}`);
}

/** The address of this page with some values of the query changed; undefined or "" removes one. */
export function withQuery(values: Query): string {
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === "") params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  return base + path + (text === "" ? "" : `?${text}`);
}

function read(): void {
  const at = window.location;
  path = at.pathname.startsWith(base) ? at.pathname.slice(base.length) || "/" : "/";
  query = new URLSearchParams(at.search);
}

export function go(address: string, replace = false): void {
  if (address === window.location.pathname + window.location.search) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  const before = path;
  read();
  if (path !== before) window.scrollTo(0, 0);
}

/** Changes values of the query in place: Back leaves the page. */
export function setQuery(values: Query, replace = true): void {
  go(withQuery(values), replace);
}

/** Begins to follow the address bar and the clicks on links of this app. */
export function startRouter(at: string): void {
  base = at;
  read();
  window.addEventListener("popstate", read);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target !== "" || link.hasAttribute("download") || link.origin !== window.location.origin) return;
    if (link.hash !== "" || !(link.pathname + "/").startsWith(base + "/")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

/** The parts of a path that fit a pattern such as /events/:id, or undefined. */
export function match(pattern: string, at: string): Record<string, string> | undefined {
  const want = pattern.split("/").filter(Boolean);
  const have = at.split("/").filter(Boolean);
  if (want.length !== have.length) return undefined;
  const found: Record<string, string> = {};
  for (const [i, part] of want.entries()) {
    const value = have[i] ?? "";
    if (part.startsWith(":")) found[part.slice(1)] = decodeURIComponent(value);
    else if (part !== value) return undefined;
  }
  return found;
}
