/** A receiver's options and the settings made from them. Unsafe options are refused here. */
import { hex, utf8 } from "../crypto/bytes.js";
import { digest } from "../crypto/keys.js";
import { fingerprintOf, defaultKeyPolicy } from "../key.js";
import type { Inbox } from "../inbox/inbox.js";
import { splitUri } from "../httpsig/message.js";
import { day, type KeyPolicy, type Profile } from "../profiles/profile.js";
import { RateLimiter, type RateLimitOptions } from "../ratelimit.js";
import { memoryStore } from "../stores/memory.js";
import type { RedisQueue } from "../stores/redis.js";
import type { SqlQuery } from "../stores/sql.js";
import type { Store } from "../stores/store.js";
import { longestWait } from "./deadline.js";
import type { Delivery } from "./delivery.js";
import { heard, tell, type Hooks } from "./hooks.js";
import type { Incoming } from "./incoming.js";
import type { Result } from "./result.js";

export interface HandlerContext {
  /** Aborted when the handler's time is over. It is not aborted when the sender disconnects. */
  readonly signal: AbortSignal;
  /** Of a `transactional` receiver: the access to the transaction that completes the key. See sqlOf and redisOf. */
  readonly transaction?: unknown;
}

/** The query function of the transaction that also completes the key. */
export function sqlOf(context: HandlerContext): SqlQuery {
  return handleOf(context) as SqlQuery;
}

/** Queues commands for the step that also completes the key. */
export function redisOf(context: HandlerContext): RedisQueue {
  return handleOf(context) as RedisQueue;
}

function handleOf({ transaction }: HandlerContext): unknown {
  if (transaction === undefined) throw new Error("the receiver is not transactional");
  return transaction;
}

export type Handler<T = unknown> = (delivery: Delivery<T>, context: HandlerContext) => Promise<Result | void> | Result | void;

export interface ReceiverOptions<T = unknown> {
  /** The dialect, with its secrets. Required. */
  readonly profile: Profile;
  /** Processes a delivery before it is answered. This or `inbox` is required. */
  readonly handler?: Handler<T>;
  /** Stores a delivery for a worker, then answers: for long-running handlers (CCW-RCV-7). */
  readonly inbox?: Pick<Inbox, "enqueue">;
  /** Remembers keys and nonces. Defaults to the memory of this process. */
  readonly store?: Store;
  /** Deduplication; false turns it off, which needs freshness, and which ojs and cybercube do not allow. Defaults to on. */
  readonly dedup?: DedupOptions | false;
  /** Freshness of the signed time; false turns it off, which needs deduplication. Defaults to on, where a time is signed. */
  readonly freshness?: FreshnessOptions | false;
  /** Format of Idempotency-Key (eds). Defaults to 16 to 255 characters in double quotes. */
  readonly key?: Partial<KeyPolicy>;
  /**
   * Runs the handler in the store's transaction, which also completes the key: what it writes there (sqlOf, redisOf)
   * happens exactly once, whenever the process dies. What it writes and then does not accept is undone. Needs a store with
   * transactions. Defaults to false.
   */
  readonly transactional?: boolean;
  /** Largest body in bytes. Defaults to 1 MiB. */
  readonly limit?: number;
  /** How long a handler may take, in seconds. Defaults to 25. */
  readonly timeout?: number;
  /** How long an operation of the store may take, in seconds; then it counts as failed. Defaults to 5. */
  readonly storeTimeout?: number;
  /** How often the store is purged, in a small step beside the requests, in seconds; 0: never. Defaults to 60. */
  readonly purgeEvery?: number;
  /** The wait that senders are told by default, in seconds. Defaults to 1. */
  readonly retryAfter?: number;
  /**
   * Answer a repeat of a request in progress with 409, as APIs do, not with 503, as webhooks need. Defaults to false.
   */
  readonly api?: boolean;
  /** Scheme and host that senders use, if a proxy changes them. */
  readonly publicOrigin?: string;
  /**
   * The whole address that the sender used, if a proxy changes more than that. Defaults to the origin, path and query.
   */
  readonly targetUri?: (incoming: Incoming) => string;
  /** Path of the page that states the policy. Defaults to /docs/idempotency. */
  readonly docsPath?: string;
  /** Address of that page, if it is published elsewhere. Defaults to publicOrigin with docsPath. */
  readonly docsUrl?: string;
  /** Limits requests. Defaults to none. */
  readonly rateLimit?: RateLimitOptions;
  /** Returns what is wrong with a payload, before the handler runs; undefined if nothing (CCW-RCV-15). */
  readonly validate?: (delivery: Delivery<T>) => string | undefined | Promise<string | undefined>;
  /** A reference to the agreement that lets the handler answer 207 (EDS-STA-207b). */
  readonly multiStatusAgreement?: string;
  readonly hooks?: Hooks;
  /** Milliseconds since 1970. Defaults to Date.now. */
  readonly clock?: () => number;
}

