/**
 * The adapter for Express 4 and 5. Mount it before any body parser, or after `express.raw`: a body that was parsed and
 * serialised again does not verify.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { respond, type Next, type NodeOptions, type NodeRequest } from "./node.js";
import type { Receiver } from "./receiver/create.js";

export { rateLimit } from "./node.js";

/** A handler: `app.all("/webhooks", expressHandler(hooks))`. */
export function expressHandler(
  receiver: Receiver,
  options: NodeOptions = {},
): (request: IncomingMessage, response: ServerResponse, next: Next) => void {
  return (request, response, next) => {
    respond(receiver, request as NodeRequest, response, { routedPath, ...options }).catch(next);
  };
}

/** Express routes /hooks, /Hooks and /hooks/ to the same handler. */
function routedPath(path: string): string {
  return path.toLowerCase().replace(/\/+$/, "") || "/";
}
