import { GodwitError } from "./errors.js";
import { insist, type Retry } from "./retry.js";

/**
 * The transport of the client. Without `retry` it makes one request per call; to repeat a call safely, give it an
 * `idempotencyKey` and send the same again. With `retry` it does that itself.
 */
export interface ClientOptions {
  /** The server's address, such as https://hooks.example.com. Required. */
  readonly baseUrl: string;
  /** An API key. Required. */
  readonly apiKey: string;
  /** Defaults to the platform's fetch. */
  readonly fetch?: typeof globalThis.fetch;
  /** Repeats requests that got no response or may be accepted later, under one key each; `{}` takes the defaults. Defaults to none. */
  readonly retry?: Retry;
  /** Milliseconds until a response must be there; of a stream, until it begins. Defaults to 30,000. */
  readonly timeout?: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the response before it is read, for its status and header fields. */
  readonly onResponse?: ((response: Response) => void) | undefined;
}

/** A payload that is sent unchanged, with its own media type. */
export class Payload {
  constructor(
    readonly body: string | Uint8Array<ArrayBuffer>,
    readonly contentType: string,
  ) {}
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly options: CallOptions;
}

type QueryValue = string | number | boolean | readonly string[] | Readonly<Record<string, string>> | undefined;

export class Transport {
  readonly #base: string;
  readonly #apiKey: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #retry: Retry | undefined;
  readonly #timeout: number;

  constructor(options: ClientOptions) {
    if (!/^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(options.baseUrl)) throw new Error("baseUrl is not the URL of a server");
    if (!/^[\x21-\x7e]+$/.test(options.apiKey ?? "")) throw new Error("the API key is missing or not one");
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#apiKey = options.apiKey;
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#retry = options.retry;
    this.#timeout = options.timeout ?? 30_000;
  }

  /** The response, its body not read yet. */
  protected async raw(call: Call): Promise<Response> {
    return this.#request(call, (response) => Promise.resolve(response));
  }

  /** Makes the request, and repeats it under the same key. A response counts once it was read. */
  async #request<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const keyed = call.headers !== undefined && "Idempotency-Key" in call.headers;
    if (keyed && this.#retry !== undefined && call.headers!["Idempotency-Key"] === undefined) {
      call = { ...call, headers: { ...call.headers, "Idempotency-Key": crypto.randomUUID() } };
    }
    // A DELETE is not repeated: the repeat could not tell what it has just deleted from what never was there.
    const again = keyed || call.method === "GET" || call.method === "PUT";
    return insist(again ? this.#retry : undefined, call.options.signal, async () => {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(new DOMException("the server did not answer in time", "TimeoutError")), this.#timeout);
      try {
        return await read(await this.#send(call, late.signal));
      } finally {
        clearTimeout(timer);
      }
    });
  }

  async #send(call: Call, late: AbortSignal): Promise<Response> {
    const headers = new Headers({ authorization: `Bearer ${this.#apiKey}` });
    for (const [name, value] of Object.entries(call.headers ?? {})) {
      if (value !== undefined) headers.set(name, name.toLowerCase() === "idempotency-key" ? quoted(value) : value);
    }
    const init: RequestInit = { method: call.method, headers, redirect: "error" };
    if (call.body instanceof Payload) {
      headers.set("content-type", call.body.contentType);
      init.body = call.body.body;
    } else if (call.body !== undefined) {
      headers.set("content-type", "application/json");
      init.body = JSON.stringify(call.body);
    }
    init.signal = call.options.signal === undefined ? late : AbortSignal.any([late, call.options.signal]);
    const response = await this.#fetch(this.#base + call.path + query(call.query), init);
    call.options.onResponse?.(response);
    if (!response.ok) throw await failure(response);
    return response;
  }

  protected async json<T>(call: Call): Promise<T> {
    return this.#request(call, async (response) => (response.status === 204 ? undefined : await response.json()) as T);
  }

  protected async nothing(call: Call): Promise<void> {
    await this.#request(call, async (response) => response.body?.cancel());
  }

  /** Newline-delimited JSON, item by item. */
  protected async *lines<T>(call: Call): AsyncGenerator<T> {
    for await (const line of textLines(await this.raw(call))) if (line !== "") yield JSON.parse(line) as T;
  }

  /** Server-sent events: the data of each, as JSON. */
  protected async *events<T>(call: Call): AsyncGenerator<T> {
    let data: string[] = [];
    for await (const line of textLines(await this.raw(call))) {
      if (line.startsWith("data:")) {
        data.push(line.slice(5).trimStart());
      } else if (line === "" && data.length > 0) {
        yield JSON.parse(data.join("\n")) as T;
        data = [];
      }
    }
  }
}

/** Follows `next_cursor` through all pages of a list: `everyItem((cursor) => client.listEvents({ cursor }))`. */
export async function* everyItem<T>(
  list: (cursor: string | undefined) => Promise<{ readonly items: readonly T[]; readonly next_cursor?: string }>,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list(cursor);
    yield* page.items;
    cursor = page.next_cursor || undefined;
  } while (cursor !== undefined);
}

/** Keys are structured-field Strings on the wire. */
function quoted(key: string): string {
  if (!/^[ -~]+$/.test(key)) throw new Error("an idempotency key is printable ASCII");
  return `"${key.replace(/[\\"]/g, "\\$&")}"`;
}

function query(values: Call["query"] = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (Array.isArray(value)) {
      params.append(name, value.join(","));
    } else if (typeof value === "object") {
      for (const [key, text] of Object.entries(value as Record<string, string>)) params.append(name.replace(/NAME$/, key), text);
    } else if (value !== undefined) {
      params.append(name, String(value));
    }
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

async function failure(response: Response): Promise<GodwitError> {
  let problem: Record<string, unknown> = {};
  try {
    const value: unknown = await response.json();
    if (typeof value === "object" && value !== null) problem = value as Record<string, unknown>;
  } catch {
    // Not the server's own response, perhaps a proxy's: only the status is known.
  }
  const text = (name: string): string | undefined => (typeof problem[name] === "string" ? problem[name] : undefined);
  const errors: unknown[] = Array.isArray(problem["errors"]) ? problem["errors"] : [];
  const fields = errors.filter((e): e is { field: string; detail: string } => typeof e === "object" && e !== null && "field" in e && "detail" in e);
  const what = text("detail") ?? text("title") ?? response.statusText;
  // The server's detail names most fields already.
  const unsaid = fields.filter((f) => !what.includes(f.detail));
  return new GodwitError(
    response.status,
    text("code") ?? "",
    [`${response.status}${what ? ` ${what}` : ""}`, ...unsaid.map((f) => `${f.field}: ${f.detail}`)].join("; "),
    text("request_id"),
    response.headers.get("retry-after") ?? undefined,
    fields,
  );
}

async function* textLines(response: Response): AsyncGenerator<string> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n/);
      rest = lines.pop()!;
      yield* lines;
      if (done) break;
    }
    if (rest !== "") yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