export interface DedupOptions {
  /** How long keys are remembered, in seconds. Defaults to 30 days; the floor is 24 hours, for cybercube 7 days. */
  readonly window?: number;
  /** A reference to the agreement that allows a window below the floor. */
  readonly agreement?: string;
  /** How long a handler may hold a key, in seconds. Defaults to 60, for cybercube 300; or twice timeout. */
  readonly lease?: number;
  /**
   * The text that a sender must not change under one key, of which a digest is kept; "" compares nothing. False:
   * nothing is compared. Defaults to media type and body.
   */
  readonly fingerprint?: ((delivery: Delivery) => string | Promise<string>) | false;
  /** What is kept for repeats: refusals as well, or only accepted results. Defaults to "all". */
  readonly keep?: "all" | "accepted";
}

export interface FreshnessOptions {
  /** Largest difference between the signed time and ours, in seconds. 0 is honoured. Defaults to 300. */
  readonly tolerance?: number;
}

export interface Settings {
  readonly profile: Profile;
  readonly handler: Handler | undefined;
  readonly inbox: Pick<Inbox, "enqueue"> | undefined;
  readonly store: Store;
  readonly dedup: boolean;
  readonly window: number;
  readonly lease: number;
  readonly fingerprint: ((delivery: Delivery) => string | Promise<string>) | undefined;
  readonly keepRejects: boolean;
  readonly transactional: boolean;
  readonly tolerance: number | undefined;
  readonly keyPolicy: KeyPolicy;
  readonly limit: number;
  readonly timeout: number;
  readonly storeTimeout: number;
  readonly purgeEvery: number;
  readonly retryAfter: number;
  readonly api: boolean;
  readonly publicOrigin: string | undefined;
  readonly targetUri: ((incoming: Incoming) => string) | undefined;
  readonly docsPath: string;
  readonly docsUrl: string;
  readonly rateLimiter: RateLimiter | undefined;
  readonly validate: ((delivery: Delivery) => string | undefined | Promise<string | undefined>) | undefined;
  readonly allowMultiStatus: boolean;
  readonly hooks: Hooks;
  readonly clock: () => number;
}

export function settings<T>(options: ReceiverOptions<T>): Settings {
  const { profile } = options;
  if (profile === undefined) throw new Error("receiver: a profile is required");
  if ((options.handler === undefined) === (options.inbox === undefined)) {
    throw new Error("receiver: either a handler or an inbox is required");
  }
  const hooks = heard(options.hooks ?? {});
  const dedup = options.dedup === false ? undefined : (options.dedup ?? {});
  const freshness = profile.signsTime && options.freshness !== false ? (options.freshness ?? {}) : undefined;
  checkReplay(options, dedup !== undefined, freshness !== undefined, hooks);
  const timeout = wait("timeout", options.timeout ?? 25);
  const lease = positive("dedup.lease", dedup?.lease ?? Math.max(profile.lease, 2 * timeout));
  if (dedup !== undefined && lease <= timeout) {
    throw new Error("receiver: dedup.lease must be longer than timeout, or a key is free while its handler still runs");
  }
  const publicOrigin = options.publicOrigin === undefined ? undefined : origin(options.publicOrigin);
  const docsPath = options.docsPath ?? "/docs/idempotency";
  return {
    profile,
    handler: options.handler as Handler | undefined,
    inbox: options.inbox,
    store: options.store ?? memoryStore(),
    dedup: dedup !== undefined,
    window: window(profile, dedup ?? {}),
    lease,
    fingerprint: dedup === undefined ? undefined : fingerprint(profile, dedup),
    keepRejects: dedup?.keep !== "accepted",
    transactional: transactional(options),
    tolerance: freshness === undefined ? undefined : notNegative("freshness.tolerance", freshness.tolerance ?? 300),
    keyPolicy: keyPolicy(options.key ?? {}),
    limit: positive("limit", options.limit ?? 1 << 20),
    timeout,
    storeTimeout: wait("storeTimeout", options.storeTimeout ?? 5),
    purgeEvery: notNegative("purgeEvery", options.purgeEvery ?? 60),
    retryAfter: positive("retryAfter", options.retryAfter ?? 1),
    api: options.api ?? false,
    publicOrigin,
    targetUri: options.targetUri,
    docsPath,
    docsUrl: options.docsUrl ?? (publicOrigin ?? "") + docsPath,
    rateLimiter: options.rateLimit === undefined ? undefined : new RateLimiter(options.rateLimit),
    validate: options.validate as Settings["validate"],
    allowMultiStatus: Boolean(options.multiStatusAgreement),
    hooks,
    clock: options.clock ?? Date.now,
  };
}

