/**
 * Steps 6 to 8: the handler, its result, the answer. A sender that hangs up changes nothing about them.
 *
 *   handler ─┬─ accepted, reject ─► kept, then answered, and every repeat gets it
 *            ├─ retryAfter, thrown ─► the key is free, and a repeat is a first request
 *            └─ late ─► 503; the key stays reserved while the handler runs, and its result counts when it comes
 */
import { base64 } from "../crypto/bytes.js";
import { inboxJob } from "../inbox/inbox.js";
import type { Answer } from "../profiles/profile.js";
import type { CompleteRequest, Outcome } from "../stores/store.js";
import { within } from "./deadline.js";
import type { Delivery } from "./delivery.js";
import { tell, type ResultReport } from "./hooks.js";
import { problemAnswer, type ProblemCode } from "./problem.js";
import { accepted, resultFault, soundHeaders, type Accepted, type Reject, type Result } from "./result.js";
import type { HandlerContext, Settings } from "./settings.js";

/** The end of a request, with the answer to the sender. */
export interface Ending {
  readonly answer: Answer;
  readonly kind: ResultReport["kind"];
  readonly reason?: string;
}

export interface Holder {
  readonly scope: string;
  readonly fingerprint: string;
  readonly token: string;
}

/** The longest body that is kept for repeats. Of a longer answer only status and headers are kept (IKH K-9). */
const maxKeptBody = 64 << 10;

/** Headers that belong to one answer only and are not repeated. */
const neverKept = new Set(["date", "connection", "set-cookie", "retry-after", "content-length", "transfer-encoding", "traceparent"]);

export class Runner {
  readonly #s: Settings;
  readonly #running = new Set<Promise<unknown>>();

  constructor(settings: Settings) {
    this.#s = settings;
  }

