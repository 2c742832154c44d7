import { readFileSync } from "node:fs";

/** Reads a file of the vectors that all languages share. The tests run in sdk/typescript/build/support. */
export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../../../spec/vectors/${name}`, import.meta.url), "utf8")) as T;
}

export function bodyOf(vector: { body?: string; body_base64?: string }): Uint8Array {
  return vector.body_base64 === undefined ? Buffer.from(vector.body ?? "", "utf8") : Buffer.from(vector.body_base64, "base64");
}
