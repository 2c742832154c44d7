/** The adapter for Node's http, https and http2 servers. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Bytes } from "./crypto/bytes.js";
import { Fields } from "./fields.js";
import type { Answer } from "./profiles/profile.js";
import { RateLimiter, rateLimitExceeded, type RateLimitOptions } from "./ratelimit.js";
import type { Receiver } from "./receiver/create.js";
import { IncompleteBodyError, type Incoming } from "./receiver/incoming.js";

/** The part of a request that the adapter uses; Node's and Express's have it. */
export type NodeRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown; readonly rawBody?: unknown };

export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

export interface NodeOptions {
  /** The sender's address, if a proxy is in front. Defaults to the address of the connection. */
  readonly ip?: (request: IncomingMessage) => string | undefined;
  /**
   * The normal spelling of all paths that are routed here, such as in lower case. Defaults to the path without escapes.
   */
  readonly routedPath?: (path: string) => string;
}

/** A request listener: `http.createServer(nodeListener(hooks))`. */
export function nodeListener(receiver: Receiver, options: NodeOptions = {}): NodeListener {
  return (request, response) => {
    // If an answer cannot be written, the connection ends, not the process.
    respond(receiver, request, response, options).catch(() => response.destroy());
  };
}

/** Answers one request. It resolves when the answer is written, or when the sender has disconnected. */
export async function respond(receiver: Receiver, request: NodeRequest, response: ServerResponse, options: NodeOptions = {}): Promise<void> {
  send(request, response, await receiver.receive(nodeIncoming(request, options)));
}

export function nodeIncoming(request: NodeRequest, options: NodeOptions = {}): Incoming {
  return {
    method: request.method ?? "GET",
    url: requestUrl(request),
    fields: Fields.fromRaw(request.rawHeaders),
    ip: options.ip === undefined ? request.socket.remoteAddress : options.ip(request),
    readBody: (limit) => readBody(request, limit),
    ...(options.routedPath === undefined ? {} : { routedPath: options.routedPath }),
  };
}

/** The address as the request shows it, not normalised: it is signed as it went over the wire. */
function requestUrl(request: NodeRequest): string {
  const target = request.originalUrl ?? request.url ?? "/";
  if (/^https?:\/\//i.test(target)) return target;
  const scheme = (request.socket as { encrypted?: boolean }).encrypted ? "https" : "http";
  const host = (request.headers[":authority"] as string | undefined) ?? request.headers.host ?? "localhost";
  return `${scheme}://${host}${target}`;
}

/**
 * Reads up to a limit. Code that read the body before must have kept the raw bytes; otherwise there is nothing to
 * verify. That is an internal failure, for which a sender retries, and not a forgery.
 */
async function readBody(request: NodeRequest, limit: number): Promise<Bytes | undefined> {
  for (const raw of [request.rawBody, request.body]) {
    if (raw instanceof Uint8Array) return raw.length > limit ? undefined : new Uint8Array(raw);
  }
  if (request.readableDidRead) {
    throw new Error("a body parser has consumed the body: mount the receiver before it, or use express.raw");
  }
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > limit) return undefined;
      parts.push(part);
    }
  } catch (error) {
    throw new IncompleteBodyError(error);
  }
  if (!request.complete) throw new IncompleteBodyError();
  return new Uint8Array(Buffer.concat(parts, size));
}

/** How much of a refused body is still read, so that the sender can read the answer (EDS T-39). */
const maxDrain = 1 << 20;

function send(request: NodeRequest, response: ServerResponse, answer: Answer): void {
  if (response.destroyed || response.writableEnded) return;
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
  if (!request.complete) drain(request, response);
  response.statusCode = answer.status;
  response.end(answer.body ?? undefined);
}

function drain(request: NodeRequest, response: ServerResponse): void {
  if (request.httpVersionMajor === 1) response.setHeader("connection", "close");
  let left = maxDrain;
  request.on("error", () => undefined);
  request.on("data", (part: Buffer) => {
    left -= part.length;
    if (left < 0) request.destroy();
  });
  request.resume();
}

export type Next = (error?: unknown) => void;

/** Limits the requests to a handler of Node's or Express's kind. */
export function rateLimit(
  options: RateLimitOptions & { readonly key?: (request: IncomingMessage) => string } = {},
): (request: IncomingMessage, response: ServerResponse, next: Next) => void {
  const limiter = new RateLimiter(options);
  return (request, response, next) => {
    const verdict = limiter.take(options.key?.(request) ?? request.socket.remoteAddress ?? "");
    for (const [name, value] of Object.entries(verdict.headers)) response.setHeader(name, value);
    if (verdict.allowed) return next();
    response.statusCode = 429;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(rateLimitExceeded));
  };
}
