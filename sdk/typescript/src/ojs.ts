/** The order of Open Job Spec events: they arrive in any order, and their `time` says which came first (OJS-DLV-17). */

export interface TimedEvent {
  readonly time: string;
  readonly id?: string;
}

/** Compares by the instant of `time`, not by its text: RFC 3339 has many spellings of one instant. */
export function byTime(a: TimedEvent, b: TimedEvent): number {
  return instant(a) - instant(b) || fraction(a).localeCompare(fraction(b));
}

/** The events by time, oldest first. Events of one instant keep their order. */
export function sortByTime<E extends TimedEvent>(events: Iterable<E>): E[] {
  return [...events].sort(byTime);
}

/**
 * Keeps the newest event of each subject: apply an event only if `takes` returns true, and a late `job.started` never
 * overwrites `job.completed`.
 */
export class NewestBySubject<E extends TimedEvent & { readonly subject?: string }> {
  readonly #newest = new Map<string, E>();

  takes(event: E): boolean {
    const subject = event.subject ?? "";
    const known = this.#newest.get(subject);
    if (known !== undefined && byTime(event, known) <= 0) return false;
    this.#newest.set(subject, event);
    return true;
  }

  get(subject: string): E | undefined {
    return this.#newest.get(subject);
  }
}

function instant(event: TimedEvent): number {
  const ms = Date.parse(event.time);
  return Number.isNaN(ms) ? -Infinity : ms;
}

/** Digits beyond the millisecond, which Date does not keep. */
function fraction(event: TimedEvent): string {
  return (/\.(\d+)/.exec(event.time)?.[1] ?? "").padEnd(9, "0").slice(3, 9);
}
