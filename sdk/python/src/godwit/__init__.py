"""Receive webhooks rightly: verify, deduplicate, answer. And a client of Godwit's native API (`godwit.client`).

from godwit import Cybercube, Receiver
from godwit.wsgi import WebhookApp

application = WebhookApp(Receiver(Cybercube(os.environ["WEBHOOK_SECRET"]), handle))
"""

from .cybercube.processed import MemoryProcessedEvents, RedisProcessedEvents, SqlProcessedEvents
from .cybercube.processor import (
    Concurrent,
    Duplicate,
    EventHandler,
    Processed,
    ProcessedEvent,
    ProcessedEvents,
    ProcessingResult,
    WebhookProcessor,
    processing_answer,
)
from .cybercube.source import SourceDocument, is_allowed_source
from .cybercube.validate import validate_cybercube_event
from .cybercube.webhooks import (
    CybercubeWebhooks,
    VerificationResult,
    WebhookEvent,
    sign_webhook,
    verify_webhook_signature,
)
from .errors import DeliveryError, IncompleteBodyError, SignatureReason, WebhookSignatureError
from .headers import Headers, HeadersLike
from .idempotency import KeyPolicy
from .ids import event_id_to_base32, event_id_to_uuid, is_public_id
from .inbox.inbox import ClaimedJob, Enqueues, Inbox, InboxJob, JobTransactor, QueueInbox, inbox_job
from .inbox.memory import MemoryInbox
from .inbox.sql import SqlInbox
from .inbox.worker import InboxWorker
from .ordering import NewestBySubject, sort_by_time, time_of
from .profiles.cybercube import Cybercube
from .profiles.eds import Eds, EdsKey
from .profiles.ojs import Ojs
from .profiles.paypal import PayPal
from .profiles.profile import Answer, Authentication, Check, Identity, Message, Profile
from .profiles.standard_webhooks import StandardWebhooks
from .profiles.twilio import Twilio
from .profiles.vendors import GitHub, Shopify, Slack, Stripe
from .ratelimit import RateLimiter, RateLimitVerdict
from .receiver.delivery import Delivery, restored_delivery
from .receiver.exchange import Request
from .receiver.hooks import Hooks, LoggingHooks, Receipt, ResultReport, VerificationFailure
from .receiver.receiver import Receiver, verify
from .receiver.result import Accepted, Reject, Result, RetryAfter
from .receiver.settings import Handler, HandlerContext, redis_of, sql_of
from .stores.database import Database, PostgresDatabase, SqliteDatabase, Transaction
from .stores.memory import MemoryStore
from .stores.redis import RedisClient, RedisQueue, RedisStore
from .stores.sql import SqlStore
from .stores.store import LeaseLostError, Outcome, Reservation, Store, Transactor

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "Answer",
    "Authentication",
    "Check",
    "ClaimedJob",
    "Concurrent",
    "Cybercube",
    "CybercubeWebhooks",
    "Database",
    "Delivery",
    "DeliveryError",
    "Duplicate",
    "Eds",
    "EdsKey",
    "Enqueues",
    "EventHandler",
    "GitHub",
    "Handler",
    "HandlerContext",
    "Headers",
    "HeadersLike",
    "Hooks",
    "Identity",
    "Inbox",
    "InboxJob",
    "InboxWorker",
    "IncompleteBodyError",
    "JobTransactor",
    "KeyPolicy",
    "LeaseLostError",
    "LoggingHooks",
    "MemoryInbox",
    "MemoryProcessedEvents",
    "MemoryStore",
    "Message",
    "NewestBySubject",
    "Ojs",
    "Outcome",
    "PayPal",
    "PostgresDatabase",
    "Processed",
    "ProcessedEvent",
    "ProcessedEvents",
    "ProcessingResult",
    "Profile",
    "QueueInbox",
    "RateLimitVerdict",
    "RateLimiter",
    "Receipt",
    "Receiver",
    "RedisClient",
    "RedisProcessedEvents",
    "RedisQueue",
    "RedisStore",
    "Reject",
    "Request",
    "Reservation",
    "Result",
    "ResultReport",
    "RetryAfter",
    "Shopify",
    "SignatureReason",
    "Slack",
    "SourceDocument",
    "SqlInbox",
    "SqlProcessedEvents",
    "SqlStore",
    "SqliteDatabase",
    "StandardWebhooks",
    "Store",
    "Stripe",
    "Transaction",
    "Transactor",
    "Twilio",
    "VerificationFailure",
    "VerificationResult",
    "WebhookEvent",
    "WebhookProcessor",
    "WebhookSignatureError",
    "event_id_to_base32",
    "event_id_to_uuid",
    "inbox_job",
    "is_allowed_source",
    "is_public_id",
    "processing_answer",
    "redis_of",
    "restored_delivery",
    "sign_webhook",
    "sort_by_time",
    "sql_of",
    "time_of",
    "validate_cybercube_event",
    "verify",
    "verify_webhook_signature",
]
