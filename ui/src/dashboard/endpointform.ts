import type { Auth, Endpoint, NewEndpoint, PolicyOverrides } from "@godwit/client";

/** What the form of an endpoint holds: text, as it is typed. */
export interface Draft {
  url: string;
  uid: string;
  description: string;
  patterns: string;
  filter: string;
  profile: string;
  algorithm: string;
  signing: string;
  headers: string;
  metadata: string;
  auth: string;
  token: string;
  username: string;
  password: string;
  token_url: string;
  client_id: string;
  client_secret: string;
  scopes: string;
  certificate: string;
  key: string;
  policy: Record<PolicyName, string>;
}

export const policyFields = [
  { name: "max_retries", label: "Retries", hint: "after the first attempt", whole: true, most: 100 },
  { name: "base_seconds", label: "First delay (s)", hint: "the window of the first retry; it doubles with each", whole: false, most: 86_400 },
  { name: "cap_seconds", label: "Largest delay (s)", hint: "", whole: false, most: 604_800 },
  { name: "max_elapsed_seconds", label: "Give up after (s)", hint: "of all attempts together", whole: false, most: 31_536_000 },
  { name: "timeout_seconds", label: "Timeout (s)", hint: "of one attempt", whole: false, most: 300 },
  { name: "concurrency", label: "Requests at once", hint: "", whole: true, most: 10_000 },
  { name: "rate_per_second", label: "Attempts a second", hint: "0: no limit", whole: false, most: 1_000_000 },
  { name: "circuit_after", label: "Open the circuit after", hint: "failures in a row", whole: true, most: 10_000 },
  { name: "disable_after_failures", label: "Disable after", hint: "failures in a row; 0: never", whole: true, most: 1_000_000 },
] as const;

export type PolicyName = (typeof policyFields)[number]["name"];

export function emptyDraft(): Draft {
  return {
    url: "", uid: "", description: "", patterns: "*", filter: "", profile: "", algorithm: "", signing: "", headers: "", metadata: "", auth: "", token: "", username: "", password: "",
    token_url: "", client_id: "", client_secret: "", scopes: "", certificate: "", key: "",
    policy: Object.fromEntries(policyFields.map((f) => [f.name, ""])) as Record<PolicyName, string>,
  };
}

export function draftOf(e: Endpoint): Draft {
  const draft = emptyDraft();
  draft.url = e.url;
  draft.uid = e.uid ?? "";
  draft.description = e.description;
  draft.patterns = e.patterns.join(", ");
  draft.filter = Object.entries(e.filter ?? {}).map(([name, values]) => `${name}: ${values.join(", ")}`).join("\n");
  draft.profile = e.profile;
  draft.signing = e.signing;
  draft.metadata = e.metadata && Object.keys(e.metadata).length > 0 ? JSON.stringify(e.metadata, null, 2) : "";
  for (const f of policyFields) {
    const value = e.policy[f.name];
    draft.policy[f.name] = value === undefined ? "" : String(value);
  }
  return draft;
}

export const checks = {
  url(value: string): string | undefined {
    if (value.trim() === "") return undefined;
    let url: URL;
    try {
      url = new URL(value.trim());
    } catch {
      return "is not a URL, such as https://example.com/hooks";
    }
    if (url.protocol !== "https:" && url.protocol !== "http:") return "must begin with https://";
    if (url.username !== "" || url.password !== "") return "must hold no user name; set a credential below";
    if (url.hash !== "") return "must have no fragment (#…): servers do not see it";
    return undefined;
  },
  uid: (value: string): string | undefined => (value === "" || /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value) ? undefined : "letters, digits, '.', '_' and '-', at most 64"),
  patterns(value: string): string | undefined {
    const list = words(value);
    if (list.length === 0) return "name at least one, or * for all";
    for (const [i, p] of list.entries()) {
      if (!/^(\*|[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?)$/.test(p)) return `"${p}" is not a pattern: a type, prefix.* or *`;
      if (list.indexOf(p) !== i) return `"${p}" is there twice`;
    }
    return undefined;
  },
  lines(value: string): string | undefined {
    const bad = value.split("\n").find((line) => line.trim() !== "" && !/^[^:\s][^:]*:\s*\S/.test(line.trim()));
    return bad === undefined ? undefined : `"${bad.trim()}" is not of the form name: value`;
  },
  json(value: string): string | undefined {
    if (value.trim() === "") return undefined;
    try {
      const parsed: unknown = JSON.parse(value);
      return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? undefined : "must be an object in JSON";
    } catch (error) {
      return (error as Error).message;
    }
  },
  number(value: string, whole: boolean, most: number): string | undefined {
    if (value.trim() === "") return undefined;
    const n = Number(value);
    if (Number.isNaN(n) || n < 0) return "must be a number that is not negative";
    if (whole && !Number.isInteger(n)) return "must be a whole number";
    return n > most ? `must be at most ${most}` : undefined;
  },
};

export function words(value: string): string[] {
  return value.split(/[\s,]+/).filter(Boolean);
}

function pairs(value: string): [string, string][] {
  return value.split("\n").filter((line) => line.trim() !== "").map((line) => {
    const at = line.indexOf(":");
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

export function wrong(d: Draft): boolean {
  return (
    d.url.trim() === "" || [checks.url(d.url), checks.uid(d.uid), checks.patterns(d.patterns), checks.lines(d.filter), checks.lines(d.headers), checks.json(d.metadata)].some(Boolean) ||
    policyFields.some((f) => checks.number(d.policy[f.name], f.whole, f.most) !== undefined)
  );
}

export function overrides(d: Draft): PolicyOverrides {
  const policy: Partial<Record<PolicyName, number>> = {};
  for (const f of policyFields) if (d.policy[f.name].trim() !== "") policy[f.name] = Number(d.policy[f.name]);
  return policy;
}

function auth(d: Draft): Auth | undefined {
  switch (d.auth) {
    case "bearer":
      return { kind: "bearer", token: d.token };
    case "basic":
      return { kind: "basic", username: d.username, password: d.password };
    case "oauth2":
      return { kind: "oauth2", token_url: d.token_url, client_id: d.client_id, client_secret: d.client_secret, ...(d.scopes.trim() === "" ? {} : { scopes: words(d.scopes) }) };
    case "mtls":
      return { kind: "mtls", certificate_pem: d.certificate, private_key_pem: d.key };
    default:
      return undefined;
  }
}

/** The request that the form makes. */
export function request(d: Draft): NewEndpoint {
  const body: NewEndpoint = { url: d.url.trim(), description: d.description, patterns: words(d.patterns) };
  if (d.uid !== "") body.uid = d.uid;
  if (d.profile !== "") body.profile = d.profile as NonNullable<NewEndpoint["profile"]>;
  if (d.algorithm !== "") body.algorithm = d.algorithm as NonNullable<NewEndpoint["algorithm"]>;
  if (d.signing !== "") body.signing = d.signing as NonNullable<NewEndpoint["signing"]>;
  if (d.filter.trim() !== "") body.filter = Object.fromEntries(pairs(d.filter).map(([name, value]) => [name, value.split(",").map((v) => v.trim()).filter(Boolean)]));
  if (d.headers.trim() !== "") body.headers = Object.fromEntries(pairs(d.headers));
  if (d.metadata.trim() !== "") body.metadata = JSON.parse(d.metadata) as Record<string, unknown>;
  const credential = auth(d);
  if (credential) body.auth = credential;
  const policy = overrides(d);
  if (Object.keys(policy).length > 0) body.policy = policy;
  return body;
}
