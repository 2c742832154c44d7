import type { ClaimedJob, Inbox, InboxJob } from "./inbox.js";

interface Entry {
  readonly job: InboxJob;
  state: "waiting" | "claimed" | "done" | "dead";
  attempt: number;
  token: string;
  /** When it is due, when its lease ends, or when it ended. */
  at: number;
  reason: string;
}

/** An inbox in this process alone: for tests. It is not durable: what it holds is lost at a restart. */
export function memoryInbox(): Inbox & { states(): Record<Entry["state"], number> } {
  const entries = new Map<string, Entry>();
  const held = (job: ClaimedJob): Entry | undefined => {
    const entry = entries.get(job.id);
    return entry?.state === "claimed" && entry.token === job.token ? entry : undefined;
  };
  const end = (job: ClaimedJob, state: "done" | "dead", reason: string, now: number): void => {
    const entry = held(job);
    if (entry !== undefined) Object.assign(entry, { state, reason, at: now });
  };
  return {
    async enqueue(job) {
      if (!entries.has(job.id)) entries.set(job.id, { job, state: "waiting", attempt: 0, token: "", at: 0, reason: "" });
    },
    async claim(limit, leaseUntil, now) {
      const due = [...entries.values()].filter((e) => (e.state === "waiting" || e.state === "claimed") && e.at <= now);
      return due.slice(0, limit).map((entry) => {
        Object.assign(entry, { state: "claimed", attempt: entry.attempt + 1, token: crypto.randomUUID(), at: leaseUntil });
        return { ...entry.job, attempt: entry.attempt, token: entry.token };
      });
    },
    async done(job, now) {
      end(job, "done", "", now);
    },
    async later(job, dueAt, reason) {
      const entry = held(job);
      if (entry !== undefined) Object.assign(entry, { state: "waiting", at: dueAt, reason });
    },
    async dead(job, reason, now) {
      end(job, "dead", reason, now);
    },
    async purge(before) {
      const gone = [...entries].filter(([, e]) => e.state === "done" && e.at < before);
      for (const [id] of gone) entries.delete(id);
      return gone.length;
    },
    states() {
      const count = { waiting: 0, claimed: 0, done: 0, dead: 0 };
      for (const entry of entries.values()) count[entry.state]++;
      return count;
    },
  };
}
