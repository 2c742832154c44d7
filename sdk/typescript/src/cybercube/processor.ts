/**
 * The idempotent processor of CYBERCUBE's standard, section 6.2: look up, lock, handle, mark; on an error release the
 * lock, so that a retry can process the event. For applications that verify with {@link CybercubeWebhooks} themselves; a
 * `receiver` does all of this already.
 */
import { jsonAnswer } from "../profiles/answers.js";
import { day, type Answer } from "../profiles/profile.js";
import type { WebhookEvent } from "./webhooks.js";

export interface ProcessedEvent {
  event_id: string;
  processed_at: Date;
  result: string;
}

export type ProcessingResult =
  | { status: "duplicate"; original: ProcessedEvent }
  | { status: "concurrent"; message: string }
  | { status: "processed"; result: string };

/** Stores processed events. Every method is one atomic step, also across processes (CCW-IDM-7). */
export interface ProcessedEvents {
  get(eventId: string): Promise<ProcessedEvent | undefined>;
  /** Takes the lock; undefined if another holder has it or the event is processed. The token identifies the holder. */
  lock(event: Pick<WebhookEvent, "id" | "type">, now: Date, expiredBefore: Date): Promise<string | undefined>;
  /** Keeps the result. False, and nothing is kept, if the holder has lost the lock. */
  markProcessed(eventId: string, token: string, result: string, now: Date): Promise<boolean>;
  releaseLock(eventId: string, token: string): Promise<void>;
  /** Drops at most `limit` events received before a time; returns how many. */
  cleanup(before: Date, limit?: number): Promise<number>;
}

/** Handles one type of event; its result is kept. */
export type EventHandler = (object: WebhookEvent["data"]["object"], event: WebhookEvent) => Promise<string | void> | string | void;

export interface ProcessorOptions {
  readonly events: ProcessedEvents;
  /** Handlers by type of event. Other types are acknowledged with the result `unhandled` (CCW-IDM-12). */
  readonly handlers: Readonly<Record<string, EventHandler>>;
  /** How long a lock holds, in seconds. Defaults to 300 (CCW-IDM-6). */
  readonly lockSeconds?: number;
  /** How long events are remembered, in seconds. Defaults to 30 days; the floor is 7 (CCW-IDM-9). */
  readonly retentionSeconds?: number;
  /** Milliseconds since 1970. Defaults to Date.now. */
  readonly clock?: () => number;
}

export class WebhookProcessor {
  readonly #options: ProcessorOptions;
  readonly #clock: () => number;
  readonly #retention: number;

  constructor(options: ProcessorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
    this.#retention = options.retentionSeconds ?? 30 * day;
    if (!(this.#retention >= 7 * day)) throw new Error("events must be remembered for 7 days at least");
    if (!((options.lockSeconds ?? 300) > 0)) throw new Error("a lock has to hold for some time");
  }

  async processWebhook(event: WebhookEvent): Promise<ProcessingResult> {
    const { events, lockSeconds = 300 } = this.#options;
    if (typeof event.id !== "string" || event.id === "") throw new Error("the event has no id"); // it could not be deduplicated
    const original = await events.get(event.id);
    if (original !== undefined) return { status: "duplicate", original };
    const now = this.#clock();
    const token = await events.lock(event, new Date(now), new Date(now - lockSeconds * 1000));
    if (token === undefined) return this.#contended(event);
    let result: string;
    try {
      result = await this.#handle(event);
    } catch (error) {
      await events.releaseLock(event.id, token).catch(() => undefined); // it ends by itself
      throw error;
    }
    // The effect has happened. If the result cannot be kept, the lock stays, so that a retry does not repeat the effect
    // at once.
    const kept = await events.markProcessed(event.id, token, result, new Date(this.#clock()));
    if (!kept) throw new Error("the lock was lost while the event was handled");
    return { status: "processed", result };
  }

  /** Another process has it, or has just finished it. */
  async #contended(event: WebhookEvent): Promise<ProcessingResult> {
    const original = await this.#options.events.get(event.id);
    if (original !== undefined) return { status: "duplicate", original };
    return { status: "concurrent", message: "Event being processed" };
  }

  async #handle(event: WebhookEvent): Promise<string> {
    const { handlers } = this.#options;
    const handler = Object.hasOwn(handlers, event.type) ? handlers[event.type] : undefined;
    if (handler === undefined) return "unhandled";
    const result = await handler(event.data.object, event);
    return typeof result === "string" ? result : "ok";
  }

  /** Drops events older than the retention, in small steps; returns how many. */
  async cleanup(): Promise<number> {
    const step = 1000;
    for (let total = 0; ; ) {
      const dropped = await this.#options.events.cleanup(new Date(this.#clock() - this.#retention * 1000), step);
      total += dropped;
      if (dropped < step) return total;
    }
  }
}

/** The response: 200 for a processed event; 503 for one that is being processed, so that the sender retries. */
export function processingAnswer(event: Pick<WebhookEvent, "id">, result: ProcessingResult): Answer {
  if (result.status === "concurrent") return jsonAnswer(503, { error: result.message }, { "retry-after": "1" });
  return jsonAnswer(200, { received: true, event_id: event.id });
}
