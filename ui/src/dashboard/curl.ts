import { location } from "../lib/router.svelte.ts";

/** A command line for this very server and the tenant that is shown. */
export function curl(path: string, body?: unknown, method?: string): string {
  const lines = [`curl ${method ? `-X ${method} ` : ""}'${window.location.origin}${path}'`, `-H "Authorization: Bearer $GODWIT_API_KEY"`];
  const tenant = location.query.get("tenant");
  const environment = location.query.get("environment");
  if (environment) lines.push(`-H 'Godwit-Environment: ${environment}'`);
  if (tenant) lines.push(`-H 'Godwit-Tenant: ${tenant}'`);
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`);
  return lines.join(" \\\n  ");
}
