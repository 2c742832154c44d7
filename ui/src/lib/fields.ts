import { GodwitError } from "@godwit/client";

/** What the server said about members of a request, by their names. */
export function wrong(error: unknown): Readonly<Record<string, string>> {
  return error instanceof GodwitError ? Object.fromEntries(error.fields.map((f) => [f.field, f.detail])) : {};
}

/** The lines of a text that are not empty. */
export function listed(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** A whole number from a field; undefined if it is empty. What is no number goes to the server, which says what is wrong. */
export function whole(text: string): number | undefined {
  return text.trim() === "" ? undefined : Number(text);
}
