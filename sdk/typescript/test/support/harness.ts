/** A receiver under test: it counts what its handler did and remembers what its hooks were told. */
import {
  eds,
  memoryStore,
  receiver,
  type Delivery,
  type Duplicate,
  type EdsKey,
  type Handler,
  type Profile,
  type Receiver,
  type ReceiverOptions,
  type ResultReport,
  type Store,
  type VerificationFailure,
} from "@godwit/receiver";
import { asRequest, edsSecretText, type Signed } from "./sign.js";

export interface Harness {
  readonly receiver: Receiver;
  readonly deliveries: Delivery[];
  readonly log: {
    readonly receipts: unknown[];
    readonly failures: VerificationFailure[];
    readonly duplicates: Duplicate[];
    readonly results: ResultReport[];
    readonly errors: [unknown, string][];
    readonly warnings: string[];
    readonly counts: string[];
  };
  post(signed: Signed): Promise<Response>;
}

export const edsKey: EdsKey = { id: "key-1", principal: "orders", secret: edsSecretText };

export function edsProfile(options: Partial<Parameters<typeof eds>[0]> = {}): Profile {
  return eds({ keys: [edsKey], ...options });
}

export function harness(options: Partial<ReceiverOptions> & { handle?: Handler } = {}): Harness {
  const { handle, ...rest } = options;
  const deliveries: Delivery[] = [];
  const log: Harness["log"] = { receipts: [], failures: [], duplicates: [], results: [], errors: [], warnings: [], counts: [] };
  const made = receiver({
    profile: edsProfile(),
    ...(rest.inbox === undefined
      ? {
          handler: (delivery, context) => {
            deliveries.push(delivery);
            return handle?.(delivery, context);
          },
        }
      : {}),
    hooks: {
      onReceipt: (receipt) => log.receipts.push(receipt),
      onVerificationFailure: (failure) => log.failures.push(failure),
      onDuplicate: (duplicate) => log.duplicates.push(duplicate),
      onResult: (result) => log.results.push(result),
      onError: (error, where) => log.errors.push([error, where]),
      onWarning: (message) => log.warnings.push(message),
      count: (metric) => log.counts.push(metric),
    },
    ...rest,
  });
  return { receiver: made, deliveries, log, post: (signed) => made.fetch(asRequest(signed)) };
}

/** A clock that stands until it is set. */
export function standingClock(ms = Date.now()): (() => number) & { advance(seconds: number): void } {
  let now = ms;
  return Object.assign(() => now, {
    advance(seconds: number) {
      now += seconds * 1000;
    },
  });
}

/** A promise to be kept from outside. */
export function gate<T = void>(): { readonly opened: Promise<T>; open(value: T): void } {
  let open!: (value: T) => void;
  const opened = new Promise<T>((resolve) => (open = resolve));
  return { opened, open };
}

/** A store that counts its calls, and fails those that it is told to. */
export function spiedStore(failing: Partial<Record<keyof Store, boolean>> = {}): Store & { readonly calls: string[] } {
  const inner = memoryStore();
  const calls: string[] = [];
  const spied = (name: keyof Store) =>
    (...args: unknown[]): Promise<never> => {
      calls.push(name);
      if (failing[name]) return Promise.reject(new Error("store is down"));
      return (inner[name] as (...a: unknown[]) => Promise<never>)(...args);
    };
  return {
    calls,
    reserve: spied("reserve"),
    complete: spied("complete"),
    release: spied("release"),
    remember: spied("remember"),
    purge: spied("purge"),
  };
}
