/** `receiver` and `verify`: the functions for applications. */
import { WebhookSignatureError } from "../errors.js";
import { Fields } from "../fields.js";
import { StructuredFieldError } from "../httpsig/structured.js";
import type { Answer, Authentication, Profile } from "../profiles/profile.js";
import { asMessage, readStream, type Incoming, type RequestLike } from "./incoming.js";
import { policyPage } from "./page.js";
import { Pipeline } from "./receiver.js";
import { settings, type ReceiverOptions } from "./settings.js";

export interface RequestFacts {
  /** The sender's address, if the runtime knows it. */
  readonly ip?: string;
  /** Whether the request came as TLS early data. */
  readonly earlyData?: boolean;
  /** `ctx.waitUntil` of the edge runtime, so that a handler can finish after its answer was sent. */
  readonly waitUntil?: (work: Promise<unknown>) => void;
}

export interface Receiver {
  /** Answers a Fetch request. */
  readonly fetch: (request: Request, facts?: RequestFacts) => Promise<Response>;
  /** Answers a request in parts; adapters use it. */
  readonly receive: (incoming: Incoming) => Promise<Answer>;
  /** The page that states the policy, to be served elsewhere. */
  readonly documentation: () => string;
  /** Drops expired entries of the store, in small steps. A receiver that gets requests purges by itself. */
  readonly purge: () => Promise<number>;
  /**
   * Resolves when no handler runs any more, including those past their time limit. Call it after the server has
   * stopped.
   */
  readonly wait: () => Promise<void>;
}

/** Makes a receiver. It throws if the options are not safe. */
export function receiver<T = unknown>(options: ReceiverOptions<T>): Receiver {
  const s = settings(options);
  const pipeline = new Pipeline(s);
  return {
    receive: (incoming) => pipeline.receive(incoming),
    async fetch(request, facts = {}) {
      return asResponse(
        await pipeline.receive({
          method: request.method,
          url: request.url,
          fields: new Fields(request.headers),
          ip: facts.ip,
          earlyData: facts.earlyData,
          readBody: (limit) => readStream(request.body, limit),
          waitUntil: (work) => facts.waitUntil?.(work),
        }),
      );
    },
    documentation: () => policyPage(s),
    purge: () => pipeline.purge(),
    wait: () => pipeline.wait(),
  };
}

export function asResponse(answer: Answer): Response {
  return new Response(answer.body, { status: answer.status, headers: { ...answer.headers } });
}

export interface VerifyOptions {
  /**
   * Largest difference between the signed time and ours, in seconds; null: the time is not checked. Defaults to 300.
   */
  readonly tolerance?: number | null;
  /** Milliseconds since 1970. Defaults to Date.now. */
  readonly clock?: () => number;
}

/**
 * Only verifies a request. It remembers no nonces and no keys, so it does not stop replays. It throws a
 * WebhookSignatureError if the request is not authentic; any other error is a failure to verify.
 */
export async function verify(profile: Profile, request: Request | RequestLike, options: VerifyOptions = {}): Promise<Authentication> {
  const tolerance = options.tolerance === null ? undefined : (options.tolerance ?? 300);
  if (tolerance !== undefined && !(tolerance >= 0)) throw new RangeError("tolerance is a number of seconds, 0 or more");
  const now = Math.floor((options.clock ?? Date.now)() / 1000);
  const message = await asMessage(request);
  try {
    return await profile.authenticate(message, { now, tolerance });
  } catch (error) {
    if (error instanceof StructuredFieldError) throw new WebhookSignatureError(error.message, "malformed");
    throw error;
  }
}

