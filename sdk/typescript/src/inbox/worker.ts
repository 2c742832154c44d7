/**
 * The worker of an inbox: takes jobs up, runs the handler, and puts back what failed, with growing waits. A job is handled
 * by one worker at a time; one whose worker died is taken up again when the lease ends, so a handler may see a delivery
 * twice and has to bear it, unless it is transactional.
 *
 *   claim ─► handler ─┬─ accepted ─► done
 *                     ├─ reject, too many attempts, or too many workers that died of it ─► dead
 *                     └─ thrown, retryAfter ─► waiting, for longer each time
 */
import { longestWait, within } from "../receiver/deadline.js";
import { restoredDelivery } from "../receiver/delivery.js";
import { heard, tell, type Hooks } from "../receiver/hooks.js";
import { accepted, resultFault, type Result } from "../receiver/result.js";
import type { Handler } from "../receiver/settings.js";
import type { ClaimedJob, Inbox, Settlement } from "./inbox.js";

export interface WorkerOptions<T = unknown> {
  readonly inbox: Inbox;
  readonly handler: Handler<T>;
  /**
   * Runs the handler in the inbox's transaction, which also ends the job: what it writes there (sqlOf) happens exactly once,
   * whenever the process dies. Needs an inbox with transactions. Defaults to false.
   */
  readonly transactional?: boolean;
  /** Number of concurrent jobs. Defaults to 4. */
  readonly concurrency?: number;
  /** Attempts before a job is dead. Defaults to 20. */
  readonly maxAttempts?: number;
  /** The first wait after a failure, in seconds; it doubles with each. Defaults to 1. */
  readonly base?: number;
  /** The longest wait, in seconds. Defaults to 600. */
  readonly cap?: number;
  /** How long a handler may take, in seconds; then its signal is aborted. Defaults to 300. */
  readonly timeout?: number;
  /**
   * How long handlers may continue after `run` was told to stop, in seconds; then their signal is aborted. Defaults to
   * 30.
   */
  readonly stopTimeout?: number;
  /** How often an empty inbox is queried, in seconds. Defaults to 1. */
  readonly poll?: number;
  /** How long finished jobs are kept, in seconds; it should be the receiver's window. Defaults to 30 days. */
  readonly retention?: number;
  /** How often `run` drops those, in seconds; 0: never. Defaults to an hour. */
  readonly purgeEvery?: number;
  /** How long an operation of the inbox may take, in seconds. Defaults to 5. */
  readonly storeTimeout?: number;
  /** onError and onDead default to the console. */
  readonly hooks?: Pick<Hooks, "onError" | "onResult"> & {
    /** A job is dead. */
    onDead?(job: Pick<ClaimedJob, "id" | "data" | "attempt">, reason: string): void;
  };
  /** Milliseconds since 1970. Defaults to Date.now. */
  readonly clock?: () => number;
  /** A number from 0 to 1 that spreads the waits. Defaults to Math.random. */
  readonly random?: () => number;
}

export interface Worker {
  /** Works until the signal is aborted. Running jobs finish, or are put back if they take too long. */
  run(signal: AbortSignal): Promise<void>;
  /** Works until no job is due; returns the number of jobs it ran. */
  drain(): Promise<number>;
  /** Drops jobs that were done longer ago than `retention`, in small steps; returns how many. `run` calls it. */
  purge(): Promise<number>;
}

/** The result of an attempt at a job. */
type Attempt = { readonly result: Result } | { readonly error: unknown; readonly unbegun?: boolean };

