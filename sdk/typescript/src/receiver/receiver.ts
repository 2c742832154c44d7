/**
 * The receiver: from an HTTP request to a verified event, handled at most once, and an answer that the sender reads
 * rightly. The order is fixed:
 *
 *   method, size ─► authenticate ─► freshness ─► key syntax ─► reserve the key ─► handler ─► keep the result ─► answer
 *
 * Nothing is parsed before it is authenticated, nothing is written before the key is good, nothing runs before the key is
 * reserved, and nothing is answered before the result is kept. It knows no server: adapters hand it an {@link Incoming}.
 */
import { base64, fromBase64, type Bytes } from "../crypto/bytes.js";
import { DeliveryError, WebhookSignatureError } from "../errors.js";
import { normalizedUri, pathAndQuery, splitUri } from "../httpsig/message.js";
import { inboxJob } from "../inbox/inbox.js";
import { scopeOf } from "../key.js";
import { emptyAnswer } from "../profiles/answers.js";
import type { Answer, Authentication, Identity, Message } from "../profiles/profile.js";
import type { CompleteRequest, Outcome } from "../stores/store.js";
import { Delivery } from "./delivery.js";
import { sanitizedHeaders, tell, type ResultReport } from "./hooks.js";
import { IncompleteBodyError, type Incoming } from "./incoming.js";
import { policyPage } from "./page.js";
import { problemAnswer, type ProblemCode } from "./problem.js";
import { accepted, resultFault, type Result } from "./result.js";
import type { HandlerContext, Settings } from "./settings.js";

/** The end of the road for a request, with its answer. */
class Refusal {
  constructor(
    readonly answer: Answer,
    readonly reason: string,
  ) {}
}

/** Leaves a transaction without its writes, with the result that asked for it. */
class Undo {
  constructor(readonly result: Result) {}
}

/** The longest answer that is kept for repeats; of a longer one only the status is (IKH K-9). */
const maxKeptBody = 64 << 10;

/** Headers that belong to one answer only and are not repeated. */
const neverKept = new Set(["date", "connection", "set-cookie", "retry-after", "content-length", "transfer-encoding", "traceparent"]);

export class Pipeline {
  readonly #s: Settings;
  #failures: number[] = [];

  constructor(settings: Settings) {
    this.#s = settings;
  }