/** Makes sure that replays are recognised (EDS-SEC-RPL-2). */
function checkReplay<T>({ profile, store }: ReceiverOptions<T>, dedup: boolean, fresh: boolean, hooks: Hooks): void {
  if (!dedup && profile.alwaysDedup) throw new Error(`receiver: ${profile.name} is always deduplicated`);
  if (!dedup && !fresh) {
    throw new Error("receiver: without deduplication a signed time is required, or a captured request could be replayed for ever");
  }
  const warn = (message: string): void => tell(() => hooks.onWarning?.(message));
  if (!fresh) warn("deduplication is the only defence against replays: none is recognised after the window (EDS-SEC-RPL-5)");
  if (store === undefined) {
    warn("keys are remembered in this process alone: give a shared store if there are several, or if it may restart");
  }
}

function keyPolicy(given: Partial<KeyPolicy>): KeyPolicy {
  const { minLength = defaultKeyPolicy.minLength, maxLength = defaultKeyPolicy.maxLength, lenient = false } = given;
  if (!(minLength >= 1 && maxLength >= minLength && maxLength <= 1024)) {
    throw new Error("receiver: a key has 1 to 1024 characters");
  }
  return { minLength, maxLength, lenient };
}

function transactional<T>(options: ReceiverOptions<T>): boolean {
  if (!options.transactional) return false;
  if (options.store?.transaction === undefined) throw new Error("receiver: transactional needs a store with transactions");
  if (options.dedup === false || options.handler === undefined) throw new Error("receiver: transactional needs deduplication and a handler");
  return true;
}

function window(profile: Profile, dedup: DedupOptions): number {
  const seconds = positive("dedup.window", dedup.window ?? 30 * day);
  if (seconds < profile.windowFloor && !dedup.agreement) {
    throw new Error(`receiver: dedup.window is below ${profile.windowFloor} s, the floor of ${profile.name}; name the agreement that allows it`);
  }
  return seconds;
}

function fingerprint(profile: Profile, dedup: DedupOptions): Settings["fingerprint"] {
  if (dedup.fingerprint === false) return undefined;
  const given = dedup.fingerprint;
  if (given !== undefined) {
    // The store gets only a digest: of limited length, and without any of the payload.
    return async (delivery) => {
      const text = await given(delivery);
      return text === "" ? "" : hex(await digest("SHA-256", utf8(text)));
    };
  }
  return profile.fingerprint ? (delivery) => fingerprintOf(delivery.contentType, delivery.body) : undefined;
}

function positive(name: string, value: number): number {
  if (!Number.isFinite(value) || value <= 0) throw new Error(`receiver: ${name} must be above 0`);
  return value;
}

function notNegative(name: string, value: number): number {
  if (!Number.isFinite(value) || value < 0) throw new Error(`receiver: ${name} must not be below 0`);
  return value;
}

/** A time that a timer waits for. */
function wait(name: string, seconds: number): number {
  if (positive(name, seconds) * 1000 > longestWait) throw new Error(`receiver: ${name} is longer than a timer waits`);
  return seconds;
}

function origin(value: string): string {
  const uri = splitUri(value);
  if (uri.path !== "/" || uri.query !== undefined) throw new Error("receiver: publicOrigin is a scheme and a host, no path");
  return `${uri.scheme}://${uri.host}`;
}
