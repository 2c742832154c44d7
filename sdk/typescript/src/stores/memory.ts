import type { CompleteRequest, Outcome, Reservation, ReserveRequest, Store } from "./store.js";

interface Entry {
  readonly fingerprint: string;
  readonly token: string;
  readonly outcome: Outcome | undefined;
  readonly until: number;
}

export interface MemoryStoreOptions {
  /**
   * How many keys and nonces are remembered at most; beyond it new ones are refused (503), because forgetting one would let
   * a duplicate through. Defaults to 1,000,000.
   */
  readonly max?: number;
}

/**
 * A store in this process: for tests, and for receivers that run as one process and may forget at a restart. Expired
 * entries are dropped from time to time.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store & { readonly size: number } {
  return new MemoryStore(options.max ?? 1_000_000);
}

class MemoryStore implements Store {
  readonly #entries = new Map<string, Entry>();
  readonly #values = new Map<string, number>();
  readonly #max: number;
  #sweepAt = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size + this.#values.size;
  }

  async reserve({ scope, fingerprint, token, now, leaseUntil }: ReserveRequest): Promise<Reservation> {
    this.#sweep(now);
    const entry = this.#entries.get(scope);
    if (entry === undefined || entry.until <= now) {
      if (entry === undefined) this.#makeRoom(now);
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
    if (known === undefined) this.#makeRoom(now);
    this.#values.set(value, until);
    return true;
  }

  async purge(now: number, limit = Infinity): Promise<number> {
    return this.#drop(now, limit);
  }

  #drop(now: number, limit: number): number {
    let dropped = 0;
    for (const [scope, { until }] of this.#entries) if (until <= now && dropped < limit && this.#entries.delete(scope)) dropped++;
    for (const [value, until] of this.#values) if (until <= now && dropped < limit && this.#values.delete(value)) dropped++;
    return dropped;
  }

  #sweep(now: number): void {
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + 60_000;
    this.#drop(now, Infinity);
  }

  #makeRoom(now: number): void {
    if (this.size < this.#max) return;
    this.#drop(now, Infinity);
    if (this.size >= this.#max) throw new Error("the store is full");
  }
}