export function inboxWorker<T = unknown>(options: WorkerOptions<T>): Worker {
  const { inbox, handler, transactional = false, clock = Date.now, random = Math.random } = options;
  const { concurrency = 4, maxAttempts = 20, base = 1, cap = 600, timeout = 300, stopTimeout = 30, poll = 1 } = options;
  const { retention = 30 * 86400, purgeEvery = 3600, storeTimeout = 5 } = options;
  if (transactional && inbox.transaction === undefined) throw new Error("worker: transactional needs an inbox with transactions");
  if (timeout * 1000 > longestWait || !(timeout > 0)) throw new Error("worker: timeout is not a time that a timer waits");
  const hooks = heard(options.hooks ?? {});
  const now = (): number => Math.floor(clock());
  const lease = Math.ceil((timeout + stopTimeout + 60) * 1000);

  async function call(job: ClaimedJob, signal: AbortSignal, transaction?: unknown): Promise<Result> {
    const context = { signal, ...(transaction === undefined ? {} : { transaction }) };
    const result = (await handler(restoredDelivery(job.delivery) as never, context)) ?? accepted();
    const fault = resultFault(result, true);
    if (fault !== undefined) throw new Error(fault);
    return result;
  }

  /** Full jitter below a doubling limit. */
  function backoff(attempts: number): number {
    return random() * Math.min(cap, base * 2 ** (attempts - 1)) * 1000;
  }

  /** Decides what happens to a job after an attempt. */
  function judge(job: ClaimedJob, attempt: Attempt, stopped: boolean): Settlement {
    const last = job.attempt >= maxAttempts;
    const later = (ms: number, reason: string): Settlement => ({ state: "waiting", at: Math.floor(clock() + ms), reason });
    const dead = (reason: string): Settlement => ({ state: "dead", at: now(), reason });
    if ("error" in attempt) {
      if (stopped) return { ...later(0, "interrupted"), interrupted: true };
      if (attempt.unbegun) return { ...later(backoff(job.attempt), "could not begin"), interrupted: true }; // nothing was done
      return last ? dead(`failed ${job.attempt} times`) : later(backoff(job.attempt), "failed");
    }
    const { result } = attempt;
    if (result.kind === "accepted") return { state: "done", at: now(), reason: "" };
    if (result.kind === "reject") return dead(result.reason);
    return last ? dead(`put off ${job.attempt} times: ${result.reason}`) : later(result.seconds * 1000, result.reason);
  }

  function report(job: ClaimedJob, attempt: Attempt, settlement: Settlement, held: boolean): void {
    const { id, data, attempt: n } = job;
    const { profile, principal } = job.delivery;
    if ("error" in attempt) tell(() => hooks.onError?.(attempt.error, "worker"));
    if (!held) return tell(() => hooks.onError?.(new Error("the lease ended before the handler did"), "settle job"));
    const kind = "error" in attempt ? "failed" : attempt.result.kind;
    tell(() => hooks.onResult?.({ profile, principal, eventId: data.event_id, eventType: data.event_type, status: 0, kind }));
    if (settlement.state !== "dead") return;
    const { hooks: own } = options;
    if (own?.onDead !== undefined) tell(() => own.onDead!({ id, data, attempt: n }, settlement.reason));
    else console.warn(`webhook worker: job ${id} of event ${data.event_id} was given up: ${settlement.reason}`);
  }

  const settle = (job: ClaimedJob, settlement: Settlement): Promise<boolean> =>
    within(storeTimeout * 1000, "settle job", inbox.settle(job, settlement));

  async function work(job: ClaimedJob, signal: AbortSignal, stopped: () => boolean): Promise<void> {
    let attempt: Attempt;
    if (job.attempt > maxAttempts) { // it was started often enough and never ended: perhaps it kills workers
      const reason = `begun ${job.attempt - 1} times, and no worker lived to finish it`;
      const settlement: Settlement = { state: "dead", at: now(), reason };
      return report(job, { error: new Error(reason) }, settlement, await settle(job, settlement));
    }
    try {
      attempt = transactional ? await transact(job, signal) : { result: await call(job, signal) };
    } catch (error) {
      attempt = { error };
    }
    const settlement = judge(job, attempt, stopped());
    const done = transactional && settlement.state === "done"; // in its transaction
    report(job, attempt, settlement, done || (await settle(job, settlement)));
  }

  /** Runs the handler in the transaction that ends its job. If it does not accept, its writes are rolled back. */
  async function transact(job: ClaimedJob, signal: AbortSignal): Promise<Attempt> {
    const run: { attempt?: Attempt } = {};
    try {
      await inbox.transaction!(async (transaction) => {
        run.attempt = await call(job, signal, transaction.handle).then((result) => ({ result }), (error: unknown) => ({ error }));
        if ("error" in run.attempt || run.attempt.result.kind !== "accepted") throw new Error("undone: not accepted");
        const settled = await transaction.settle(job, { state: "done", at: now(), reason: "" });
        if (!settled) throw new Error("the lease ended before the handler did");
      });
      return run.attempt!;
    } catch (error) {
      const { attempt } = run;
      if (attempt === undefined) return { error, unbegun: true };
      return "result" in attempt && attempt.result.kind === "accepted" ? { error } : attempt;
    }
  }

  /**
   * Runs one job, if one is due. Each slot claims for itself, so that a slow job delays no other. A handler past its
   * time is told so and waited for, because a job that was put back would run at the same time; but only until its
   * lease ends, when any worker may take the job.
   */
  async function turn(stop?: AbortSignal): Promise<boolean> {
    const [job] = await within(storeTimeout * 1000, "claim job", inbox.claim(1, now() + lease, now()), (late) => {
      for (const job of late) void settle(job, { state: "waiting", at: now(), reason: "claimed too late", interrupted: true }).catch(() => undefined);
    });
    if (job === undefined) return false;
    const controller = new AbortController();
    const timers: ReturnType<typeof setTimeout>[] = [];
    const after = (seconds: number, act: () => void): void => void timers.push(setTimeout(act, seconds * 1000));
    let stopped = false;
    after(timeout, () => controller.abort(new Error("the handler's time is over")));
    const halt = (): void =>
      after(stopTimeout, () => {
        stopped = true;
        controller.abort(new Error("the worker is stopping"));
      });
    stop?.addEventListener("abort", halt);
    if (stop?.aborted) halt();
    const working = work(job, controller.signal, () => stopped);
    let over = false;
    working.catch((error: unknown) => over && tell(() => hooks.onError?.(error, "inbox")));
    const leaseOver = new Promise<void>((resolve) => after(lease / 1000, resolve)).then(() => void (over = true));
    try {
      await Promise.race([working, leaseOver]);
    } finally {
      for (const timer of timers) clearTimeout(timer);
      stop?.removeEventListener("abort", halt);
    }
    return true;
  }

  async function slot(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let busy = false;
      try {
        busy = await turn(signal);
      } catch (error) {
        tell(() => hooks.onError?.(error, "inbox")); // the job is due again when the lease ends
      }
      if (!busy) await pause(poll * 1000, signal);
    }
  }

  /** Begins at once: a process may end before the first `purgeEvery`. */
  async function purgeNowAndThen(signal: AbortSignal): Promise<void> {
    while (purgeEvery > 0 && !signal.aborted) {
      await purge().catch((error: unknown) => tell(() => hooks.onError?.(error, "purge")));
      await pause(Math.min(purgeEvery * 1000, longestWait), signal);
    }
  }

  async function purge(): Promise<number> {
    const step = 1000;
    const before = Math.floor(clock() - retention * 1000);
    for (let total = 0; ; ) {
      const dropped = await within(storeTimeout * 1000, "purge", inbox.purge(before, step));
      total += dropped;
      if (dropped < step) return total;
    }
  }

  const slots = <R>(run: () => Promise<R>): Promise<R[]> => Promise.all(Array.from({ length: concurrency }, run));

  return {
    async drain() {
      const counts = await slots(async () => {
        let count = 0;
        while (await turn()) count++;
        return count;
      });
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async run(signal) {
      await Promise.all([slots(() => slot(signal)), purgeNowAndThen(signal)]);
    },
    purge,
  };
}

/** Waits, or stops waiting when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
