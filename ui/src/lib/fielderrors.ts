import { GodwitError } from "@godwit/client";

/** What the server said about fields, by their path. */
export function fieldErrors(error: unknown): Record<string, string> {
  if (!(error instanceof GodwitError)) return {};
  return Object.fromEntries(error.fields.map((f) => [f.field.replace(/^body\./, ""), f.detail]));
}
