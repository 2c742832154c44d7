/** The core under the name of its adapter: `receiver(…).fetch` answers Fetch requests directly. */
export * from "./index.js";
