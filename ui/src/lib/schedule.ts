import type { DeliveryDetail, Policy } from "@godwit/client";

/** A retry that may still come, with the bounds of its random delay. */
export interface Expected {
  readonly n: number;
  readonly earliest: number;
  readonly latest: number;
}

/** Largest delay before retry k (from 1) in seconds: a fixed schedule, or a window that doubles. */
export function delay(policy: Policy, k: number): { least: number; most: number } {
  const fixed = policy.schedule_seconds;
  if (fixed && fixed.length > 0) {
    const seconds = fixed[Math.min(k - 1, fixed.length - 1)] ?? 0;
    return { least: seconds, most: seconds };
  }
  return { least: 0, most: Math.min(policy.base_seconds * 2 ** Math.min(k - 1, 40), policy.cap_seconds) };
}

/** All retries of a policy from a first failure at 0, for a drawing. */
export function schedule(policy: Policy, limit = 200): Expected[] {
  const list: Expected[] = [];
  let earliest = 0;
  let latest = 0;
  for (let k = 1; k <= Math.min(policy.max_retries, limit); k++) {
    const d = delay(policy, k);
    earliest += d.least;
    latest += d.most;
    if (policy.max_elapsed_seconds > 0 && earliest > policy.max_elapsed_seconds) break;
    list.push({ n: k + 1, earliest, latest: policy.max_elapsed_seconds > 0 ? Math.min(latest, policy.max_elapsed_seconds) : latest });
  }
  return list;
}

/** The attempts that come if every one fails for a while. */
export function expected(d: DeliveryDetail, policy: Policy, now = Date.now(), limit = 12): Expected[] {
  if (d.status !== "pending" || !d.due_at) return [];
  const list: Expected[] = [];
  const done = d.run.attempt_count;
  const end = d.run.first_at && policy.max_elapsed_seconds > 0 ? Date.parse(d.run.first_at) + policy.max_elapsed_seconds * 1000 : Infinity;
  let earliest = Math.max(Date.parse(d.due_at), now); // one that is late goes as soon as it can
  let latest = earliest;
  for (let k = done; k <= policy.max_retries && list.length < limit; k++) {
    if (k > done) {
      const next = delay(policy, k);
      earliest += next.least * 1000;
      latest += next.most * 1000;
    }
    if (earliest > end) break;
    list.push({ n: d.attempt_count + 1 + (k - done), earliest, latest: Math.min(latest, end) });
  }
  return list;
}
