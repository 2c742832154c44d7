/** The core under the name of its adapter: `receiver(…).fetch` answers Fetch requests as it is. */
export * from "./index.js";
