/** What a program that verifies needs to know of an endpoint. None of it is secret. */
export interface Settings {
  readonly profile: Profile;
  /** The endpoint's URL, as it is registered. */
  readonly url: string;
  /** PUT only with profile eds. Defaults to POST. */
  readonly method?: string | undefined;
  /** The live keys, newest first. Without any, the programs read the key's id from the environment. */
  readonly keys: readonly Key[];
}

export type Profile = "eds" | "ojs" | "cybercube" | "standard-webhooks";

export interface Key {
  readonly id: string;
  readonly algorithm: string;
  /** Base64 of an Ed25519 key's public half. */
  readonly public_key?: string | undefined;
}

/** A key as programs name it: by an environment variable, or, if it is public, by itself. */
export interface NamedKey {
  /** The id, or undefined if it comes from the environment variable WEBHOOK_KEY_ID. */
  readonly id: string | undefined;
  /** Environment variable of a shared secret; undefined for a public key. */
  readonly variable: string | undefined;
  readonly publicKey: string;
}

export function named(s: Settings): NamedKey[] {
  if (s.keys.length === 0) return [{ id: undefined, variable: "WEBHOOK_SECRET", publicKey: "" }];
  return s.keys.map((key, i) => ({
    id: key.id,
    variable: key.public_key ? undefined : i === 0 ? "WEBHOOK_SECRET" : `WEBHOOK_SECRET_${i + 1}`,
    publicKey: key.public_key ?? "",
  }));
}

/** Environment variables that have to be set, for the line that starts a program. */
export function environment(s: Settings): string {
  const names = named(s).flatMap((key) => (key.variable ? [key.variable] : []));
  if (s.profile === "eds" && s.keys.length === 0) names.unshift("WEBHOOK_KEY_ID");
  return names.map((name) => `${name}=… `).join("");
}

/** A public key in the form of the Standard Webhooks specification. */
export const standardKey = (base64: string): string => `whpk_${base64}`;

/** The parts of the endpoint's URL. An address that is not one gets a placeholder: the program still shows how. */
export function address(s: Settings): { origin: string; path: string } {
  const url = URL.canParse(s.url) ? new URL(s.url) : new URL("https://example.com/webhooks");
  return { origin: url.origin, path: url.pathname };
}

/** A string literal of Go, TypeScript and Python. What these languages write differently is written as an escape. */
export function literal(text: string): string {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Lines of a program, each level indented, without those that are left out. */
export function lines(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== false && part !== undefined).join("\n") + "\n";
}
