/**
 * The receiver: from an HTTP request to a verified event, handled at most once, and an answer that the sender reads
 * rightly. The order is fixed:
 *
 *   method, size ─► authenticate ─► freshness ─► key syntax ─► reserve the key ─► handler ─► keep the result ─► answer
 *
 * Nothing is parsed before it is authenticated, nothing is written before the key is good, nothing runs before the key is
 * reserved, and nothing is answered before the result is kept. It knows no server: adapters hand it an {@link Incoming}.
 * Here are the steps up to the key; run.ts has the others.
 */
import { fromBase64, utf8, type Bytes } from "../crypto/bytes.js";
import { DeliveryError, WebhookSignatureError } from "../errors.js";
import { normalizedUri, plainPath, splitUri } from "../httpsig/message.js";
import { digestOf, scopeOf } from "../key.js";
import type { Answer, Authentication, Identity, Message } from "../profiles/profile.js";
import type { Outcome } from "../stores/store.js";
import { within } from "./deadline.js";
import { Delivery } from "./delivery.js";
import { LastMinute, sanitizedHeaders, tell, type ResultReport } from "./hooks.js";
import { IncompleteBodyError, type Incoming } from "./incoming.js";
import { policyAnswer } from "./page.js";
import { problemAnswer, type ProblemCode } from "./problem.js";
import { Runner, type Ending, type Holder } from "./run.js";
import type { Settings } from "./settings.js";

/** The answer that ends a request. */
class Refusal {
  constructor(
    readonly answer: Answer,
    readonly code: ProblemCode,
  ) {}
}

/** How much one step of a purge drops, so that requests continue beside it. */
const purgeStep = 1000;

export class Pipeline {
  readonly #s: Settings;
  readonly #runner: Runner;
  readonly #failures = new LastMinute();
  #purgedAt: number;
  #purging = false;

  constructor(settings: Settings) {
    this.#s = settings;
    this.#runner = new Runner(settings);
    this.#purgedAt = settings.clock();
  }

