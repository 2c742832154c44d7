/** A request as an adapter passes it, and the plain form for `verify`. */
import { asBytes, concat, type Bytes } from "../crypto/bytes.js";
import { Fields, type HeadersLike } from "../fields.js";
import type { Message } from "../profiles/profile.js";

export interface Incoming {
  readonly method: string;
  /** The absolute address as the request shows it. */
  readonly url: string;
  readonly fields: Fields;
  /** The sender's address, if it is known. */
  readonly ip?: string | undefined;
  /** Whether the request came as TLS early data. */
  readonly earlyData?: boolean | undefined;
  /** Reads the body; undefined if it has more than `limit` bytes, and then the rest is not read. */
  readBody(limit: number): Promise<Bytes | undefined>;
  /**
   * Brings a path into the normal spelling of all paths that are routed to the same handler. If the address is not
   * signed, another spelling must not make a captured request a new one. Defaults to removing escapes.
   */
  routedPath?(path: string): string;
  /** Keeps the runtime alive until the work is done, after the answer was sent. */
  waitUntil?(work: Promise<unknown>): void;
}

/** A request in plain parts. Pass the raw body, not one that was parsed and serialised again. */
export interface RequestLike {
  readonly headers: HeadersLike | Fields;
  readonly body: string | Uint8Array | ArrayBuffer;
  /** Defaults to POST. */
  readonly method?: string;
  /** The address that the sender used; required if it is signed (eds, twilio). */
  readonly url?: string;
}

export async function asMessage(request: Request | RequestLike): Promise<Message> {
  if (request instanceof Request) {
    const body = new Uint8Array(await request.clone().arrayBuffer());
    return { method: request.method, url: request.url, fields: new Fields(request.headers), body };
  }
  return {
    method: (request.method ?? "POST").toUpperCase(),
    url: request.url ?? "",
    fields: new Fields(request.headers),
    body: asBytes(request.body),
  };
}

/** The sender disconnected before its body was complete: nothing can be verified or answered. */
export class IncompleteBodyError extends Error {
  constructor(cause?: unknown) {
    super("the body did not arrive in full", { cause });
    this.name = "IncompleteBodyError";
  }
}

/** Reads a stream up to a limit. */
export async function readStream(stream: ReadableStream<Uint8Array> | null, limit: number): Promise<Bytes | undefined> {
  if (stream === null) return new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new IncompleteBodyError(error);
    });
    if (done) return concat(...parts);
    size += value.length;
    if (size > limit) {
      await reader.cancel().catch(() => undefined);
      return undefined;
    }
    parts.push(value);
  }
}