  async wait(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Runs the handler. `keepAlive` keeps the runtime alive until it has ended, after the answer was sent. */
  async run(delivery: Delivery, scope: string, holder: Holder | undefined, keepAlive?: (work: Promise<unknown>) => void): Promise<Ending> {
    const controller = new AbortController();
    const work = this.#work(delivery, scope, holder, controller.signal);
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
    tell(() => keepAlive?.(work));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), this.#s.timeout * 1000);
    });
    const first = await Promise.race([work, late]);
    clearTimeout(timer);
    if (first !== "late") return first;
    // The key stays reserved while the handler still runs: freeing it would let a retry run at the same time. When the
    // handler ends, its result is kept or the key freed; if it never ends, the lease does.
    controller.abort(new Error("the handler's time is over"));
    return { answer: this.#later(503, "retry-after", "Not finished in time, try again later"), kind: "timeout" };
  }

  /** It never rejects. */
  async #work(delivery: Delivery, scope: string, holder: Holder | undefined, signal: AbortSignal): Promise<Ending> {
    try {
      if (this.#s.transactional) return await this.#transact(delivery, holder!, signal);
      return await this.#settle(delivery, holder, await this.#handle(delivery, scope, { signal }));
    } catch (error) {
      return this.#fail(holder, error);
    }
  }

  async #handle(delivery: Delivery, scope: string, context: HandlerContext): Promise<Result> {
    const { handler, inbox, window, storeTimeout } = this.#s;
    if (inbox === undefined) return (await handler!(delivery, context)) ?? accepted();
    const job = await inboxJob(delivery, { id: scope, replaces: Math.floor(delivery.receivedAt.getTime() - window * 1000) });
    await within(storeTimeout * 1000, "enqueue", inbox.enqueue(job)); // durable first, then the acknowledgement (CCW-RCV-7)
    return accepted();
  }

  /** For handlers that threw, or returned an invalid result: the sender is told no details. */
  async #fail(holder: Holder | undefined, error: unknown): Promise<Ending> {
    tell(() => this.#s.hooks.onError?.(error, "handler"));
    await this.#release(holder);
    return { answer: this.#problem(500, "internal", "Internal error"), kind: "failed" };
  }

  /** Keeps a final result, and frees the key after any other (EDS T-3). */
  async #settle(delivery: Delivery, holder: Holder | undefined, result: Result): Promise<Ending> {
    const fault = resultFault(result, this.#s.allowMultiStatus);
    if (fault !== undefined) return this.#fail(holder, new Error(fault));
    if (result.kind === "retry-after") {
      await this.#release(holder);
      return { answer: this.#later(result.status, "retry-after", result.reason, result.seconds), kind: "retry-after", reason: result.reason };
    }
    if (result.kind === "accepted") {
      const answer = this.#acceptance(delivery, result);
      await this.#keep(holder, answer);
      return { answer, kind: "accepted" };
    }
    const answer = this.#rejection(result);
    if (this.#s.keepRejects) await this.#keep(holder, answer);
    else await this.#release(holder);
    return { answer, kind: "reject", reason: result.reason };
  }

  /**
   * The handler in the store's transaction: its writes and the completion of its key are committed together. If it does
   * not accept, its writes are rolled back. A handler that exceeds its time and the store's loses its transaction, so
   * that it does not hold locks for ever.
   */
  async #transact(delivery: Delivery, holder: Holder, signal: AbortSignal): Promise<Ending> {
    const { store, allowMultiStatus, timeout, storeTimeout } = this.#s;
    const run: { handled?: Promise<Result>; result?: Result; error?: unknown; answer?: Answer } = {};
    let failure: unknown = new Error("the transaction did not commit");
    try {
      await store.transaction!(async (transaction) => {
        run.handled = this.#handle(delivery, holder.scope, { signal, transaction: transaction.handle });
        run.handled.then(
          (result) => (run.result = result),
          (error: unknown) => (run.error = error ?? new Error("the handler threw nothing")),
        );
        const result = await within((timeout + storeTimeout) * 1000, "the handler", run.handled);
        if (result?.kind !== "accepted" || resultFault(result, allowMultiStatus) !== undefined) throw new Error("undone: not accepted");
        const answer = this.#acceptance(delivery, result);
        const completed = transaction.complete(this.#completion(holder, answer));
        if (!(await within(storeTimeout * 1000, "complete key", completed))) throw leaseLost();
        run.answer = answer;
      });
      if (run.answer !== undefined) return { answer: run.answer, kind: "accepted" };
    } catch (error) {
      failure = error;
    }
    // The handler's own error or result is more precise than the transaction's error.
    if (run.error !== undefined) return this.#fail(holder, run.error);
    const { result } = run;
    if (result !== undefined && (result.kind !== "accepted" || resultFault(result, allowMultiStatus) !== undefined)) {
      return this.#settle(delivery, holder, result);
    }
    return this.#undone(run.handled, holder, failure);
  }

  /**
   * For transactions that were not committed, or whose commit is uncertain. A key that was completed after all is not
   * freed by this, nor is one whose handler still runs.
   */
  async #undone(handled: Promise<unknown> | undefined, holder: Holder, error: unknown): Promise<Ending> {
    tell(() => this.#s.hooks.onError?.(error, "transaction"));
    await handled?.catch(() => undefined);
    await this.#release(holder);
    return { answer: this.#later(503, "unavailable", "Unavailable, try again later"), kind: "failed", reason: "unavailable" };
  }

  #problem(status: number, code: ProblemCode, detail: string, headers: Readonly<Record<string, string>> = {}): Answer {
    return problemAnswer(this.#s.profile, this.#s.docsUrl, status, code, detail, headers);
  }

  #later(status: number, code: ProblemCode, detail: string, seconds = this.#s.retryAfter): Answer {
    return this.#problem(status, code, detail, { "retry-after": String(Math.ceil(seconds)) });
  }

  #rejection({ status, reason }: Reject): Answer {
    return this.#problem(status, "rejected", reason);
  }

  /** Combines the handler's result with the profile's default answer. */
  #acceptance(delivery: Delivery, result: Accepted): Answer {
    const { profile, hooks } = this.#s;
    const { key, eventId, eventType } = delivery;
    const usual = profile.success({ key, eventId, eventType });
    const own = soundHeaders(result.headers, (name) => tell(() => hooks.onError?.(new Error(`header ${JSON.stringify(name)} cannot be sent`), "handler")));
    const hasBody = result.body !== undefined;
    const status = result.status ?? (hasBody && usual.status === 204 ? 200 : usual.status);
    if (status === 204 || status === 205) return { status, headers: own, body: null };
    if (hasBody) return { status, headers: own, body: result.body! };
    return { status, headers: { ...usual.headers, ...own }, body: usual.body };
  }

  /**
   * Stores the outcome before it is answered. If that fails, the effect has happened all the same, and the sender is
   * told to retry: until the lease ends a repeat is told to wait; afterwards the handler may run again.
   */
  async #keep(holder: Holder | undefined, answer: Answer): Promise<void> {
    if (holder === undefined) return;
    const { store, hooks, storeTimeout } = this.#s;
    try {
      const kept = (async () => store.complete(this.#completion(holder, answer)))();
      if (!(await within(storeTimeout * 1000, "keep result", kept))) throw leaseLost();
    } catch (error) {
      tell(() => hooks.onError?.(error, "keep result"));
    }
  }

  #completion(holder: Holder, answer: Answer): CompleteRequest {
    const now = Math.floor(this.#s.clock());
    const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !neverKept.has(name)));
    const fits = answer.body !== null && answer.body.length <= maxKeptBody;
    const outcome: Outcome = { status: answer.status, headers, body: fits ? base64(answer.body!) : null };
    return { ...holder, outcome, now, expiresAt: now + Math.ceil(this.#s.window * 1000) };
  }

  async #release(holder: Holder | undefined): Promise<void> {
    if (holder === undefined) return;
    const { store, hooks, storeTimeout } = this.#s;
    try {
      await within(storeTimeout * 1000, "release key", (async () => store.release(holder.scope, holder.token))());
    } catch (error) {
      tell(() => hooks.onError?.(error, "release key")); // the lease frees it
    }
  }
}

function leaseLost(): Error {
  return new Error("the lease ended before the handler did");
}
