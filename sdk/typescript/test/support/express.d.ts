// What the tests use of Express, which brings no types of its own.
declare module "express" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
  type Handler = (request: IncomingMessage & { body?: unknown }, response: ServerResponse, next: (error?: unknown) => void) => void;
  interface App extends RequestListener {
    use(...handlers: (Handler | string)[]): App;
    all(path: string, ...handlers: Handler[]): App;
    post(path: string, ...handlers: Handler[]): App;
  }
  interface Express {
    (): App;
    raw(options?: object): Handler;
    json(options?: object): Handler;
  }
  const express: Express;
  export default express;
}
