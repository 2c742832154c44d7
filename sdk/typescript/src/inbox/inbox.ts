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

/** The data of a job: the four members are CYBERCUBE's (CCW-RCV-7). */
export interface InboxJob {
  readonly id: string;
  readonly name: "process-webhook";
  readonly data: {
    readonly event_id: string;
    readonly event_type: string;
    /** The payload as JSON if it is an object in UTF-8; else its bytes in base64. */
    readonly payload: unknown;
    readonly received_at: string;
  };
  /** The whole delivery, which a worker restores. */
  readonly delivery: StoredDelivery;
  /**
   * The start of the deduplication window, in milliseconds since 1970: a job with the same id that ended before it
   * belongs to another event, and is replaced. Defaults to never.
   */
  readonly replaces?: number;
}

export interface ClaimedJob extends InboxJob {
  /** 1 for the first. */
  readonly attempt: number;
  /** Identifies the worker. */
  readonly token: string;
}

/** Times are milliseconds since 1970. Every method is one atomic step. */
export interface Inbox {
  /** Stores a job; resolves when it is durable. A known job is left as it is, unless it is replaced. */
  enqueue(job: InboxJob): Promise<void>;
  /** Leases up to `limit` due jobs, the longest due first. A new job is due when it was received. */
  claim(limit: number, leaseUntil: number, now: number): Promise<ClaimedJob[]>;
  /** Ends a worker's hold on a job. False, and nothing is changed, if the worker no longer has the job. */
  settle(job: ClaimedJob, settlement: Settlement): Promise<boolean>;
  /** Drops at most `limit` jobs that were done before a time; returns how many. Dead jobs stay for inspection. */
  purge(before: number, limit?: number): Promise<number>;
  /**
   * Runs a handler whose writes and the end of its job are committed together or not at all: an exception rolls both
   * back. Inboxes without transactions have no such method.
   */
  transaction?<T>(run: (transaction: InboxTransaction) => Promise<T>): Promise<T>;
}

export interface InboxTransaction {
  /** The handler's access to the transaction. */
  readonly handle: unknown;
  settle(job: ClaimedJob, settlement: Settlement): Promise<boolean>;
}

/** How a worker's hold on a job ends. */
export interface Settlement {
  /** Done, dead, or waiting for another attempt. */
  readonly state: "done" | "dead" | "waiting";
  /** When it ended, or when it is due again. */
  readonly at: number;
  /** Kept for inspection. */
  readonly reason: string;
  /** The worker was stopped; the job does not lose an attempt. */
  readonly interrupted?: boolean;
}

export interface JobOptions {
  /** The value that duplicates share. Defaults to the digest of principal, address and key. */
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
 * An inbox over your own queue, such as `(name, data, id) => queue.add(name, data, { jobId: id })`. The function must
 * resolve only when the job is durable; your queue's worker restores the delivery with
 * `restoredDelivery(data.delivery)`.
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
