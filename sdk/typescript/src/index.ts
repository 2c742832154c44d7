/** The core: it uses only Web interfaces and runs wherever they exist. */
export { receiver, verify, asResponse, type Receiver, type RequestFacts, type VerifyOptions } from "./receiver/create.js";
export { IncompleteBodyError, readStream, type Incoming, type RequestLike } from "./receiver/incoming.js";
export { accepted, reject, retryAfter, type Accepted, type AcceptedOptions, type Reject, type Result, type RetryAfter } from "./receiver/result.js";
export { redisOf, sqlOf } from "./receiver/settings.js";
export type { DedupOptions, FreshnessOptions, Handler, HandlerContext, ReceiverOptions } from "./receiver/settings.js";
export type { Duplicate, Hooks, Receipt, ResultReport, VerificationFailure } from "./receiver/hooks.js";
export { Delivery, restoredDelivery, storedDelivery, type StoredDelivery } from "./receiver/delivery.js";
export { DeliveryError, WebhookSignatureError, type SignatureReason } from "./errors.js";
export { Fields, type HeadersLike } from "./fields.js";

export type { Answer, Authentication, Check, Identity, KeyPolicy, Message, Profile } from "./profiles/profile.js";
export type { Secrets, SharedSecretOptions } from "./profiles/secrets.js";
export { eds, type EdsKey, type EdsOptions } from "./profiles/eds.js";
export { ojs } from "./profiles/ojs.js";
export { cybercube } from "./profiles/cybercube.js";
export { standardWebhooks, type StandardWebhooksOptions } from "./profiles/standardwebhooks.js";
export { github, shopify, slack, stripe } from "./profiles/vendors.js";
export { twilio } from "./profiles/twilio.js";
export { paypal, type PayPalOptions } from "./profiles/paypal.js";

export type { CompleteRequest, Outcome, Reservation, ReserveRequest, Store, StoreTransaction } from "./stores/store.js";
export { memoryStore, type MemoryStoreOptions } from "./stores/memory.js";
export { redisStore, type RedisClient, type RedisQueue, type RedisStoreOptions } from "./stores/redis.js";
export { sqlStore, sqlStoreSchema, type SqlStoreOptions } from "./stores/sqlstore.js";
export type { SqlDialect, SqlOptions, SqlQuery, SqlRow, SqlValue } from "./stores/sql.js";

export { inboxJob, queueInbox, type ClaimedJob, type Inbox, type InboxJob, type InboxTransaction, type JobOptions, type Settlement } from "./inbox/inbox.js";
export { memoryInbox } from "./inbox/memory.js";
export { sqlInbox, sqlInboxSchema, type SqlInboxOptions } from "./inbox/sql.js";
export { inboxWorker, type Worker, type WorkerOptions } from "./inbox/worker.js";

export {
  CybercubeWebhooks,
  signWebhook,
  verifyWebhookSignature,
  type ConstructOptions,
  type VerificationResult,
  type WebhookEvent,
} from "./cybercube/webhooks.js";
export {
  processingAnswer,
  WebhookProcessor,
  type EventHandler,
  type ProcessedEvent,
  type ProcessedEvents,
  type ProcessingResult,
  type ProcessorOptions,
} from "./cybercube/processor.js";
export {
  memoryProcessedEvents,
  processedEventsSchema,
  redisProcessedEvents,
  sqlProcessedEvents,
  type RedisProcessedOptions,
  type SqlProcessedOptions,
} from "./cybercube/processed.js";
export { validateCybercubeEvent } from "./cybercube/validate.js";
export { isAllowedSource, type SourceDocument } from "./cybercube/source.js";
export { rateLimit, RateLimiter, type RateLimitOptions, type RateLimitVerdict } from "./ratelimit.js";
export { byTime, NewestBySubject, sortByTime, type TimedEvent } from "./ojs.js";
export { eventIdToBase32, eventIdToUuid, isPublicId } from "./ids.js";