  /** Answers a request. It never throws: whatever happens, there is one answer (EDS-DEF-3). */
  async receive(incoming: Incoming): Promise<Answer> {
    const { hooks, profile } = this.#s;
    let facts: Partial<ResultReport> = {};
    const report = (answer: Answer, kind: ResultReport["kind"], reason?: string): Answer => {
      const status = answer.status;
      tell(() => hooks.onResult?.({ ...facts, profile: profile.name, status, kind, ...(reason === undefined ? {} : { reason }) }));
      return answer;
    };
    try {
      const page = this.#documentation(incoming);
      if (page !== undefined) return page;
      const message = await this.#message(incoming);
      const authentication = await this.#authenticate(message, incoming);
      const handshake = profile.handshake?.(message);
      if (handshake !== undefined) return report(handshake, "accepted", "handshake");
      const delivery = await this.#delivery(message, authentication);
      facts = { principal: delivery.principal, eventId: delivery.eventId, eventType: delivery.eventType };
      return await this.#once(delivery, incoming, report);
    } catch (error) {
      if (error instanceof Refusal) return report(error.answer, "refused", error.reason);
      tell(() => hooks.onError?.(error, "receive"));
      return report(this.#problem(500, "internal", "Internal error"), "failed");
    }
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
    const { docsPath } = this.#s;
    if (incoming.method !== "GET" && incoming.method !== "HEAD") return undefined;
    if (pathOf(incoming.url) !== docsPath) return undefined;
    const headers = { "content-type": "text/html; charset=utf-8" };
    if (incoming.method === "HEAD") return emptyAnswer(200, headers);
    return { status: 200, headers, body: new TextEncoder().encode(policyPage(this.#s)) as Bytes };
  }

  /** Step 1: method and size. */
  async #message(incoming: Incoming): Promise<Message> {
    const { profile, hooks, rateLimiter, limit, publicOrigin, tolerance } = this.#s;
    const { method, fields, ip } = incoming;
    tell(() => hooks.onReceipt?.({ profile: profile.name, method, path: pathOf(incoming.url), ip }));
    const verdict = rateLimiter?.take(ip ?? "");
    if (verdict?.allowed === false) throw this.#refuse(429, "rate-limited", "Rate limit exceeded", verdict.headers);
    if (!profile.methods.includes(method)) {
      throw this.#refuse(405, "method-not-allowed", "Method not allowed", { allow: profile.methods.join(", ") });
    }
    // A key that nobody has seen yet says nothing about a replay of early data (EDS-SEC-RPL-8).
    if (tolerance === undefined && (incoming.earlyData === true || fields.get("early-data") === "1")) {
      throw this.#refuse(425, "too-early", "Early data is not taken, send it again");
    }
    const body = Number(fields.get("content-length") ?? 0) > limit ? undefined : await this.#body(incoming);
    if (body === undefined) throw this.#refuse(413, "too-large", `The payload has more than ${limit} bytes`);
    const url = publicOrigin === undefined ? incoming.url : publicOrigin + pathAndQuery(splitUri(incoming.url));
    return { method, url, fields, body };
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
      const detail = profile.name === "cybercube" ? "Invalid signature" : `Not authenticated: ${error.reason}`;
      throw this.#refuse(401, "unauthenticated", detail, { "www-authenticate": `Signature realm="${profile.name}"` });
    }
  }

  /**
   * A nonce is good once. Where a scheme has none and keys are not remembered, the signed time with the body does its
   * service (EDS-SEC-RPL-6). Retries are signed anew, so an honest one never comes with a known nonce.
   */
  async #checkReplay(message: Message, authentication: Authentication): Promise<void> {
    const { store, dedup, tolerance, clock, profile } = this.#s;
    const { nonce, proof, principal, signedAt } = authentication;
    if (tolerance === undefined || signedAt === undefined) return;
    const once = nonce ?? (dedup || proof === undefined ? undefined : `${proof} ${base64(message.body)}`);
    if (once === undefined) return;
    const id = await scopeOf(principal, `${profile.name} nonce`, once);
    let fresh: boolean;
    try {
      fresh = await store.remember(id, (signedAt + tolerance + 1) * 1000, clock());
    } catch (error) {
      throw this.#unavailable(error, "remember nonce");
    }
    if (!fresh) throw new WebhookSignatureError("the request was seen before", "replayed");
  }

  #tellFailure(error: WebhookSignatureError, incoming: Incoming): void {
    const { hooks, profile, clock } = this.#s;
    const now = clock();
    this.#failures = [...this.#failures.slice(-9_999), now].filter((at) => at > now - 60_000);
    const recent = this.#failures.length;
    const { message, reason } = error;
    tell(() => hooks.count?.("webhook.verification.failed"));
    tell(() =>
      hooks.onVerificationFailure?.({
        profile: profile.name,
        error: message,
        reason,
        ip: incoming.ip,
        headers: sanitizedHeaders(incoming.fields),
        recent,
      }),
    );
  }

