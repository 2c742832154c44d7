/**
 * The inbox: deliveries that are acknowledged and not processed yet. A delivery is in it before its sender gets a 2xx, and
 * leaves it when a worker has dealt with it.
 *
 *   enqueue ─► waiting ─► claimed (leased by a worker) ─┬─► done
 *                 ▲                                     ├─► dead: refused by the handler, or out of attempts
 *                 └──── later: failed, or lease over ◄──┘
 *
 * A job's id is the scope of its delivery, so enqueueing twice (a crash between inbox and acknowledgement) makes one job.
 */
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
    /** The payload as JSON, where it is an object; else its text in base64. */
    readonly payload: unknown;
    readonly received_at: string;
  };
  /** The whole delivery, from which a worker makes it again. */
  readonly delivery: StoredDelivery;
}

export interface ClaimedJob extends InboxJob {
  /** 1 for the first. */
  readonly attempt: number;
  /** What proves the worker. */
  readonly token: string;
}

/** Times are milliseconds since 1970. Every method is one atomic step. */
export interface Inbox {
  /** Keeps a job durably; resolves when it is safe. A job that is known already is left as it is. */
  enqueue(job: InboxJob): Promise<void>;
  /** Leases up to `limit` jobs that are due, oldest first. */
  claim(limit: number, leaseUntil: number, now: number): Promise<ClaimedJob[]>;
  /** Marks a job done. It stays known until it is purged. */
  done(job: ClaimedJob, now: number): Promise<void>;
  /** Puts a job back until a time. */
  later(job: ClaimedJob, dueAt: number, reason: string): Promise<void>;
  /** Gives a job up. It stays, with the reason, for people to look at. */
  dead(job: ClaimedJob, reason: string, now: number): Promise<void>;
  /** Drops jobs that were done before a time; tells how many. */
  purge(before: number): Promise<number>;
}

export async function inboxJob(delivery: Delivery): Promise<InboxJob> {
  const stored = storedDelivery(delivery);
  const id = await scopeOf(delivery.principal, normalizedUri(splitUri(delivery.url)), delivery.key);
  return {
    id,
    name: "process-webhook",
    data: {
      event_id: delivery.eventId,
      event_type: delivery.eventType,
      payload: jsonObject(delivery.body) ?? stored.body,
      received_at: stored.received_at,
    },
    delivery: stored,
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