  /** Answers a request. It never throws: every request gets one answer (EDS-DEF-3). */
  async receive(incoming: Incoming): Promise<Answer> {
    const page = this.#documentation(incoming);
    if (page !== undefined) return page;
    const facts: Partial<Mutable<ResultReport>> = {};
    const { answer, kind, reason } = await this.#process(incoming, facts).catch((error: unknown): Ending => {
      if (error instanceof Refusal) return { answer: error.answer, kind: "refused", reason: error.code };
      tell(() => this.#s.hooks.onError?.(error, "receive"));
      return { answer: this.#problem(500, "internal", "Internal error"), kind: "failed" };
    });
    const report = { ...facts, profile: this.#s.profile.name, status: answer.status, kind, ...(reason === undefined ? {} : { reason }) };
    tell(() => this.#s.hooks.onResult?.(report));
    this.#purgeNowAndThen(incoming);
    return answer;
  }

  async #process(incoming: Incoming, facts: Partial<Mutable<ResultReport>>): Promise<Ending> {
    const message = await this.#message(incoming);
    const authentication = await this.#authenticate(message, incoming);
    facts.principal = authentication.principal;
    const handshake = this.#s.profile.handshake?.(message);
    if (handshake !== undefined) return { answer: handshake, kind: "accepted", reason: "handshake" };
    const delivery = await this.#delivery(message, authentication);
    facts.eventId = delivery.eventId;
    facts.eventType = delivery.eventType;
    return this.#once(delivery, incoming);
  }

  wait(): Promise<void> {
    return this.#runner.wait();
  }

  async purge(): Promise<number> {
    const now = Math.floor(this.#s.clock());
    for (let total = 0; ; ) {
      const dropped = await this.#stored("purge", () => this.#s.store.purge(now, purgeStep));
      total += dropped;
      if (dropped < purgeStep) return total;
    }
  }

  /** The receiver manages the whole life of a key (IKH-EXP-3): one request in `purgeEvery` starts a purge. */
  #purgeNowAndThen(incoming: Incoming): void {
    const { purgeEvery, clock, hooks } = this.#s;
    const now = clock();
    if (purgeEvery === 0 || this.#purging || now - this.#purgedAt < purgeEvery * 1000) return;
    this.#purgedAt = now;
    this.#purging = true;
    const purge = this.purge()
      .catch((error: unknown) => tell(() => hooks.onError?.(error, "purge")))
      .finally(() => (this.#purging = false));
    tell(() => incoming.waitUntil?.(purge));
  }

  /**
   * An operation of the store, which may neither throw nor hang: a client may wait for ever for a server that is down.
   */
  #stored<T>(what: string, operation: () => Promise<T>, late?: (value: T) => void): Promise<T> {
    return within(this.#s.storeTimeout * 1000, what, (async () => operation())(), late);
  }

  #problem(status: number, code: ProblemCode, detail: string, headers: Readonly<Record<string, string>> = {}): Answer {
    return problemAnswer(this.#s.profile, this.#s.docsUrl, status, code, detail, headers);
  }

  #refuse(status: number, code: ProblemCode, detail: string, headers?: Readonly<Record<string, string>>): Refusal {
    return new Refusal(this.#problem(status, code, detail, headers), code);
  }

  #unavailable(error: unknown, where: string): Refusal {
    tell(() => this.#s.hooks.onError?.(error, where));
    return this.#refuse(503, "unavailable", "Unavailable, try again later", { "retry-after": String(Math.ceil(this.#s.retryAfter)) });
  }

  #documentation(incoming: Incoming): Answer | undefined {
    if (incoming.method !== "GET" && incoming.method !== "HEAD") return undefined;
    if (pathOf(incoming.url) !== this.#s.docsPath) return undefined;
    const page = policyAnswer(this.#s);
    return incoming.method === "HEAD" ? { ...page, body: null } : page;
  }

  /** Step 1: method and size. */
  async #message(incoming: Incoming): Promise<Message> {
    const { profile, hooks, rateLimiter, limit, tolerance } = this.#s;
    const { method, fields, ip } = incoming;
    tell(() => hooks.onReceipt?.({ profile: profile.name, method, path: pathOf(incoming.url), ip }));
    const verdict = rateLimiter?.take(ip ?? "");
    if (verdict?.allowed === false) throw this.#refuse(429, "rate-limited", "Rate limit exceeded", verdict.headers);
    if (!profile.methods.includes(method)) {
      throw this.#refuse(405, "method-not-allowed", "Method not allowed", { allow: profile.methods.join(", ") });
    }
    // A key that is new does not exclude a replay of early data (EDS-SEC-RPL-8).
    if (tolerance === undefined && (incoming.earlyData === true || fields.get("early-data") === "1")) {
      throw this.#refuse(425, "too-early", "Early data is not taken, send it again");
    }
    const body = Number(fields.get("content-length") ?? 0) > limit ? undefined : await this.#body(incoming);
    if (body === undefined) throw this.#refuse(413, "too-large", `The payload has more than ${limit} bytes`);
    return { method, url: this.#target(incoming), fields, body };
  }

  #target(incoming: Incoming): string {
    const { targetUri, publicOrigin } = this.#s;
    if (targetUri !== undefined) return targetUri(incoming);
    return publicOrigin === undefined ? incoming.url : publicOrigin + targetOf(incoming.url);
  }

  async #body(incoming: Incoming): Promise<Bytes | undefined> {
    try {
      return await incoming.readBody(this.#s.limit);
    } catch (error) {
      if (!(error instanceof IncompleteBodyError)) throw error;
      throw this.#refuse(400, "payload-malformed", "The payload did not arrive in full");
    }
  }

  /** Steps 2 and 3: authenticity over the raw bytes, then freshness. */
  async #authenticate(message: Message, incoming: Incoming): Promise<Authentication> {
    const { profile, tolerance, clock } = this.#s;
    try {
      const authentication = await profile.authenticate(message, { now: Math.floor(clock() / 1000), tolerance });
      await this.#checkReplay(message, authentication);
      return authentication;
    } catch (error) {
      if (error instanceof Refusal) throw error;
      if (!(error instanceof WebhookSignatureError)) throw this.#unavailable(error, "authenticate");
      this.#tellFailure(error, incoming);
      const detail = profile.refusal ?? `Not authenticated: ${error.reason}`;
      throw this.#refuse(401, "unauthenticated", detail, { "www-authenticate": `Signature realm="${profile.name}"` });
    }
  }

  /**
   * A nonce is accepted once. If a scheme has no nonce and keys are not remembered, the signed time with the body takes
   * its place (EDS-SEC-RPL-6). Retries are signed anew, so an honest retry has a new nonce.
   */
  async #checkReplay(message: Message, { nonce, once = "", principal, signedAt }: Authentication): Promise<void> {
    const { store, dedup, tolerance, clock, profile } = this.#s;
    if (tolerance === undefined || signedAt === undefined || (nonce === undefined && dedup)) return;
    const value =
      nonce === undefined
        ? await digestOf([utf8(principal), utf8(`${profile.name} once`), utf8(once), message.body])
        : await scopeOf(principal, `${profile.name} nonce`, nonce);
    let fresh: boolean;
    try {
      const until = Math.ceil((signedAt + tolerance + 1) * 1000);
      fresh = await this.#stored("remember nonce", () => store.remember(value, until, Math.floor(clock())));
    } catch (error) {
      throw this.#unavailable(error, "remember nonce");
    }
    if (!fresh) throw new WebhookSignatureError("the request was seen before", "replayed");
  }

  #tellFailure({ message, reason }: WebhookSignatureError, { ip, fields }: Incoming): void {
    const { hooks, profile, clock } = this.#s;
    const recent = this.#failures.add(clock());
    tell(() => hooks.count?.("webhook.verification.failed"));
    tell(() => hooks.onVerificationFailure?.({ profile: profile.name, error: message, reason, ip, headers: sanitizedHeaders(fields), recent }));
  }

  /** Step 4: the syntax of the key, and the validation of the payload. */
  async #delivery(message: Message, authentication: Authentication): Promise<Delivery> {
    const { profile, keyPolicy, clock, validate } = this.#s;
    let identity: Identity;
    try {
      identity = await profile.identify(message, authentication, keyPolicy);
    } catch (error) {
      if (error instanceof DeliveryError) throw this.#refuse(400, error.code, error.message);
      throw error;
    }
    const { signedAt, principal } = authentication;
    const delivery = new Delivery({
      profile: profile.name,
      principal,
      identity,
      method: message.method,
      url: message.url,
      headers: message.fields,
      body: message.body,
      receivedAt: new Date(clock()),
      ...(signedAt === undefined ? {} : { signedAt: new Date(signedAt * 1000) }),
    });
    const fault = await validate?.(delivery);
    if (fault !== undefined) throw this.#refuse(400, "payload-invalid", fault);
    return delivery;
  }

