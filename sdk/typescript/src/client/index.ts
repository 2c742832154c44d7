/** The client of the native API: its types and methods are generated from the server's OpenAPI document. */
export * from "./generated.js";
export type { Retry } from "./retry.js";
export { GodwitError } from "./errors.js";
export { everyItem, Payload, type CallOptions, type ClientOptions } from "./transport.js";
