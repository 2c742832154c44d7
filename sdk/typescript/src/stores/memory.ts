import type { CompleteRequest, Outcome, Reservation, ReserveRequest, Store } from "./store.js";

interface Entry {
  readonly fingerprint: string;
  readonly token: string;
  readonly outcome: Outcome | undefined;
  readonly until: number;
}

/**
 * A store in this process alone: for tests, and for receivers that run as one process and may forget at a restart.
 * Expired entries are dropped now and then, so that it does not grow without bound.
 */
export function memoryStore(): Store & { readonly size: number } {
  return new MemoryStore();
}

class MemoryStore implements Store {
  readonly #entries = new Map<string, Entry>();
  readonly #values = new Map<string, number>();
  #sweepAt = 0;

  get size(): number {
    return this.#entries.size + this.#values.size;
  }

  async reserve({ scope, fingerprint, token, now, leaseUntil }: ReserveRequest): Promise<Reservation> {
    this.#sweep(now);
    const entry = this.#entries.get(scope);
    if (entry === undefined || entry.until <= now) {
      this.#entries.set(scope, { fingerprint, token, outcome: undefined, until: leaseUntil });
      return { state: "reserved" };
    }
    if (entry.outcome === undefined) return { state: "in-progress", fingerprint: entry.fingerprint };
    return { state: "completed", fingerprint: entry.fingerprint, outcome: entry.outcome };
  }

  async complete({ scope, token, outcome, expiresAt }: CompleteRequest): Promise<boolean> {
    const entry = this.#entries.get(scope);
    if (entry === undefined || entry.token !== token || entry.outcome !== undefined) return false;
    this.#entries.set(scope, { ...entry, outcome, until: expiresAt });
    return true;
  }

  async release(scope: string, token: string): Promise<void> {
    const entry = this.#entries.get(scope);
    if (entry?.token === token && entry.outcome === undefined) this.#entries.delete(scope);
  }

  async remember(value: string, until: number, now: number): Promise<boolean> {
    this.#sweep(now);
    const known = this.#values.get(value);
    if (known !== undefined && known > now) return false;
    this.#values.set(value, until);
    return true;
  }

  async purge(now: number): Promise<number> {
    const before = this.size;
    for (const [scope, entry] of this.#entries) if (entry.until <= now) this.#entries.delete(scope);
    for (const [value, until] of this.#values) if (until <= now) this.#values.delete(value);
    return before - this.size;
  }

  #sweep(now: number): void {
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + 60_000;
    void this.purge(now);
  }
}
