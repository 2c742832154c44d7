/**
 * What a receiver remembers, and for how long. A store serves all processes of a receiver, in whatever language; every
 * method is one atomic step. Times are milliseconds since 1970 on the receiver's clock: keep the clocks together.
 *
 *   reserve ──► reserved (this caller holds the key until the lease ends)
 *     │            ├─ complete: the outcome is kept for the window, and every repeat gets it
 *     │            ├─ release:  the key is free, a repeat is a first request
 *     │            └─ neither (the holder died): free when the lease ends
 *     ├──► in-progress (another caller holds it)
 *     └──► completed (with the outcome)
 */
export interface Store {
  reserve(request: ReserveRequest): Promise<Reservation>;
  /** Keeps the outcome. False, and nothing is kept, if this holder has lost the key. */
  complete(request: CompleteRequest): Promise<boolean>;
  /** Frees the key, if this holder still has it. */
  release(scope: string, token: string): Promise<void>;
  /** Remembers a value until a time. True if it was new, false if it is remembered already. */
  remember(value: string, until: number, now: number): Promise<boolean>;
  /** Drops at most `limit` expired entries; returns how many. Stores that expire entries by themselves return 0. */
  purge(now: number, limit?: number): Promise<number>;
  /**
   * Runs a handler whose writes and the completion of its key are committed together or not at all: an exception rolls
   * both back. Stores without transactions have no such method.
   */
  transaction?<T>(run: (transaction: StoreTransaction) => Promise<T>): Promise<T>;
}

export interface StoreTransaction {
  /**
   * The handler's access to the transaction: a query function, or a list of commands. It is valid until the transaction
   * ends.
   */
  readonly handle: unknown;
  complete(request: CompleteRequest): Promise<boolean>;
}

export interface ReserveRequest {
  /** The digest of principal, URI and key. */
  readonly scope: string;
  /** The digest of the payload; "" if payloads are not compared. */
  readonly fingerprint: string;
  /** Identifies the holder. */
  readonly token: string;
  readonly now: number;
  /** When the key is free again unless the holder completes or releases it. */
  readonly leaseUntil: number;
}

export interface CompleteRequest {
  readonly scope: string;
  /** As it was reserved. */
  readonly fingerprint: string;
  readonly token: string;
  readonly outcome: Outcome;
  readonly now: number;
  /** End of the deduplication window. */
  readonly expiresAt: number;
}

export type Reservation =
  | { readonly state: "reserved" }
  | { readonly state: "in-progress"; readonly fingerprint: string }
  | { readonly state: "completed"; readonly fingerprint: string; readonly outcome: Outcome };

/** An answer that every repeat gets. */
export interface Outcome {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body in base64; null if it was empty or too long to keep. */
  readonly body: string | null;
}
