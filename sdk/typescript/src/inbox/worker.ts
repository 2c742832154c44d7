/**
 * The worker of an inbox: takes jobs up, runs the handler, and puts back what failed, with growing waits. A job is handled
 * by one worker at a time; one whose worker died is taken up again when the lease ends, so a handler may see a delivery
 * twice and has to bear it.
 */
import { restoredDelivery } from "../receiver/delivery.js";
import { tell, type Hooks } from "../receiver/hooks.js";
import { accepted, resultFault, type Result } from "../receiver/result.js";
import type { Handler } from "../receiver/settings.js";
import type { ClaimedJob, Inbox } from "./inbox.js";

export interface WorkerOptions<T = unknown> {
  readonly inbox: Inbox;
  readonly handler: Handler<T>;
  /** Jobs at a time. Defaults to 4. */
  readonly concurrency?: number;
  /** Attempts before a job is given up. Defaults to 20. */
  readonly maxAttempts?: number;
  /** The first wait after a failure, in seconds; it doubles with each. Defaults to 1. */
  readonly base?: number;
  /** The longest wait, in seconds. Defaults to 600. */
  readonly cap?: number;
  /** How long a handler may take, in seconds. Defaults to 300. */
  readonly timeout?: number;
  /** How often an empty inbox is looked at, in seconds. Defaults to 1. */
  readonly poll?: number;
  readonly hooks?: Pick<Hooks, "onError" | "onResult"> & {
    /** A job was given up. */
    onDead?(job: Pick<ClaimedJob, "id" | "data" | "attempt">, reason: string): void;
  };
  /** Milliseconds since 1970. Defaults to Date.now. */
  readonly clock?: () => number;
  /** A number from 0 to 1 for the spread of waits. Defaults to Math.random. */
  readonly random?: () => number;
}

export interface Worker {
  /** Works until the signal is aborted; what has begun is finished. */
  run(signal: AbortSignal): Promise<void>;
  /** Works until nothing is due; tells how many jobs it took up. */
  drain(): Promise<number>;
}

export function inboxWorker<T = unknown>(options: WorkerOptions<T>): Worker {
  const { inbox, handler, hooks = {}, clock = Date.now, random = Math.random } = options;
  const { concurrency = 4, maxAttempts = 20, base = 1, cap = 600, timeout = 300, poll = 1 } = options;

  async function attempt(job: ClaimedJob): Promise<Result> {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, fail) => {
      timer = setTimeout(() => {
        const error = new Error("the handler's time is over");
        controller.abort(error);
        fail(error);
      }, timeout * 1000);
    });
    try {
      const work = Promise.resolve(handler(restoredDelivery(job.delivery) as never, { signal: controller.signal }));
      const result = (await Promise.race([work, late])) ?? accepted();
      const fault = resultFault(result, true);
      if (fault !== undefined) throw new Error(fault);
      return result;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Full jitter below a doubling bound. */
  function wait(attempts: number): number {
    return random() * Math.min(cap, base * 2 ** (attempts - 1)) * 1000;
  }

  async function giveUp(job: ClaimedJob, reason: string): Promise<void> {
    await inbox.dead(job, reason, Math.floor(clock()));
    const { id, data, attempt } = job;
    tell(() => hooks.onDead?.({ id, data, attempt }, reason));
  }

  async function work(job: ClaimedJob): Promise<void> {
    const { profile, principal } = job.delivery;
    const facts = { profile, principal, eventId: job.data.event_id, eventType: job.data.event_type };
    let result: Result;
    try {
      result = await attempt(job);
    } catch (error) {
      tell(() => hooks.onError?.(error, "worker"));
      tell(() => hooks.onResult?.({ ...facts, status: 0, kind: "failed" }));
      if (job.attempt >= maxAttempts) return giveUp(job, `failed ${job.attempt} times`);
      return inbox.later(job, Math.floor(clock() + wait(job.attempt)), "failed");
    }
    tell(() => hooks.onResult?.({ ...facts, status: 0, kind: result.kind }));
    if (result.kind === "accepted") return inbox.done(job, Math.floor(clock()));
    if (result.kind === "reject") return giveUp(job, result.reason);
    if (job.attempt >= maxAttempts) return giveUp(job, `put off ${job.attempt} times: ${result.reason}`);
    return inbox.later(job, Math.floor(clock() + result.seconds * 1000), result.reason);
  }

  /** Takes one job up, if one is due. Each slot claims for itself, so that a slow job holds up no other. */
  async function turn(): Promise<boolean> {
    const now = Math.floor(clock());
    const [job] = await inbox.claim(1, now + (timeout + 60) * 1000, now);
    if (job === undefined) return false;
    await work(job);
    return true;
  }

  async function slot(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let busy = false;
      try {
        busy = await turn();
      } catch (error) {
        tell(() => hooks.onError?.(error, "inbox")); // the lease brings the job back
      }
      if (!busy) await pause(poll * 1000, signal);
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
      await slots(() => slot(signal));
    },
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