  /** Step 4: key syntax, and what the payload must be like. */
  async #delivery(message: Message, authentication: Authentication): Promise<Delivery> {
    const { profile, keyPolicy, clock, validate } = this.#s;
    let identity: Identity;
    try {
      identity = await profile.identify(message, authentication, keyPolicy);
    } catch (error) {
      if (error instanceof DeliveryError) throw this.#refuse(400, error.code, error.message);
      throw error;
    }
    const delivery = new Delivery({
      profile: profile.name,
      principal: authentication.principal,
      identity,
      url: message.url,
      headers: message.fields,
      body: message.body,
      receivedAt: new Date(clock()),
    });
    const fault = await validate?.(delivery);
    if (fault !== undefined) throw this.#refuse(400, "payload-invalid", fault);
    return delivery;
  }

  /**
   * The URI of the context (EDS-KEY-8). Where it is not signed, host and query are whatever the request claims: they must
   * not let a captured request count as a new one.
   */
  #endpoint(url: string): string {
    const uri = splitUri(url);
    return this.#s.profile.signsTarget === true ? normalizedUri(uri) : `${this.#s.publicOrigin ?? ""}${uri.path}`;
  }

  /** Step 5: reserve the key; then run, or answer the repeat. */
  async #once(delivery: Delivery, incoming: Incoming, report: Report): Promise<Answer> {
    const { dedup, store, clock, lease, fingerprint } = this.#s;
    const holder: Holder = { scope: "", fingerprint: "", token: crypto.randomUUID() };
    if (!dedup) return this.#run(delivery, undefined, incoming, report);
    holder.scope = await scopeOf(delivery.principal, this.#endpoint(delivery.url), delivery.key);
    holder.fingerprint = (await fingerprint?.(delivery)) ?? "";
    const now = Math.floor(clock());
    let reservation;
    try {
      reservation = await store.reserve({ ...holder, now, leaseUntil: now + lease * 1000 });
    } catch (error) {
      throw this.#unavailable(error, "reserve key"); // fail closed (EDS-SEC-RPL-3)
    }
    if (reservation.state === "reserved") return this.#run(delivery, holder, incoming, report);
    return this.#repeat(delivery, holder, reservation, report);
  }

  #repeat(
    delivery: Delivery,
    holder: Holder,
    found: { readonly state: "in-progress" | "completed"; readonly fingerprint: string; readonly outcome?: Outcome },
    report: Report,
  ): Answer {
    const { hooks, profile, api, retryAfter } = this.#s;
    const { principal, eventId } = delivery;
    const other = found.fingerprint !== holder.fingerprint && found.fingerprint !== "" && holder.fingerprint !== "";
    tell(() => hooks.onDuplicate?.({ profile: profile.name, principal, eventId, kind: other ? "other-payload" : found.state }));
    if (other) throw this.#refuse(422, "key-reused", "The key was used with another payload");
    if (found.outcome === undefined) {
      // 409 is final for webhook senders by the letter; 503 makes them come again (CCW-IDM-5).
      throw this.#refuse(api ? 409 : 503, "in-progress", "A request with this key is in progress", {
        "retry-after": String(Math.ceil(retryAfter)),
      });
    }
    const { status, headers, body } = found.outcome;
    const replayed = { ...headers, "idempotency-replayed": "true" };
    return report({ status, headers: replayed, body: body === null ? null : (fromBase64(body) ?? null) }, "replayed");
  }

  /** Steps 6 to 8: the handler, its result, the answer. A sender that hangs up changes nothing about them. */
  async #run(delivery: Delivery, holder: Holder | undefined, incoming: Incoming, report: Report): Promise<Answer> {
    const { timeout, retryAfter, hooks } = this.#s;
    const controller = new AbortController();
    const { signal } = controller;
    const run = this.#s.transactional
      ? this.#transact(delivery, holder!, signal, report)
      : this.#handle(delivery, { signal }).then((result) => this.#settle(delivery, holder, result, report));
    const work = run.catch(async (error: unknown) => {
      tell(() => hooks.onError?.(error, "handler"));
      await this.#release(holder);
      return report(this.#problem(500, "internal", "Internal error"), "failed");
    });
    incoming.waitUntil?.(work);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), timeout * 1000);
    });
    const first = await Promise.race([work, late]);
    clearTimeout(timer);
    if (first !== "late") return first;
    // The key stays reserved while the handler still runs: freeing it would let a retry run beside it. When it ends its
    // result is kept, or the key freed, after all; if it never ends, the lease does.
    controller.abort(new Error("the handler's time is over"));
    const seconds = String(Math.ceil(retryAfter));
    return report(this.#problem(503, "retry-after", "Not finished in time, try again later", { "retry-after": seconds }), "timeout");
  }

  /**
   * The handler in the store's transaction: its writes and the completion of its key happen together. A result that frees
   * the key undoes the writes. If the commit fails, the key is freed where it did not happen, and stays where it did.
   */
  async #transact(delivery: Delivery, holder: Holder, signal: AbortSignal, report: Report): Promise<Answer> {
    const { store, allowMultiStatus, keepRejects } = this.#s;
    try {
      return await store.transaction!(async (transaction) => {
        const result = await this.#handle(delivery, { signal, transaction: transaction.handle });
        const frees = result.kind === "retry-after" || (result.kind === "reject" && !keepRejects);
        if (frees || resultFault(result, allowMultiStatus) !== undefined) throw new Undo(result);
        const answer = this.#answer(delivery, result as Exclude<Result, { kind: "retry-after" }>);
        if (!(await transaction.complete(this.#completion(holder, answer)))) throw new Error("the lease ended before the handler did");
        return report(answer, result.kind, result.kind === "reject" ? result.reason : undefined);
      });
    } catch (error) {
      if (error instanceof Undo) return this.#settle(delivery, holder, error.result, report);
      throw error;
    }
  }

  async #handle(delivery: Delivery, context: HandlerContext): Promise<Result> {
    const { handler, inbox } = this.#s;
    if (inbox !== undefined) {
      await inbox.enqueue(await inboxJob(delivery)); // durable first, then the acknowledgement (CCW-RCV-7)
      return accepted();
    }
    return (await handler!(delivery, context)) ?? accepted();
  }

  async #settle(delivery: Delivery, holder: Holder | undefined, result: Result, report: Report): Promise<Answer> {
    const { hooks, allowMultiStatus, keepRejects } = this.#s;
    const fault = resultFault(result, allowMultiStatus);
    if (fault !== undefined) {
      tell(() => hooks.onError?.(new Error(fault), "handler"));
      await this.#release(holder);
      return report(this.#problem(500, "internal", "Internal error"), "failed", fault);
    }
    if (result.kind === "retry-after") {
      await this.#release(holder);
      const headers = { "retry-after": String(Math.ceil(result.seconds)) };
      return report(this.#problem(result.status, "retry-after", result.reason, headers), "retry-after", result.reason);
    }
    const answer = this.#answer(delivery, result);
    if (result.kind === "reject" && !keepRejects) await this.#release(holder);
    else await this.#keep(holder, answer);
    return report(answer, result.kind, result.kind === "reject" ? result.reason : undefined);
  }

  #answer(delivery: Delivery, result: Exclude<Result, { kind: "retry-after" }>): Answer {
    if (result.kind === "reject") return this.#problem(result.status, "rejected", result.reason);
    const { key, eventId, eventType } = delivery;
    const usual = this.#s.profile.success({ key, eventId, eventType });
    if (result.body !== undefined) {
      const status = result.status ?? (usual.status === 204 ? 200 : usual.status);
      return { status, headers: withoutRetryAfter(result.headers), body: result.body };
    }
    const status = result.status ?? usual.status;
    const bodiless = status === 204 || status === 205;
    return {
      status,
      headers: { ...(bodiless ? {} : usual.headers), ...withoutRetryAfter(result.headers) },
      body: bodiless ? null : usual.body,
    };
  }

  /**
   * Keeps the outcome before it is answered. If that fails the effect has happened all the same, so the sender is told so;
   * until the lease ends a repeat is told to wait, after it the handler may run again.
   */
  async #keep(holder: Holder | undefined, answer: Answer): Promise<void> {
    if (holder === undefined) return;
    const { store, hooks } = this.#s;
    try {
      const kept = await store.complete(this.#completion(holder, answer));
      if (!kept) tell(() => hooks.onError?.(new Error("the lease ended before the handler did"), "keep result"));
    } catch (error) {
      tell(() => hooks.onError?.(error, "keep result"));
    }
  }

  #completion(holder: Holder, answer: Answer): CompleteRequest {
    const now = Math.floor(this.#s.clock());
    const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !neverKept.has(name)));
    const fits = answer.body !== null && answer.body.length <= maxKeptBody;
    const outcome: Outcome = { status: answer.status, headers, body: fits ? base64(answer.body!) : null };
    return { ...holder, outcome, now, expiresAt: now + this.#s.window * 1000 };
  }

  async #release(holder: Holder | undefined): Promise<void> {
    if (holder === undefined) return;
    try {
      await this.#s.store.release(holder.scope, holder.token);
    } catch (error) {
      tell(() => this.#s.hooks.onError?.(error, "release key")); // the lease frees it
    }
  }
}

type Report = (answer: Answer, kind: ResultReport["kind"], reason?: string) => Answer;

interface Holder {
  scope: string;
  fingerprint: string;
  readonly token: string;
}

/** Retry-After belongs to answers that ask to come again, never to an accepted delivery (EDS-RAF-1). */
function withoutRetryAfter(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { "retry-after": _, ...rest } = headers;
  return rest;
}

function pathOf(url: string): string {
  return /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(url)?.[1] || "/";
}