  /**
   * The URI of the context (EDS-KEY-8). If it is not signed, host, query and the spelling of the path can be forged:
   * they must not let a captured request count as new.
   */
  #endpoint(url: string, incoming: Incoming): string {
    const { profile, publicOrigin } = this.#s;
    if (profile.signsTarget === true) return normalizedUri(splitUri(url));
    const plain = plainPath(pathOf(url));
    const path = incoming.routedPath?.(plain) ?? plain;
    return publicOrigin === undefined ? path : normalizedUri(splitUri(publicOrigin + path));
  }

  /** Step 5: reserve the key; then run, or answer the repeat. */
  async #once(delivery: Delivery, incoming: Incoming): Promise<Ending> {
    const { dedup, store, clock, lease, fingerprint } = this.#s;
    const scope = await scopeOf(delivery.principal, this.#endpoint(delivery.url, incoming), delivery.key);
    const keepAlive = incoming.waitUntil?.bind(incoming);
    if (!dedup) return this.#runner.run(delivery, scope, undefined, keepAlive);
    const holder: Holder = { scope, fingerprint: (await fingerprint?.(delivery)) ?? "", token: crypto.randomUUID() };
    const now = Math.floor(clock());
    let reservation;
    try {
      reservation = await this.#stored(
        "reserve key",
        () => store.reserve({ ...holder, now, leaseUntil: now + Math.ceil(lease * 1000) }),
        // Too late: the sender was told to retry, so the key is freed.
        ({ state }) => (state === "reserved" ? void store.release(scope, holder.token).catch(() => undefined) : undefined),
      );
    } catch (error) {
      throw this.#unavailable(error, "reserve key"); // fail closed (EDS-SEC-RPL-3)
    }
    if (reservation.state === "reserved") return this.#runner.run(delivery, scope, holder, keepAlive);
    return this.#repeat(delivery, holder, reservation);
  }

  #repeat(
    { principal, eventId }: Delivery,
    holder: Holder,
    found: { readonly state: "in-progress" | "completed"; readonly fingerprint: string; readonly outcome?: Outcome },
  ): Ending {
    const { hooks, profile, api, retryAfter } = this.#s;
    const other = found.fingerprint !== holder.fingerprint && found.fingerprint !== "" && holder.fingerprint !== "";
    tell(() => hooks.onDuplicate?.({ profile: profile.name, principal, eventId, kind: other ? "other-payload" : found.state }));
    if (other) throw this.#refuse(422, "key-reused", "The key was used with another payload");
    if (found.outcome === undefined) {
      // 409 is final for webhook senders by the letter; with 503 they retry (CCW-IDM-5).
      throw this.#refuse(api ? 409 : 503, "in-progress", "A request with this key is in progress", {
        "retry-after": String(Math.ceil(retryAfter)),
      });
    }
    const { status, headers, body } = found.outcome;
    const bytes = body === null ? null : fromBase64(body);
    if (!(status >= 200 && status <= 599) || bytes === undefined) throw this.#unavailable(new Error("a kept answer cannot be read"), "reserve key");
    return { answer: { status, headers: { ...headers, "idempotency-replayed": "true" }, body: bytes }, kind: "replayed" };
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The path of an address. The sender writes the host, which may be invalid. */
function pathOf(url: string): string {
  return /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(url)?.[1] || "/";
}

/** Path and query, likewise. */
function targetOf(url: string): string {
  const [, path, query = ""] = /^[a-z]+:\/\/[^/?#]*([^?#]*)(\?[^#]*)?/i.exec(url) ?? [];
  return (path || "/") + query;
}
