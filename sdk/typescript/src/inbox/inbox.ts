/**
 * The inbox: deliveries that are acknowledged and not processed yet. A delivery is in it before its sender gets a 2xx, and
 * leaves it when a worker has dealt with it.
 *
 *   enqueue ─► waiting ─► claimed (leased by a worker) ─┬─► done
 *                 ▲                                     ├─► dead: refused by the handler, or out of attempts
 *                 └──── later: failed, or lease over ◄──┘
 *
 * A job's id is the scope under which the receiver knows its delivery, so enqueueing twice (a crash between inbox and
 * acknowledgement) makes one job.
 */
import { strictText } from "../crypto/bytes.js";
import { jsonObject } from "../profiles/secrets.js";
import { scopeOf } from "../key.js";
import { normalizedUri, splitUri } from "../httpsig/message.js";
import { storedDelivery, type Delivery, type StoredDelivery } from "../receiver/delivery.js";

/** What a queue carries: the four members are CYBERCUBE's (CCW-RCV-7). */
export interface InboxJob {
  readonly id: string;
  readonly name: "process-webhook";
  readonly data: {
    readonly event_id: string;
    readonly event_type: string;
    /** The payload as JSON, where it is an object in UTF-8; else its bytes in base64. */
    readonly payload: unknown;
    readonly received_at: string;
  };
  /** The whole delivery, from which a worker makes it again. */
  readonly delivery: StoredDelivery;
  /**
   * The beginning of the deduplication window, in milliseconds since 1970: a job of the same id that ended before it was of
   * another event, and gives way. Defaults to never.
   */
  readonly replaces?: number;
}

export interface ClaimedJob extends InboxJob {
  /** 1 for the first. */
  readonly attempt: number;
  /** What proves the worker. */
  readonly token: string;
}

/** Times are milliseconds since 1970. Every method is one atomic step. */
export interface Inbox {
  /** Keeps a job durably; resolves when it is safe. A job that is known already is left as it is, unless it gives way. */
  enqueue(job: InboxJob): Promise<void>;
  /** Leases up to `limit` jobs that are due, the one that has been for longest first. A new one is due when it was received. */
  claim(limit: number, leaseUntil: number, now: number): Promise<ClaimedJob[]>;
  /** Ends a worker's hold on a job. False if it no longer had the job; then nothing is changed. */
  settle(job: ClaimedJob, settlement: Settlement): Promise<boolean>;
  /** Drops jobs that were done before a time, `limit` at most; tells how many. Dead ones stay, for people to look at. */
  purge(before: number, limit?: number): Promise<number>;
  /**
   * Runs a handler whose writes and the end of its job happen together or not at all: what it throws undoes both. Inboxes
   * without transactions have no such method.
   */
  transaction?<T>(run: (transaction: InboxTransaction) => Promise<T>): Promise<T>;
}

export interface InboxTransaction {
  /** What the handler writes with. */
  readonly handle: unknown;
  settle(job: ClaimedJob, settlement: Settlement): Promise<boolean>;
}

/** How a worker's hold on a job ends. */
export interface Settlement {
  /** Done, given up, or waiting for another attempt. */
  readonly state: "done" | "dead" | "waiting";
  /** When it ended, or when it is due again. */
  readonly at: number;
  /** Kept for people. */
  readonly reason: string;
  /** The worker was stopped: it costs the job no attempt. */
  readonly interrupted?: boolean;
}

export interface JobOptions {
  /** What duplicates share. Defaults to the digest of principal, address and key. */
  readonly id?: string;
  readonly replaces?: number;
}

export async function inboxJob(delivery: Delivery, options: JobOptions = {}): Promise<InboxJob> {
  const stored = storedDelivery(delivery);
  return {
    id: options.id ?? (await scopeOf(delivery.principal, normalizedUri(splitUri(delivery.url)), delivery.key)),
    name: "process-webhook",
    data: {
      event_id: delivery.eventId,
      event_type: delivery.eventType,
      payload: strictText(delivery.body) === undefined ? stored.body : (jsonObject(delivery.body) ?? stored.body),
      received_at: stored.received_at,
    },
    delivery: stored,
    ...(options.replaces === undefined ? {} : { replaces: options.replaces }),
  };
}

/**
 * An inbox over a queue of your own, such as `(name, data, id) => queue.add(name, data, { jobId: id })`. The function must
 * resolve only when the job is safe; your queue's worker restores the delivery with `restoredDelivery(data.delivery)`.
 */
export function queueInbox(
  add: (name: InboxJob["name"], data: InboxJob["data"] & { readonly delivery: StoredDelivery }, id: string) => Promise<unknown>,
): Pick<Inbox, "enqueue"> {
  return {
    async enqueue(job) {
      await add(job.name, { ...job.data, delivery: job.delivery }, job.id);
    },
  };
}
