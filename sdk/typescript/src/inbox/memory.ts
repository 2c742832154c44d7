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

/** An inbox in this process, for tests. It is not durable: its jobs are lost at a restart. */
export function memoryInbox(): Inbox & { states(): Record<Entry["state"], number> } {
  const entries = new Map<string, Entry>();
  return {
    async enqueue(job) {
      const known = entries.get(job.id);
      const ended = known?.state === "done" || known?.state === "dead";
      if (known !== undefined && !(ended && known.at < (job.replaces ?? -Infinity))) return;
      entries.set(job.id, { job, state: "waiting", attempt: 0, token: "", at: Date.parse(job.data.received_at), reason: "" });
    },
    async claim(limit, leaseUntil, now) {
      const due = [...entries.values()].filter((e) => (e.state === "waiting" || e.state === "claimed") && e.at <= now);
      due.sort((a, b) => a.at - b.at);
      return due.slice(0, limit).map((entry): ClaimedJob => {
        Object.assign(entry, { state: "claimed", attempt: entry.attempt + 1, token: crypto.randomUUID(), at: leaseUntil });
        return { ...entry.job, attempt: entry.attempt, token: entry.token };
      });
    },
    async settle(job, { state, at, reason, interrupted }) {
      const entry = entries.get(job.id);
      if (entry?.state !== "claimed" || entry.token !== job.token) return false;
      Object.assign(entry, { state, at, reason, attempt: entry.attempt - (interrupted ? 1 : 0) });
      return true;
    },
    async purge(before, limit = Infinity) {
      const gone = [...entries].filter(([, e]) => e.state === "done" && e.at < before).slice(0, limit);
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
