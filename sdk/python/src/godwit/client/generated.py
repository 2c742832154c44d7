# Made by scripts/generate_client.py from spec/openapi.json; do not edit.
"""The native API of a Godwit server: its types, and a method for each operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypedDict, Union

from .transport import Payload, Transport, path_segment


class _AcceptedRequired(TypedDict):
    created_at: str
    deliveries: int
    """How many endpoints it goes to; for a broadcast so far"""
    id: str
    """Id of the event; of the broadcast, if the request names several tenants"""
    idempotency_key: str
    """Goes with every attempt to deliver the event. Each event of a broadcast has a key of its own"""


class Accepted(_AcceptedRequired, total=False):
    broadcast: Broadcast
    """If the request names several tenants, or all"""


class Acknowledgment(TypedDict):
    actor: str
    """Id of the API key that recorded it"""
    at: str
    by: str
    """Who acknowledged it"""
    id: str
    version: str
    """Of the service description"""


class ActiveAgreement(TypedDict):
    covers: list[str]
    """What rests on it, as in statuses.404, multi_status, method"""
    document: str
    visible_to_both: bool


class Affected(TypedDict):
    dead_letters: int
    """How many dead letters would go"""
    endpoints: list[AffectedEndpoint]
    """Whose they are; the endpoint with the most comes first"""
    more: bool
    """There may be more that match; one request removes up to its limit"""


class AffectedEndpoint(TypedDict):
    dead_letters: int
    id: str


class Agreement(TypedDict):
    document: str
    visible_to_both: bool


class AgreementPatch(TypedDict, total=False):
    document: Union[str, None]
    visible_to_both: Union[bool, None]


class _AskedRequired(TypedDict):
    command_id: str
    """For the header Godwit-Command"""
    confirmation_token: str
    """For the header Godwit-Confirmation. It is shown this once, and is good for this request alone."""
    expires_at: str
    """Until when it can be confirmed"""
    status: Literal["awaiting_confirmation"]
    """Nothing was done"""


class Asked(_AskedRequired, total=False):
    affects: Affected
    """purge-dead-letters: what would go if it were confirmed now"""
    step_up_url: str
    """Where another API key has to approve first: POST with that key"""


class _AttemptRequired(TypedDict):
    delivery_id: str
    duration_ms: float
    endpoint_id: str
    event_id: str
    id: str
    n: int
    """1 for the first, over all runs"""
    outcome: Literal["accepted", "transient", "terminal"]
    reason: str
    started_at: str
    trace: Trace
    """What was seen, for people who ask what happened"""
    trigger: str
    url: str


class Attempt(_AttemptRequired, total=False):
    failure_class: Literal["transport", "application"]
    next_at: str
    """When the next attempt is due"""
    receiver_state: Literal["unknown"]
    """unknown: the receiver may or may not have got it"""
    request: AttemptRequest
    """The request as it was sent, secrets masked. Of acknowledged attempts a busy server keeps it of a sample"""
    response: AttemptResponse
    """The response as it was received; absent if there was none"""
    retry_after_seconds: float
    """Least wait that the receiver asked for"""
    status: int
    """HTTP status; absent when none arrived"""
    timing: AttemptTiming
    """Where the time went; absent if it was not measured"""


class AttemptRequest(TypedDict):
    headers: list[HeaderField]
    url: str


class AttemptResponse(TypedDict):
    body: str
    """Up to 4 KiB"""
    headers: list[HeaderField]
    """Kept where those of the request are"""
    status: int
    truncated: bool
    """There is more of the body"""


class AttemptTiming(TypedDict):
    connect_ms: float
    dns_ms: float
    """To resolve the name; 0 if the connection was used before"""
    first_byte_ms: float
    """From the first byte of the request to the first of the response"""
    tls_ms: float
    total_ms: float
    """Of the whole attempt; more than the parts together by the reading of the response"""


class _AuthRequired(TypedDict):
    kind: Literal["bearer", "basic", "oauth2", "mtls"]


class Auth(_AuthRequired, total=False):
    audience: str
    """oauth2"""
    certificate_pem: str
    """mtls: the client's certificate chain"""
    client_id: str
    """oauth2"""
    client_secret: str
    """oauth2"""
    password: str
    """basic"""
    private_key_pem: str
    """mtls: its key"""
    scopes: list[str]
    """oauth2"""
    token: str
    """bearer: the token"""
    token_url: str
    """oauth2: where tokens are fetched, by client credentials"""
    username: str
    """basic"""


class _AuthPatchRequired(TypedDict):
    kind: Literal["bearer", "basic", "oauth2", "mtls"]


class AuthPatch(_AuthPatchRequired, total=False):
    audience: str
    """oauth2"""
    certificate_pem: str
    """mtls: the client's certificate chain"""
    client_id: str
    """oauth2"""
    client_secret: str
    """oauth2"""
    password: str
    """basic"""
    private_key_pem: str
    """mtls: its key"""
    scopes: list[str]
    """oauth2"""
    token: str
    """bearer: the token"""
    token_url: str
    """oauth2: where tokens are fetched, by client credentials"""
    username: str
    """basic"""


class _BatchItemRequired(TypedDict):
    index: int
    status: Literal["accepted", "replayed", "refused"]


class BatchItem(_BatchItemRequired, total=False):
    created_at: str
    deliveries: int
    id: str
    idempotency_key: str
    problem: Any
    """Problem details of a refused event"""


class BatchResult(TypedDict):
    items: list[BatchItem]


class _BroadcastRequired(TypedDict):
    accepted: int
    """How many of them have their event"""
    all_tenants: bool
    """For all tenants that had an endpoint for it when it was accepted; otherwise the request named them"""
    content_type: str
    created_at: str
    deliveries: int
    """Of the events so far"""
    id: str
    principal: str
    """Who posted it"""
    skipped: int
    """How many of them get none"""
    state: Literal["running", "ended"]
    tenants: int
    """How many tenants it is for, fixed when it was accepted"""
    type: str


class Broadcast(_BroadcastRequired, total=False):
    ended_at: str
    items: list[BroadcastTenant]
    """Only in the answer to the post: the result of each tenant, if they are at most 100 and all have one"""


class _BroadcastTenantRequired(TypedDict):
    status: Literal["accepted", "skipped"]
    tenant_id: str


class BroadcastTenant(_BroadcastTenantRequired, total=False):
    detail: str
    event_id: str
    reason: Literal["invalid", "limit", "tenant-deleted"]
    """Why the tenant gets no event: the schema of its own type, or a limit, refuses it; or the tenant was deleted
    meanwhile
    """
    uid: str
    """The tenant's own id"""


class BulkCancel(TypedDict, total=False):
    all: bool
    """true: all deliveries of the tenant. Required where neither ids nor a filter is given, and refused beside one."""
    cursor: str
    """next_cursor of the request before"""
    dry_run: bool
    """true: change nothing, and count all that match, up to 10,000; with type, among the newest 5,000 of each status"""
    endpoint: str
    """Only to this endpoint"""
    event: str
    """Only of this event"""
    ids: list[str]
    """These deliveries, whatever their status. Goes with no filter."""
    limit: int
    """How many at most in this request"""
    since: str
    """Created at or after"""
    type: str
    """Only events of this type"""
    until: str
    """Created before"""


class _BulkChangedRequired(TypedDict):
    changed: int
    """How many this request changed; 0 with dry_run. Those that had changed meanwhile, or are under way at this
    moment, are left alone.
    """
    matched: int
    """How many match: of all with dry_run, else of those that this request looked at"""
    more: bool
    """There are more: with dry_run, matched is a lower bound; else send the request again with next_cursor"""


class BulkChanged(_BulkChangedRequired, total=False):
    next_cursor: str
    """For cursor of the next request"""


class BulkReplay(TypedDict, total=False):
    all: bool
    """true: every dead letter of the tenant. Required where no filter is given, and refused beside one."""
    cursor: str
    """next_cursor of the request before"""
    endpoint: str
    """Only of this endpoint"""
    limit: int
    """How many at most in this request"""
    reason: str
    """Only with this reason"""
    since: str
    """Dead at or after"""
    status: Literal["terminal", "exhausted"]
    type: str
    """Only events of this type"""
    until: str
    """Dead before"""


class _BulkReplayedRequired(TypedDict):
    replayed: int
    """Deliveries that were started again"""


class BulkReplayed(_BulkReplayedRequired, total=False):
    next_cursor: str
    """There may be more: send the same request with this cursor"""


class BulkRetry(TypedDict, total=False):
    all: bool
    """true: all deliveries of the tenant. Required where neither ids nor a filter is given, and refused beside one."""
    cursor: str
    """next_cursor of the request before"""
    dry_run: bool
    """true: change nothing, and count all that match, up to 10,000; with type, among the newest 5,000 of each status"""
    endpoint: str
    """Only to this endpoint"""
    event: str
    """Only of this event"""
    ids: list[str]
    """These deliveries, whatever their status. Goes with no filter."""
    limit: int
    """How many at most in this request"""
    since: str
    """Created at or after"""
    status: Literal["pending", "accepted", "terminal", "exhausted", "cancelled"]
    """Only those with this status. Absent: pending, terminal and exhausted ones, which is what has not arrived."""
    type: str
    """Only events of this type"""
    until: str
    """Created before"""


class DayUsage(TypedDict):
    attempts: int
    """Attempts to deliver, of any outcome"""
    bytes_accepted: int
    """Payloads of the events, as they are stored"""
    bytes_sent: int
    """Bodies of the requests to endpoints, one for each attempt"""
    day: str
    """UTC"""
    deliveries: int
    """Deliveries made: one for each endpoint that an event goes to"""
    events: int
    """Events accepted; the repeat of a request counts no second time"""


class _DeadLetterRequired(TypedDict):
    dead_at: str
    delivery: Delivery
    event: Event


class DeadLetter(_DeadLetterRequired, total=False):
    last_detail: str
    """One line about the last attempt"""
    replayed_at: str
    """When it was sent again. If that fails for good too, there is a new dead letter."""


class DeadLetterGroup(TypedDict):
    count: int
    endpoint_id: str
    last_at: str
    """When the latest of them ended"""
    reason: str


class DeadLetterGroups(TypedDict):
    counted: int
    """Dead letters that were counted, also those of groups that are left out"""
    items: list[DeadLetterGroup]
    """The largest group first, 200 at most"""
    more: bool
    """There are more dead letters: the newest 10,000 were counted"""


class _DeliveryRequired(TypedDict):
    attempt_count: int
    """Attempts made so far"""
    created_at: str
    endpoint_id: str
    event_id: str
    id: str
    run: Run
    status: Literal["pending", "accepted", "terminal", "exhausted", "cancelled"]
    """accepted: the receiver acknowledged the request, and nothing more"""
    updated_at: str


class Delivery(_DeliveryRequired, total=False):
    due_at: str
    """When the next attempt is due"""
    event_type: str
    """Absent when the event was removed at the end of its retention"""
    last_status: int
    """HTTP status of the last attempt"""
    reason: str
    """Why it is where it is"""


class _DeliveryDetailRequired(TypedDict):
    attempt_count: int
    """Attempts made so far"""
    attempts: list[Attempt]
    """First to last"""
    created_at: str
    endpoint_id: str
    event_id: str
    id: str
    run: Run
    status: Literal["pending", "accepted", "terminal", "exhausted", "cancelled"]
    """accepted: the receiver acknowledged the request, and nothing more"""
    updated_at: str


class DeliveryDetail(_DeliveryDetailRequired, total=False):
    due_at: str
    """When the next attempt is due"""
    event_type: str
    """Absent when the event was removed at the end of its retention"""
    last_status: int
    """HTTP status of the last attempt"""
    reason: str
    """Why it is where it is"""


class DeliveryItems(TypedDict):
    items: list[Delivery]


class _DownstreamRequired(TypedDict):
    delivery: str
    """Id of the delivery"""
    outcome: Literal["pending", "terminal", "exhausted"]


class Downstream(_DownstreamRequired, total=False):
    reason: str
    status: int
    """HTTP status of the endpoint's last answer"""


class EndedSessions(TypedDict):
    ended: int
    """How many sessions were ended"""


class _EndpointRequired(TypedDict):
    created_at: str
    description: str
    header_names: list[str]
    """Names of the custom headers; values are never shown"""
    id: str
    method: Literal["POST", "PUT"]
    patterns: list[str]
    policy: PolicyOverrides
    """Deviations from the profile"""
    profile: Literal["eds", "ojs", "cybercube", "standard-webhooks"]
    """Wire dialect; fixed at creation"""
    public_id: str
    """The same endpoint's short id, to be read aloud; taken wherever the id is"""
    signing: Literal["own", "environment"]
    """Whose keys sign: the endpoint's own secrets, or the environment's signing keys"""
    status: Literal["active", "paused", "disabled"]
    status_at: str
    tenant_id: str
    updated_at: str
    url: str
    version: int
    """Grows with every change"""


class Endpoint(_EndpointRequired, total=False):
    auth_kind: str
    """Kind of the credential; its values are never shown"""
    content_filter: dict[str, Any]
    """Conditions on the event's type, attributes, headers, source and body; see docs/filters.md"""
    filter: dict[str, list[str]]
    metadata: dict[str, Any]
    """Any JSON values"""
    reenable_at: str
    """While it is disabled by failures: when it is tried again"""
    status_reason: str
    uid: str
    """Chosen by the owner, unique in the tenant; taken wherever the id is"""


class _EndpointExplanationRequired(TypedDict):
    detail: str
    """The reason in a sentence"""
    matched: bool
    reason: Literal["matched", "event-type", "attribute", "content", "paused"]


class EndpointExplanation(_EndpointExplanationRequired, total=False):
    part: str
    """Of the reason content: the place in content_filter that said no, as in body.amount.$gte"""


class EndpointPatch(TypedDict, total=False):
    auth: Union[AuthPatch, None]
    """Replaced as a whole; null removes it"""
    content_filter: Union[dict[str, Any], None]
    """Replaced as a whole; null removes it"""
    description: Union[str, None]
    filter: Union[dict[str, Union[list[str], None]], None]
    headers: Union[dict[str, Union[str, None]], None]
    metadata: Union[dict[str, Any], None]
    """Any JSON values; null removes a member, or all of them"""
    method: Literal["POST", "PUT", None]
    patterns: Union[list[str], None]
    policy: Union[PolicyPatch, None]
    """null removes every deviation from the profile"""
    profile: str
    """Cannot change"""
    signing: Literal["own", "environment", None]
    """own needs a live secret of the endpoint's own: rotate first"""
    uid: Union[str, None]
    url: str


class _EndpointStatsRequired(TypedDict):
    agreements: list[ActiveAgreement]
    """What deviates from the status table or method by agreement with the receiver"""
    dead_letters: int
    """Deliveries that ended without being accepted; counted up to 1000"""
    dead_letters_capped: bool
    """There are more than were counted"""
    endpoint_id: str
    health: Health
    overrides: list[str]
    """Members of the policy that the endpoint overrides"""
    pending: int
    """Deliveries that wait or are under way"""
    policy: Policy
    """In force: the profile's defaults with the endpoint's overrides"""
    status: Literal["active", "paused", "disabled"]


class EndpointStats(_EndpointStatsRequired, total=False):
    reenable_at: str
    """While it is disabled by failures: when it is tried again"""
    status_reason: str


class _EnvironmentRequired(TypedDict):
    alert_emails: list[str]
    """Of tenants that do not say"""
    allowed_origins: list[str]
    """Origins of pages that may show the portal in a frame"""
    endpoint_signing: Literal["own", "environment"]
    """Whose keys sign for new endpoints that say nothing and whose profile allows it"""
    event_validation: Literal["", "known", "strict"]
    """Of tenants that do not say"""
    id: str
    limits: Limits
    """Of tenants that do not say"""
    live: bool
    """Shown to receivers, as livemode of CYBERCUBE events. Fixed when the environment is created"""
    make_tenants: bool
    """A request that changes something and names a tenant by a uid that there is not creates the tenant"""
    name: str
    require_idempotency_key: bool
    """Of tenants that do not say"""
    retention_dead_letters_seconds: int
    """How long dead letters are kept. 0: as long as the server keeps them"""
    retention_events_seconds: int
    """How long events, deliveries and attempts are kept once all deliveries of the event have ended. 0: as long as
    the server keeps them
    """
    uid: str
    """Chosen by the caller; names the environment wherever its id does"""
    version: int
    """Grows with every change"""


class Environment(_EnvironmentRequired, total=False):
    created_at: str
    """Absent on the one that every server has"""
    endpoint_policy: PolicyOverrides
    """Policy of new endpoints that give none"""
    endpoint_profile: str
    """Profile of new endpoints that name none. Absent: eds"""
    theme: Theme
    """Look of the portal"""
    updated_at: str


class _EnvironmentDocumentRequired(TypedDict):
    name: str


class EnvironmentDocument(_EnvironmentDocumentRequired, total=False):
    alert_emails: list[str]
    allowed_origins: list[str]
    """Origins of pages that may show the portal in a frame, as in https://app.example.com. Absent: none may"""
    endpoint_policy: PolicyOverrides
    endpoint_profile: Literal["", "eds", "ojs", "cybercube", "standard-webhooks"]
    endpoint_signing: Literal["own", "environment"]
    """Whose keys sign for new endpoints that say nothing: their own secrets, or the environment's keys if the
    profile is eds. Defaults to own.
    """
    event_validation: Literal["", "known", "strict"]
    limits: Limits
    """Of tenants that do not say. Absent: the server's"""
    live: bool
    make_tenants: bool
    require_idempotency_key: bool
    retention_dead_letters_seconds: int
    """At least 3600 and at most the server's retention. 0: the server's"""
    retention_events_seconds: int
    """At least 3600 and at most the server's retention. 0: the server's"""
    theme: Theme
    """Look of the portal"""
    uid: str
    """The one in the path"""


class EnvironmentPatch(TypedDict, total=False):
    alert_emails: list[str]
    """Replaced as a whole"""
    allowed_origins: list[str]
    """Replaced as a whole"""
    endpoint_policy: PolicyOverrides
    """Replaced as a whole"""
    endpoint_profile: Literal["", "eds", "ojs", "cybercube", "standard-webhooks"]
    endpoint_signing: Literal["own", "environment"]
    event_validation: Literal["", "known", "strict"]
    limits: Limits
    """Replaced as a whole"""
    live: bool
    """Cannot change"""
    make_tenants: bool
    name: str
    require_idempotency_key: bool
    retention_dead_letters_seconds: int
    retention_events_seconds: int
    theme: Theme
    """Replaced as a whole"""
    uid: str


class _EventRequired(TypedDict):
    content_type: str
    created_at: str
    id: str
    idempotency_key: str
    principal: str
    """Who posted it"""
    type: str


class Event(_EventRequired, total=False):
    attributes: dict[str, str]
    headers: list[EventHeader]
    """Header fields that go with every attempt as they came"""
    source_id: str
    """The source it came by, when it was relayed"""


class EventBatch(TypedDict):
    events: list[EventEnvelope]


class _EventDetailRequired(TypedDict):
    content_type: str
    created_at: str
    deliveries: list[Delivery]
    """The newest 200"""
    id: str
    idempotency_key: str
    principal: str
    """Who posted it"""
    size: int
    """Length of the payload in bytes"""
    type: str


class EventDetail(_EventDetailRequired, total=False):
    attributes: dict[str, str]
    headers: list[EventHeader]
    """Header fields that go with every attempt as they came"""
    source_id: str
    """The source it came by, when it was relayed"""


class _EventEnvelopeRequired(TypedDict):
    type: str


class EventEnvelope(_EventEnvelopeRequired, total=False):
    attributes: dict[str, str]
    """What endpoint filters look at"""
    content_type: str
    """Media type of the payload. Defaults to application/json for data and to application/octet-stream for
    data_base64.
    """
    data: Any
    """The payload: any JSON, delivered byte for byte as it stands here. Exactly one of data and data_base64 is
    required.
    """
    data_base64: str
    """A payload that is not JSON"""
    idempotency_key: str
    """In a batch: the key of this event. A single event has its key in the header."""


class _EventExplanationRequired(TypedDict):
    endpoints: list[Explanation]
    """The tenant's endpoints, newest first, and then deleted ones that the event went to"""


class EventExplanation(_EventExplanationRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class EventHeader(TypedDict):
    name: str
    value: str


class EventReplay(TypedDict, total=False):
    endpoints: list[str]
    """Only to these; absent: to all that it went to"""


class _EventTypeRequired(TypedDict):
    deprecated: bool
    description: str
    name: str
    shared: bool
    """All tenants of the environment have it"""


class EventType(_EventTypeRequired, total=False):
    compatibility: Literal["none", "backward", "forward", "full"]
    """What the next version of the schema must keep to"""
    created_at: str
    example: Any
    schema: Any
    """JSON Schema (draft 2020-12) in force: of the payload, or of the whole event where it is a standard's"""
    standard: Literal["ojs", "cybercube"]
    """The standard that it is built in from; absent on others"""
    updated_at: str
    version: int
    """Of the schema in force"""


class _EventTypeDetailRequired(TypedDict):
    deprecated: bool
    description: str
    name: str
    shared: bool
    """All tenants of the environment have it"""
    versions: list[SchemaVersion]
    """First to last; the last is in force"""


class EventTypeDetail(_EventTypeDetailRequired, total=False):
    compatibility: Literal["none", "backward", "forward", "full"]
    """What the next version of the schema must keep to"""
    created_at: str
    example: Any
    schema: Any
    """JSON Schema (draft 2020-12) in force: of the payload, or of the whole event where it is a standard's"""
    standard: Literal["ojs", "cybercube"]
    """The standard that it is built in from; absent on others"""
    updated_at: str
    version: int
    """Of the schema in force"""


class EventTypeDraft(TypedDict, total=False):
    compatibility: Literal["none", "backward", "forward", "full"]
    """What later versions of the schema must keep to. backward: events of this version are valid by the next.
    forward: events of the next are valid by this one, so that receivers written for it go on working. full: both.
    Members that a schema does not name are not compared. Absent: what is declared stays.
    """
    deprecated: bool
    """Producers should use another type. Nothing is refused for it."""
    description: str
    example: Any
    """A payload that fits the schema"""
    schema: Any
    """JSON Schema (draft 2020-12) of the payload. format is checked; nothing outside is fetched. Absent: the one in
    force stays.
    """


class ExplainRequest(TypedDict, total=False):
    attributes: dict[str, str]
    body: Any
    """Any JSON value"""
    content_filter: dict[str, Any]
    """A filter to try in place of the endpoint's own. It is checked, and not stored."""
    event: str
    """Id of a stored event. Without it, the event has the members type, attributes, headers, source and body."""
    headers: dict[str, str]
    """Kept header fields"""
    source: str
    """Id of the source that it came through"""
    type: str


class _ExplainedEndpointRequired(TypedDict):
    id: str
    status: Literal["active", "paused", "disabled", "deleted"]
    url: str


class ExplainedEndpoint(_ExplainedEndpointRequired, total=False):
    uid: str


class _ExplanationRequired(TypedDict):
    detail: str
    """The reason in a sentence"""
    endpoint: ExplainedEndpoint
    matched: bool
    """The event went to the endpoint, or is on its way"""
    reason: Literal["matched", "replayed", "changed", "held", "event-type", "attribute", "content", "paused", "created-later", "deleted", "under-way", "not-chosen"]


class Explanation(_ExplanationRequired, total=False):
    delivery: str
    """Id of the delivery"""
    part: str
    """Of the reason content: the place in content_filter that said no, as in body.amount.$gte"""
    state: Literal["pending", "accepted", "terminal", "exhausted", "cancelled"]
    """Status of the delivery"""


class _ExportedDeadLetterRequired(TypedDict):
    body_base64: str
    """The payload, byte for byte"""
    dead_at: str
    delivery: Delivery
    event: Event


class ExportedDeadLetter(_ExportedDeadLetterRequired, total=False):
    body_text: str
    """The payload as text, where it is valid UTF-8"""
    last_detail: str
    """One line about the last attempt"""
    replayed_at: str
    """When it was sent again. If that fails for good too, there is a new dead letter."""


class _FailureCauseRequired(TypedDict):
    advice: str
    """What to do about it"""
    cause: Literal["certificate", "dns", "timeout", "refused", "connect", "reset", "tls", "truncated", "protocol", "address", "redirect", "credential", "request", "server-error", "client-error", "response", "other"]
    count: int
    """Failed attempts"""
    endpoints: int
    """How many endpoints"""
    example_endpoint: str
    """Id of the endpoint with the most"""
    example_tenant: str
    """Id of its tenant"""
    first_at: str
    """First seen within the range"""
    last_at: str
    """Last seen within the range"""


class FailureCause(_FailureCauseRequired, total=False):
    code: int
    """HTTP status, if the receiver answered"""


class Failures(TypedDict):
    causes: list[FailureCause]
    """The most frequent first"""
    covered_since: str
    """Since when the history covers the range: later than since if the server is younger, or keeps this step for a
    shorter time. Rates are right if they are divided by the time from here to covered_until
    """
    covered_until: str
    """Until when it covers the range: now, if the range ends later"""
    since: str
    """Beginning of the range: the one asked for, at the beginning of a step"""
    until: str
    """End of the range, exclusive: at the end of a step"""


class Field(TypedDict):
    detail: str
    """What is wrong with it"""
    field: str
    """Path of the member, as in policy.max_retries or events[3].type"""


class _FixedLimitRequired(TypedDict):
    description: str
    name: str
    value: int


class FixedLimit(_FixedLimitRequired, total=False):
    unit: Literal["bytes", "seconds"]


class _FoundEventRequired(TypedDict):
    content_type: str
    created_at: str
    id: str
    idempotency_key: str
    principal: str
    """Who posted it"""
    size: int
    """Length of the payload in bytes"""
    type: str


class FoundEvent(_FoundEventRequired, total=False):
    attributes: dict[str, str]
    headers: list[EventHeader]
    """Header fields that go with every attempt as they came"""
    match: str
    """The text with its surroundings, in one line"""
    source_id: str
    """The source it came by, when it was relayed"""


class HeaderField(TypedDict):
    name: str
    value: str


class _HealthRequired(TypedDict):
    accepted: int
    avg_duration_ms: float
    consecutive_failures: int
    consecutive_terminal: int
    degraded: bool
    """Too many of its attempts failed in the last hour"""
    streak: int
    """Attempts of any kind that were not accepted since the last accepted one"""
    terminal: int
    transient: int


class Health(_HealthRequired, total=False):
    circuit_open_at: str
    """Since when it is only probed"""
    degraded_at: str
    hold_until: str
    """Nothing is sent before this: the endpoint asked for it"""
    last_accepted_at: str
    last_failure_at: str
    last_reason: str
    probe_at: str
    sunset_at: str
    """When the endpoint said it would end"""


_HopRequired = TypedDict("_HopRequired", {"from": "str", "status": "int", "to": "str"})


class Hop(_HopRequired):
    pass


class IssuedCredential(TypedDict):
    id: str
    secret: str
    """It is shown this once"""


class _IssuedEndpointRequired(TypedDict):
    created_at: str
    description: str
    header_names: list[str]
    """Names of the custom headers; values are never shown"""
    id: str
    method: Literal["POST", "PUT"]
    patterns: list[str]
    policy: PolicyOverrides
    """Deviations from the profile"""
    profile: Literal["eds", "ojs", "cybercube", "standard-webhooks"]
    """Wire dialect; fixed at creation"""
    public_id: str
    """The same endpoint's short id, to be read aloud; taken wherever the id is"""
    secret: IssuedSecret
    signing: Literal["own", "environment"]
    """Whose keys sign: the endpoint's own secrets, or the environment's signing keys"""
    status: Literal["active", "paused", "disabled"]
    status_at: str
    tenant_id: str
    updated_at: str
    url: str
    version: int
    """Grows with every change"""


class IssuedEndpoint(_IssuedEndpointRequired, total=False):
    auth_kind: str
    """Kind of the credential; its values are never shown"""
    content_filter: dict[str, Any]
    """Conditions on the event's type, attributes, headers, source and body; see docs/filters.md"""
    filter: dict[str, list[str]]
    metadata: dict[str, Any]
    """Any JSON values"""
    reenable_at: str
    """While it is disabled by failures: when it is tried again"""
    status_reason: str
    uid: str
    """Chosen by the owner, unique in the tenant; taken wherever the id is"""


class _IssuedKeyRequired(TypedDict):
    created_at: str
    hint: str
    """First characters of the token, to tell keys apart"""
    id: str
    made_by: list[str]
    """Principals that made the key: that of the key it was created with, and those that made that one. None of them
    and this key's principal can approve each other's commands. Empty for keys made with godwit keys create, and
    for keys older than this record.
    """
    name: str
    principal: str
    """Identity that idempotency is scoped by; a key that replaces another keeps it"""
    scopes: list[str]
    token: str
    """The API key itself. It is shown this once and kept as a hash alone."""


class IssuedKey(_IssuedKeyRequired, total=False):
    expires_at: str
    revoked_at: str


class _IssuedPortalLinkRequired(TypedDict):
    capabilities: list[str]
    """view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types"""
    created_at: str
    expires_at: str
    id: str
    session_expires_in: int
    """Seconds that its session lives at most"""
    tenant_id: str
    url: str
    """Give it to the tenant's browser. It holds the code, which is shown this once and kept as a hash alone."""


class IssuedPortalLink(_IssuedPortalLinkRequired, total=False):
    hide_navigation: bool
    key_id: str
    """The API key that made it"""
    name: str
    return_url: str
    session_id: str
    """The session that was made from it"""
    start_page: str
    theme: Literal["light", "dark", "system"]
    used_at: str


class _IssuedSecretRequired(TypedDict):
    algorithm: Literal["hmac-sha256", "ed25519"]
    created_at: str
    id: str
    """Also the keyid of signatures made with it"""
    live: bool
    """Whether it signs now"""
    not_before: str


class IssuedSecret(_IssuedSecretRequired, total=False):
    expires_at: str
    hint: str
    """Last four characters of its value"""
    public_key: str
    """Ed25519 public key: standard base64 of its 32 bytes; also published under /.well-known/http-message-
    signatures-directory
    """
    secret_redacted: bool
    """The value was shown to an earlier request with this Idempotency-Key and is kept nowhere; who lost it rotates
    again
    """
    shared: bool
    """It is a signing key of the environment, which signs for other endpoints too"""
    value: str
    """The shared secret, in the profile's form; it is shown this once. eds: standard base64 of the key of 32 bytes,
    to be decoded before use. ojs, cybercube: the text itself is the key. standard-webhooks: whsec_ and base64 of
    the key. Absent where the public key is enough.
    """


class _IssuedSigningKeyRequired(TypedDict):
    algorithm: Literal["ed25519"]
    created_at: str
    id: str
    """Also the keyid of signatures made with it"""
    live: bool
    """Whether it signs now"""
    others_until: str
    """When the other keys stop signing"""
    public_key: str
    """Standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory"""


class IssuedSigningKey(_IssuedSigningKeyRequired, total=False):
    expires_at: str


class _IssuedSourceRequired(TypedDict):
    adopt: bool
    created_at: str
    credentials: list[SourceCredential]
    """Without secrets"""
    event_type: SourceEventType
    id: str
    keep_headers: list[str]
    key_id_suffix: str
    """What stands behind the key id of signatures on its events, so that receivers tell it from other upstreams"""
    mode: Literal["store-and-forward", "pass-through"]
    """The mode that is wanted"""
    name: str
    path: str
    """Where the upstream delivers"""
    scheme: Literal["eds", "ojs", "cybercube", "standard-webhooks", "github", "stripe", "shopify", "slack", "twilio", "paypal", "bearer", "basic", "mtls"]
    settings: SourceSettings
    status: Literal["active", "paused"]
    tenant_id: str
    updated_at: str
    version: int


class IssuedSource(_IssuedSourceRequired, total=False):
    acknowledged: Acknowledgment
    """The acknowledgment that holds"""
    description: str
    issued: IssuedCredential
    """The credential that was made; absent where you brought your own"""
    last_received_at: str
    """When the last authentic request came, to the minute; absent: none has come"""
    mode_in_force: Literal["store-and-forward", "pass-through"]
    """store-and-forward only while an acknowledgment of the service description holds"""
    public_path: str
    """The same place by the tenant's public id and the source's name"""


class _KeyRequired(TypedDict):
    created_at: str
    hint: str
    """First characters of the token, to tell keys apart"""
    id: str
    made_by: list[str]
    """Principals that made the key: that of the key it was created with, and those that made that one. None of them
    and this key's principal can approve each other's commands. Empty for keys made with godwit keys create, and
    for keys older than this record.
    """
    name: str
    principal: str
    """Identity that idempotency is scoped by; a key that replaces another keeps it"""
    scopes: list[str]


class Key(_KeyRequired, total=False):
    expires_at: str
    revoked_at: str


class KeyRotation(TypedDict, total=False):
    overlap_seconds: float
    """How long the other keys go on signing beside the new one. Defaults to 86400."""


class Limits(TypedDict, total=False):
    burst: int
    """Events that may come at once. Absent: those of a second"""
    endpoint_creations_per_minute: int
    """Endpoints that the tenant's own keys may create in a minute; more are answered with 429. Absent: 60, unless
    the server has another default
    """
    endpoints: int
    """Endpoints that the tenant may have; more are answered with 403"""
    events_per_second: int
    """Events that the tenant may bring in a second, over all nodes; more are answered with 429. Absent: no limit,
    unless the server has one
    """
    payload_bytes: int
    """Size of an event's payload; the server's limit applies too. Larger ones are answered with 413"""
    waiting_deliveries: int
    """Deliveries that may wait; while so many do, events are answered with 429. Absent: no limit, unless the server
    has one
    """


class _ListAcknowledgmentRequired(TypedDict):
    items: list[Acknowledgment]


class ListAcknowledgment(_ListAcknowledgmentRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListBroadcastRequired(TypedDict):
    items: list[Broadcast]


class ListBroadcast(_ListBroadcastRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListBroadcastTenantRequired(TypedDict):
    items: list[BroadcastTenant]


class ListBroadcastTenant(_ListBroadcastTenantRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListDeadLetterRequired(TypedDict):
    items: list[DeadLetter]


class ListDeadLetter(_ListDeadLetterRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListDeliveryRequired(TypedDict):
    items: list[Delivery]


class ListDelivery(_ListDeliveryRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListEndpointRequired(TypedDict):
    items: list[Endpoint]


class ListEndpoint(_ListEndpointRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListEnvironmentRequired(TypedDict):
    items: list[Environment]


class ListEnvironment(_ListEnvironmentRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListEventRequired(TypedDict):
    items: list[Event]


class ListEvent(_ListEventRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListEventTypeRequired(TypedDict):
    items: list[EventType]


class ListEventType(_ListEventTypeRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListKeyRequired(TypedDict):
    items: list[Key]


class ListKey(_ListKeyRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListNoticeRequired(TypedDict):
    items: list[Notice]


class ListNotice(_ListNoticeRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListPortalLinkRequired(TypedDict):
    items: list[PortalLink]


class ListPortalLink(_ListPortalLinkRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListRejectionRequired(TypedDict):
    items: list[Rejection]


class ListRejection(_ListRejectionRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListSessionRequired(TypedDict):
    items: list[Session]


class ListSession(_ListSessionRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListSourceRequired(TypedDict):
    items: list[Source]


class ListSource(_ListSourceRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListTenantRequired(TypedDict):
    items: list[Tenant]


class ListTenant(_ListTenantRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class _ListTenantUsageRequired(TypedDict):
    items: list[TenantUsage]


class ListTenantUsage(_ListTenantUsageRequired, total=False):
    next_cursor: str
    """Pass as cursor to get the next page; absent on the last one"""


class NewAcknowledgment(TypedDict):
    by: str
    """Who agreed to it, on the upstream's side"""
    version: str
    """Of the service description that was read, at /.well-known/webhook-service"""


class NewCredential(TypedDict, total=False):
    id: str
    """eds: key id of the upstream's signatures; basic: its user name. Else made here."""
    public_key: str
    """eds: Ed25519 key in base64; standard-webhooks: whpk_…; paypal: certificate in PEM; mtls: SHA-256 fingerprint
    of the certificate
    """
    secret: str
    """Shared secret, token or password. Kept encrypted."""


class _NewEndpointRequired(TypedDict):
    url: str
    """Where to deliver; https unless the operator allows http"""


class NewEndpoint(_NewEndpointRequired, total=False):
    algorithm: Literal["hmac-sha256", "ed25519"]
    """How requests are signed. Defaults to the profile's first."""
    auth: Auth
    content_filter: dict[str, Any]
    """Conditions on the event's type, attributes, headers, source and body, such as {"body": {"amount": {"$gte":
    100}}}; all must hold. See docs/filters.md.
    """
    description: str
    filter: dict[str, list[str]]
    """For each attribute named, the event's value must be one of those listed"""
    headers: dict[str, str]
    """Added to every request; values are kept encrypted and never shown"""
    metadata: dict[str, Any]
    """What you keep about the endpoint: any JSON values. It has no effect."""
    method: Literal["POST", "PUT"]
    """PUT needs policy.agreement. Defaults to POST."""
    patterns: list[str]
    """Event types to deliver: exact, prefix.* or *. Defaults to ["*"]."""
    paused: bool
    """Whether it starts paused"""
    policy: PolicyOverrides
    profile: Literal["eds", "ojs", "cybercube", "standard-webhooks"]
    """Wire dialect: eds, ojs, cybercube or standard-webhooks. Defaults to eds."""
    secret: str
    """Your own signing key, in the form in which the profile shows keys. It is kept encrypted. Defaults to a new
    one.
    """
    signing: Literal["own", "environment"]
    """own: the endpoint has secrets of its own. environment: the environment's signing keys sign; profile eds.
    Defaults to the environment's endpoint_signing, and to own with an algorithm or a secret.
    """
    uid: str
    """An id of your own, unique in the tenant"""


class _NewEnvironmentRequired(TypedDict):
    name: str
    uid: str


class NewEnvironment(_NewEnvironmentRequired, total=False):
    alert_emails: list[str]
    allowed_origins: list[str]
    """Origins of pages that may show the portal in a frame, as in https://app.example.com. Absent: none may"""
    endpoint_policy: PolicyOverrides
    endpoint_profile: Literal["", "eds", "ojs", "cybercube", "standard-webhooks"]
    endpoint_signing: Literal["own", "environment"]
    """Whose keys sign for new endpoints that say nothing: their own secrets, or the environment's keys if the
    profile is eds. Defaults to own.
    """
    event_validation: Literal["", "known", "strict"]
    limits: Limits
    """Of tenants that do not say. Absent: the server's"""
    live: bool
    make_tenants: bool
    require_idempotency_key: bool
    retention_dead_letters_seconds: int
    """At least 3600 and at most the server's retention. 0: the server's"""
    retention_events_seconds: int
    """At least 3600 and at most the server's retention. 0: the server's"""
    theme: Theme
    """Look of the portal"""


class _NewKeyRequired(TypedDict):
    name: str
    scopes: list[Literal["ingest", "read", "manage", "admin", "audit", "metrics"]]
    """What it may do. A key can grant no scope that it lacks; one with admin can grant metrics, too."""


class NewKey(_NewKeyRequired, total=False):
    expires_at: str
    """From then on it is refused; absent: never"""
    replaces: str
    """Id of a key of this tenant whose place it takes. The new key acts under the same principal, so that repeated
    requests stay the same requests; the old key works until it is deleted.
    """


class _NewPortalLinkRequired(TypedDict):
    capabilities: list[Literal["view_endpoints", "manage_endpoints", "secrets", "send_tests", "view_payloads", "replay", "event_types"]]
    """What the session may do; none implies another"""


class NewPortalLink(_NewPortalLinkRequired, total=False):
    expires_in: int
    """Seconds within which the link can be used, 10 to 604800. Defaults to 600"""
    hide_navigation: bool
    """For a portal in a frame of a page with navigation of its own"""
    name: str
    """For lists"""
    return_url: str
    """Where the portal leads back to"""
    session_expires_in: int
    """Seconds that the session lives at most, 60 to 2592000. Defaults to 86400"""
    start_page: str
    """Page of the portal that is shown first"""
    tenant: str
    """Id or uid of the tenant; absent: the one that the request is made for"""
    theme: Literal["light", "dark", "system"]


class _NewSourceRequired(TypedDict):
    name: str
    """Letters, digits, '-', '_' and '.'; unique in the tenant"""
    scheme: Literal["eds", "ojs", "cybercube", "standard-webhooks", "github", "stripe", "shopify", "slack", "twilio", "paypal", "bearer", "basic", "mtls"]
    """How the upstream proves who it is: eds, ojs, cybercube, standard-webhooks, github, stripe, shopify, slack,
    twilio, paypal, bearer, basic or mtls
    """


class NewSource(_NewSourceRequired, total=False):
    adopt: bool
    """Take deliveries without Idempotency-Key: one is made of the upstream's delivery id"""
    credentials: list[NewCredential]
    """What deliveries are verified with. Absent: a secret is made, where the scheme lets us choose it."""
    description: str
    event_type: SourceEventType
    """Defaults to what a CloudEvent or the scheme tells"""
    keep_headers: list[str]
    """Header fields that go on to the endpoints as they came"""
    mode: Literal["store-and-forward", "pass-through"]
    """Defaults to store-and-forward, which needs an acknowledgment to be in force"""
    settings: SourceSettings


class _NewTenantRequired(TypedDict):
    name: str


class NewTenant(_NewTenantRequired, total=False):
    alert_emails: list[str]
    """E-mail addresses that are told of dead letters, degraded and disabled endpoints. Absent: the environment's"""
    event_validation: Literal["", "known", "strict"]
    """Absent: as the environment says"""
    limits: Limits
    """Absent: the environment's"""
    require_idempotency_key: bool
    """Absent: as the environment says"""
    uid: str
    """An id of your own, unique in the environment"""


class _NodeRequired(TypedDict):
    address: str
    """URL at which clients reach it"""
    alive: bool
    """It has said so within the time that its leases last"""
    held: int
    """Deliveries in its memory, as of its last beat"""
    in_flight: int
    """Requests in flight, as of its last beat"""
    lag_seconds: float
    """How long the oldest delivery had been waiting for the node alone at its last beat"""
    last_beat_age_seconds: float
    """How long ago that was"""
    name: str
    process: str
    """Process and host"""
    schema: int
    """Version of the database's schema that the program was made for"""
    shards: int
    """How many shards it owns now"""
    state: Literal["starting", "running", "leaving"]
    """starting: it has taken its name and not run yet, or its start failed; leaving: it is stopping and gives its
    shards to others, or has stopped
    """
    version: str
    """Version of the program"""


class Node(_NodeRequired, total=False):
    last_beat_at: str
    """When it last said that it is alive, by the database's clock"""
    started_at: str
    """By the database's clock"""


class NodeVersion(TypedDict):
    nodes: list[str]
    """Names of the nodes that run it"""
    schema: int
    version: str


class Nodes(TypedDict):
    answered_by: str
    """Name of the node that answered this request"""
    at: str
    """By the database's clock"""
    free_shards: int
    """How many shards no live node owns"""
    nodes: list[Node]
    """By name; also those that have stopped, for 30 days"""
    shards: list[Shard]
    versions: list[NodeVersion]
    """What the live nodes run. More than one: an upgrade is not finished."""


class _NoticeRequired(TypedDict):
    created_at: str
    id: str
    kind: str


class Notice(_NoticeRequired, total=False):
    acknowledged_at: str
    acknowledged_by: str
    delivery_id: str
    detail: str
    endpoint_id: str
    event_id: str
    link: str
    """Link field of a 451 response"""


class Option(TypedDict):
    default: str
    description: str
    group: str
    key: str
    """Its place in a configuration file"""
    name: str
    """The flag, without dashes"""
    origin: str
    """Where the value came from: default, flag, environment with the variable, file with the line, or program"""
    secret: bool
    """It holds a secret, or may"""
    value: str
    """A secret is not shown: (set), or a URL without its password"""
    variable: str
    """Its environment variable"""


class Palette(TypedDict, total=False):
    accent: str
    """Buttons and links, as #rrggbb"""
    background: str
    border: str
    muted: str
    """Text of less weight"""
    surface: str
    """Tables and forms"""
    text: str


class Pause(TypedDict, total=False):
    reason: str
    """Shown as status_reason"""


class _PolicyRequired(TypedDict):
    account_per_minute: int
    """Attempts of all the tenant's endpoints that have it, in any minute; 0 is no limit"""
    alert: bool
    """Its dead letters and bad health are told to the tenant's alert addresses"""
    announce: bool
    """webhook.* events tell about its deliveries"""
    base_seconds: float
    burst: int
    cap_seconds: float
    circuit_after: int
    concurrency: int
    dedup_window_seconds: float
    degraded_above: float
    """Share of failed attempts in an hour above which it is degraded; 0: not watched"""
    disable_after: int
    disable_after_failures: int
    """Attempts in a row that were not accepted; 0 never"""
    hold_scope: str
    max_elapsed_seconds: float
    max_retries: int
    multi_status: bool
    per_minute: int
    """Attempts in any minute; 0 is no limit"""
    per_second: int
    """Attempts in any second; 0 is no limit"""
    rate_per_second: float
    """0 is no limit"""
    reenable_after_seconds: float
    """How long it rests when disabled by failures; 0 is until it is resumed"""
    refresh_on_401: bool
    """A 401 gets one more attempt at once, newly signed and with a renewed token"""
    skip_while_paused: bool
    """Events that come while the endpoint is paused are not for it"""
    timeout_seconds: float


class Policy(_PolicyRequired, total=False):
    key_alphabet: Literal["printable", "alphanumeric", "hex"]
    key_max_length: int
    key_min_length: int
    """What the receiver has published about idempotency keys; those that are made here keep to it"""
    rotation: str
    """Which signatures go out while two secrets are live: both, old-first or old-only"""
    schedule_seconds: list[float]
    statuses: dict[str, str]


class PolicyOverrides(TypedDict, total=False):
    account_per_minute: int
    agreement: Agreement
    alert: bool
    announce: bool
    base_seconds: float
    burst: int
    cap_seconds: float
    circuit_after: int
    concurrency: int
    dedup_window_seconds: float
    disable_after: int
    disable_after_failures: int
    hold_scope: str
    key_alphabet: str
    key_max_length: int
    key_min_length: int
    max_elapsed_seconds: float
    max_retries: int
    multi_status: bool
    per_minute: int
    per_second: int
    rate_per_second: float
    reenable_after_seconds: float
    refresh_on_401: bool
    rotation: str
    skip_while_paused: bool
    statuses: dict[str, str]
    timeout_seconds: float


class PolicyPatch(TypedDict, total=False):
    account_per_minute: Union[int, None]
    agreement: Union[AgreementPatch, None]
    alert: Union[bool, None]
    announce: Union[bool, None]
    base_seconds: Union[float, None]
    burst: Union[int, None]
    cap_seconds: Union[float, None]
    circuit_after: Union[int, None]
    concurrency: Union[int, None]
    dedup_window_seconds: Union[float, None]
    disable_after: Union[int, None]
    disable_after_failures: Union[int, None]
    hold_scope: Union[str, None]
    key_alphabet: Union[str, None]
    key_max_length: Union[int, None]
    key_min_length: Union[int, None]
    max_elapsed_seconds: Union[float, None]
    max_retries: Union[int, None]
    multi_status: Union[bool, None]
    per_minute: Union[int, None]
    per_second: Union[int, None]
    rate_per_second: Union[float, None]
    reenable_after_seconds: Union[float, None]
    refresh_on_401: Union[bool, None]
    rotation: Union[str, None]
    skip_while_paused: Union[bool, None]
    statuses: Union[dict[str, Union[str, None]], None]
    timeout_seconds: Union[float, None]


class _PortalRequired(TypedDict):
    environment: PortalEnvironment
    theme: Theme
    """Members that are absent have the portal's own look"""


class Portal(_PortalRequired, total=False):
    tenant: PortalTenant
    """Absent if the request is made for the environment itself"""


class PortalEnvironment(TypedDict):
    id: str
    live: bool
    name: str
    uid: str


class _PortalLinkRequired(TypedDict):
    capabilities: list[str]
    """view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types"""
    created_at: str
    expires_at: str
    id: str
    session_expires_in: int
    """Seconds that its session lives at most"""
    tenant_id: str


class PortalLink(_PortalLinkRequired, total=False):
    hide_navigation: bool
    key_id: str
    """The API key that made it"""
    name: str
    return_url: str
    session_id: str
    """The session that was made from it"""
    start_page: str
    theme: Literal["light", "dark", "system"]
    used_at: str


class _PortalTenantRequired(TypedDict):
    id: str
    name: str


class PortalTenant(_PortalTenantRequired, total=False):
    uid: str


class _ProbeRequired(TypedDict):
    duration_ms: float
    outcome: Literal["accepted", "transient", "terminal"]
    reason: str
    url: str
    """Where the last hop went"""


class Probe(_ProbeRequired, total=False):
    body: str
    """The beginning of the answer's body"""
    detail: str
    """What went wrong on the way"""
    failure_class: Literal["transport", "application"]
    status: int
    """HTTP status; absent when none arrived"""


class _ProblemRequired(TypedDict):
    code: str
    """Stable code of the kind of problem; decide by this"""
    status: int
    """HTTP status code"""
    title: str
    """Short summary; the same for every problem of this kind"""
    type: str
    """Documentation of this kind of problem"""


class Problem(_ProblemRequired, total=False):
    detail: str
    """What happened this time, for people"""
    downstream: list[Downstream]
    """Outcomes at the endpoints that have not accepted a relayed event"""
    errors: list[Field]
    """The fields that are wrong"""
    request_id: str
    """Name of the request in the server's log"""


class Purge(TypedDict, total=False):
    all: bool
    """true: every dead letter of the tenant. Required where no filter is given, and refused beside one."""
    endpoint: str
    """Only of this endpoint"""
    limit: int
    """How many at most in this request"""
    reason: str
    """Only with this reason"""
    replayed: bool
    """Also those that were replayed since"""
    since: str
    """Dead at or after"""
    status: Literal["terminal", "exhausted"]
    type: str
    """Only events of this type"""
    until: str
    """Dead before"""


class Purged(TypedDict):
    more: bool
    """There may be more that match"""
    purged: int
    """Dead letters that were removed"""


class ReceiverProblem(TypedDict, total=False):
    detail: str
    status: int
    title: str
    type: str


class _RejectionRequired(TypedDict):
    at: str
    code: str
    """Problem code"""
    headers: list[str]
    """Names alone"""
    id: str
    method: str
    remote_addr: str
    size: int
    """Length of the body in bytes; -1 when it is not known"""
    status: int
    """What was answered"""


class Rejection(_RejectionRequired, total=False):
    detail: str
    reason: str
    """What authentication found wrong"""


class RevokedSecret(TypedDict):
    endpoint_id: str
    secret_id: str
    """It no longer signs"""


class RevokedSigningKey(TypedDict):
    environment_id: str
    key_id: str
    """It no longer signs"""


class Rotation(TypedDict, total=False):
    algorithm: Literal["hmac-sha256", "ed25519"]
    """Defaults to that of the newest secret"""
    overlap_seconds: float
    """How long the old secrets go on signing beside the new one. Defaults to 86400."""
    secret: str
    """Your own signing key, in the form in which the profile shows keys. Defaults to a new one."""


class _RunRequired(TypedDict):
    attempt_count: int
    trigger: str
    """What started it: accept, manual, replay or test"""


class Run(_RunRequired, total=False):
    actor: str
    """Who asked for it"""
    first_at: str


class _SchemaVersionRequired(TypedDict):
    schema: Any
    version: int


class SchemaVersion(_SchemaVersionRequired, total=False):
    created_at: str


class _SearchEndRequired(TypedDict):
    reason: Literal["all", "limit", "bound"]
    """all: no event is left; limit: as many were found as wanted; bound: one search examines no more"""
    scanned: int
    """Events examined"""


class SearchEnd(_SearchEndRequired, total=False):
    next: str
    """Pass as cursor to go on; absent if no event is left"""


class SearchLine(TypedDict, total=False):
    end: SearchEnd
    """The last line. A search without it was cut off."""
    event: FoundEvent
    progress: SearchProgress


class SearchProgress(TypedDict):
    reached: str
    """When the last of them was created"""
    scanned: int
    """Events examined so far"""


class _SecretRequired(TypedDict):
    algorithm: Literal["hmac-sha256", "ed25519"]
    created_at: str
    id: str
    """Also the keyid of signatures made with it"""
    live: bool
    """Whether it signs now"""
    not_before: str


class Secret(_SecretRequired, total=False):
    expires_at: str
    hint: str
    """Last four characters of its value"""
    public_key: str
    """Ed25519 public key: standard base64 of its 32 bytes; also published under /.well-known/http-message-
    signatures-directory
    """
    shared: bool
    """It is a signing key of the environment, which signs for other endpoints too"""


class SecretList(TypedDict):
    items: list[Secret]


class _SessionRequired(TypedDict):
    address: str
    """Address that it was made from"""
    created_at: str
    current: bool
    """Whether it is the session of this request"""
    expires_at: str
    """It ends then in any case"""
    id: str
    idle_until: str
    """It ends then unless it is used before"""
    kind: Literal["dashboard", "portal"]
    last_used_at: str
    """Up to a minute older than the last request"""
    name: str
    """Name of the API key, the user or the portal link"""
    scopes: list[str]
    """Of the API key or the user; a portal has capabilities instead"""
    user_agent: str


class Session(_SessionRequired, total=False):
    capabilities: list[str]
    """What a portal session may do: view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay,
    event_types
    """
    environment: SessionEnvironment
    hide_navigation: bool
    key_id: str
    """The API key that a dashboard session acts like"""
    link_id: str
    """The link that it was made from"""
    return_url: str
    """Where a portal leads back to"""
    start_page: str
    subject: str
    """The user as the identity provider names it"""
    tenant: SessionTenant
    """The tenant of the API key or the portal; absent for a key of an environment"""
    theme: Literal["light", "dark", "system"]
    user: str
    """Name of the user, if it was signed in by an identity provider: a verified e-mail address, a login name or a
    name
    """
    user_id: str
    """The user as evidence names it; it follows from the provider and the subject, and never changes"""


class SessionEnvironment(TypedDict):
    id: str
    name: str
    uid: str


class _SessionTenantRequired(TypedDict):
    id: str
    name: str


class SessionTenant(_SessionTenantRequired, total=False):
    uid: str


class _SettingsRequired(TypedDict):
    go: str
    """Version of Go that built it"""
    limits: list[FixedLimit]
    """Bounds that no setting changes"""
    node: str
    """Name of the node that answered"""
    options: list[Option]
    """Every setting, in the order of the reference page"""
    started_at: str
    store: StoreSettings
    version: str
    """Version of the program"""


class Settings(_SettingsRequired, total=False):
    revision: str
    """Revision of its source"""


class Shard(TypedDict):
    epoch: int
    """Grows with every change of owner"""
    free: bool
    """No live node owns it"""
    owner: str
    """Name of the node that has the lease, or had it until it fell silent; empty: released"""
    shard: int


class SignIn(TypedDict, total=False):
    code: str
    """The code of a sign-in link or portal link, which is behind #code= in its URL. It is good for one sign-in"""
    key: str
    """An API key. The session acts like it"""


class SignInLink(TypedDict):
    expires_at: str
    url: str
    """Opens the dashboard signed in, once. The code behind # is not sent to the server when the page is loaded"""


class _SignInMethodRequired(TypedDict):
    kind: Literal["api_key", "oidc"]
    name: str
    """What a person chooses by, such as the name of the identity provider"""


class SignInMethod(_SignInMethodRequired, total=False):
    sign_out_url: str
    """oidc: the page that leads to the provider's own sign-out, if it is known to have one"""
    start_url: str
    """oidc: the page that begins the sign-in. Its parameter return names the page of the dashboard to open
    afterwards, as in ?return=/ui/events
    """


class SignInMethods(TypedDict):
    items: list[SignInMethod]


class _SigningKeyRequired(TypedDict):
    algorithm: Literal["ed25519"]
    created_at: str
    id: str
    """Also the keyid of signatures made with it"""
    live: bool
    """Whether it signs now"""
    public_key: str
    """Standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory"""


class SigningKey(_SigningKeyRequired, total=False):
    expires_at: str


class SigningKeyList(TypedDict):
    items: list[SigningKey]


class _SourceRequired(TypedDict):
    adopt: bool
    created_at: str
    credentials: list[SourceCredential]
    """Without secrets"""
    event_type: SourceEventType
    id: str
    keep_headers: list[str]
    key_id_suffix: str
    """What stands behind the key id of signatures on its events, so that receivers tell it from other upstreams"""
    mode: Literal["store-and-forward", "pass-through"]
    """The mode that is wanted"""
    name: str
    path: str
    """Where the upstream delivers"""
    scheme: Literal["eds", "ojs", "cybercube", "standard-webhooks", "github", "stripe", "shopify", "slack", "twilio", "paypal", "bearer", "basic", "mtls"]
    settings: SourceSettings
    status: Literal["active", "paused"]
    tenant_id: str
    updated_at: str
    version: int


class Source(_SourceRequired, total=False):
    acknowledged: Acknowledgment
    """The acknowledgment that holds"""
    description: str
    last_received_at: str
    """When the last authentic request came, to the minute; absent: none has come"""
    mode_in_force: Literal["store-and-forward", "pass-through"]
    """store-and-forward only while an acknowledgment of the service description holds"""
    public_path: str
    """The same place by the tenant's public id and the source's name"""


class _SourceCredentialRequired(TypedDict):
    created_at: str
    id: str
    """Key id of signatures, user name, or ours"""


class SourceCredential(_SourceCredentialRequired, total=False):
    expires_at: str
    hint: str
    """Last four characters of the secret"""
    public_key: str


class _SourceDraftRequired(TypedDict):
    scheme: str
    """As in NewSource; cannot change"""


class SourceDraft(_SourceDraftRequired, total=False):
    adopt: bool
    """Take deliveries without Idempotency-Key: one is made of the upstream's delivery id"""
    credentials: list[NewCredential]
    """Used when the source is created; afterwards they change by rotate"""
    description: str
    event_type: SourceEventType
    """Defaults to what a CloudEvent or the scheme tells"""
    keep_headers: list[str]
    """Header fields that go on to the endpoints as they came"""
    mode: Literal["store-and-forward", "pass-through"]
    """Defaults to store-and-forward, which needs an acknowledgment to be in force"""
    name: str
    """The one in the path"""
    settings: SourceSettings


class SourceEventType(TypedDict, total=False):
    fixed: str
    """This one; or what stands in where header or member are not there"""
    header: str
    """Value of this header field"""
    member: str
    """Text at this path of members in a JSON body, joined with dots"""


class SourcePatch(TypedDict, total=False):
    adopt: Union[bool, None]
    description: Union[str, None]
    event_type: Union[dict[str, Any], None]
    keep_headers: Union[list[str], None]
    mode: Literal["store-and-forward", "pass-through", None]
    name: str
    scheme: str
    """Cannot change"""
    settings: Union[dict[str, Any], None]


class SourceRotation(TypedDict, total=False):
    credential: NewCredential
    """The new one. Absent: one is made, where the scheme lets us choose it."""
    overlap_seconds: float
    """How long the old ones are good beside the new one. Defaults to 86400."""


class SourceSettings(TypedDict, total=False):
    commands_as: str
    """Deliveries are commands, submitted in the name of the API key with this id; see /ids/v1"""
    delivery_header: str
    """adopt: header with the upstream's own id of a delivery, in place of the scheme's"""
    end_to_end: str
    """eds: label of a signature that is the origin's own and goes on untouched"""
    lenient_key: bool
    """Take an Idempotency-Key without quotes as well; it goes on as it came"""
    put_agreement: str
    """eds: where the agreement is written that lets the upstream use PUT"""
    webhook_id: str
    """paypal: id of the webhook, which is signed but not sent"""


class _StatsRequired(TypedDict):
    covered_since: str
    """Since when the history covers the range: later than since if the server is younger, or keeps this step for a
    shorter time. Rates are right if they are divided by the time from here to covered_until
    """
    covered_until: str
    """Until when it covers the range: now, if the range ends later"""
    points: list[StatsPoint]
    """One for each step, also those without traffic"""
    since: str
    """Beginning of the range: the one asked for, at the beginning of a step"""
    step: Literal["minute", "hour", "day"]
    total: StatsCounts
    """Of all points"""
    until: str
    """End of the range, exclusive: at the end of a step"""


class Stats(_StatsRequired, total=False):
    group_count: int
    """With group: how many there are; groups has limit of them at most"""
    groups: list[StatsGroup]
    """With group: those with the most failed attempts first"""


class _StatsCountsRequired(TypedDict):
    acknowledged: int
    """Attempts that the receiver acknowledged; each ends its delivery"""
    attempts: int
    """Attempts to deliver, of any outcome"""
    dead: int
    """Deliveries that became dead letters"""
    events: int
    """Events accepted; of an endpoint: events for it"""
    failed_attempts: int
    """The other attempts"""


class StatsCounts(_StatsCountsRequired, total=False):
    p50_ms: float
    """Half of the acknowledged deliveries took no longer than this from the acceptance of the event to the
    receiver's answer, waits and retries included. Off by 6.25 % at most; absent if there were none. Replays do
    not count
    """
    p99_ms: float
    """99 of 100 took no longer"""


class _StatsGroupRequired(TypedDict):
    points: list[StatsPoint]
    tenant: str
    """Id of the tenant"""
    total: StatsCounts


class StatsGroup(_StatsGroupRequired, total=False):
    endpoint: str
    """Id of the endpoint"""


class _StatsPointRequired(TypedDict):
    acknowledged: int
    """Attempts that the receiver acknowledged; each ends its delivery"""
    at: str
    """Beginning of the step"""
    attempts: int
    """Attempts to deliver, of any outcome"""
    dead: int
    """Deliveries that became dead letters"""
    events: int
    """Events accepted; of an endpoint: events for it"""
    failed_attempts: int
    """The other attempts"""


class StatsPoint(_StatsPointRequired, total=False):
    p50_ms: float
    """Half of the acknowledged deliveries took no longer than this from the acceptance of the event to the
    receiver's answer, waits and retries included. Off by 6.25 % at most; absent if there were none. Replays do
    not count
    """
    p99_ms: float
    """99 of 100 took no longer"""


class StoreSettings(TypedDict):
    backend: Literal["sqlite", "postgres"]
    durability: str
    """What an acknowledgement guarantees"""
    location: str
    """Path, or host and database"""
    schema: int
    """Version of the schema"""
    version: str


class _StreamedAttemptRequired(TypedDict):
    delivery_id: str
    delivery_status: str
    """Of the delivery, after the attempt"""
    duration_ms: float
    endpoint_id: str
    event_id: str
    event_type: str
    id: str
    n: int
    """1 for the first, over all runs"""
    outcome: Literal["accepted", "transient", "terminal"]
    reason: str
    started_at: str
    trace: Trace
    """What was seen, for people who ask what happened"""
    trigger: str
    url: str


class StreamedAttempt(_StreamedAttemptRequired, total=False):
    failure_class: Literal["transport", "application"]
    next_at: str
    """When the next attempt is due"""
    receiver_state: Literal["unknown"]
    """unknown: the receiver may or may not have got it"""
    request: AttemptRequest
    """The request as it was sent, secrets masked. Of acknowledged attempts a busy server keeps it of a sample"""
    response: AttemptResponse
    """The response as it was received; absent if there was none"""
    retry_after_seconds: float
    """Least wait that the receiver asked for"""
    status: int
    """HTTP status; absent when none arrived"""
    timing: AttemptTiming
    """Where the time went; absent if it was not measured"""


class _TenantRequired(TypedDict):
    account_id: str
    """Its short id, as CYBERCUBE events name it"""
    alert_emails: list[str]
    """Who is told of dead letters, degraded and disabled endpoints"""
    created_at: str
    environment_id: str
    event_validation: Literal["", "known", "strict"]
    """known: events whose type has a schema must fit it. strict: types that are not in the catalogue are refused
    too. Empty: anything goes.
    """
    id: str
    inherits: list[Literal["require_idempotency_key", "event_validation", "alert_emails", "limits"]]
    """The members above that are the environment's"""
    limits: Limits
    """What the tenant may use. The server's defaults hold for absent members"""
    name: str
    own_event_types: int
    """How many event types it has beside those that its environment shares"""
    require_idempotency_key: bool
    """Events without Idempotency-Key are refused"""
    version: int
    """Grows with every change"""


class Tenant(_TenantRequired, total=False):
    health: TenantHealth
    """How it does, in a list with health=true"""
    uid: str
    """Chosen by the caller, unique in the environment; names the tenant wherever its id does"""


class _TenantHealthRequired(TypedDict):
    endpoints: WaitingEndpoints
    """Its endpoints by their state. Each is counted once, under the first that applies"""
    waiting: int
    """Deliveries that wait or are under way; counted up to 1000"""
    waiting_capped: bool
    """There may be more than were counted"""


class TenantHealth(_TenantHealthRequired, total=False):
    last_accepted_at: str
    """When a receiver last acknowledged a delivery; absent: none has"""


class TenantPatch(TypedDict, total=False):
    alert_emails: list[str]
    """Replaced as a whole"""
    event_validation: Literal["", "known", "strict"]
    inherits: list[Literal["require_idempotency_key", "event_validation", "alert_emails", "limits"]]
    """Members that are the environment's from now on. Replaced as a whole; a member that is given itself is the
    tenant's own
    """
    limits: Limits
    """Replaced as a whole"""
    name: str
    require_idempotency_key: bool
    uid: str


class _TenantUsageRequired(TypedDict):
    days: list[DayUsage]
    """Days with usage, in order"""
    tenant_id: str
    total: Usage
    """Of all the days below"""


class TenantUsage(_TenantUsageRequired, total=False):
    tenant_uid: str
    """The caller's own id of the tenant"""


class Theme(TypedDict, total=False):
    dark: Palette
    """Colours of the dark look"""
    favicon: str
    """As logo"""
    font: str
    """A list of font families, as in CSS"""
    light: Palette
    """Colours of the light look"""
    logo: str
    """A PNG or SVG image as a data URL in base64, at most 32 KiB"""
    radius: int
    """Radius of corners in pixels, 0 to 16"""
    words: ThemeWords


class ThemeWords(TypedDict, total=False):
    deliveries: str
    endpoints: str
    event_types: str
    help_url: str
    """Where the help link leads: an https URL"""
    title: str


class Trace(TypedDict, total=False):
    actor: str
    detail: str
    hops: list[Hop]
    link: str
    problem: ReceiverProblem
    proto: str
    remote_addr: str
    response_body: str
    response_content_type: str
    retry_after: str
    signed_with: list[str]


class Usage(TypedDict):
    attempts: int
    """Attempts to deliver, of any outcome"""
    bytes_accepted: int
    """Payloads of the events, as they are stored"""
    bytes_sent: int
    """Bodies of the requests to endpoints, one for each attempt"""
    deliveries: int
    """Deliveries made: one for each endpoint that an event goes to"""
    events: int
    """Events accepted; the repeat of a request counts no second time"""


class UsageTotal(TypedDict):
    days: list[DayUsage]
    """Days with usage, in order"""
    total: Usage
    """Of all the days below"""


class _WaitingRequired(TypedDict):
    endpoints: WaitingEndpoints
    waiting: int
    """Deliveries that wait or are under way; counted up to 100000"""
    waiting_capped: bool
    """There are more than were counted"""


class Waiting(_WaitingRequired, total=False):
    oldest_at: str
    """Since when the delivery is due that is due for longest, or when the next one is due; absent if none waits"""


class WaitingEndpoints(TypedDict):
    disabled: int
    failing: int
    """The last attempt failed, or too many did in the last hour"""
    healthy: int
    open: int
    """With an open circuit: only probed"""
    paused: int


class Wire(TypedDict, total=False):
    c: bool
    p: list[str]
    q: list[str]
    t: list[int]


class _WrittenEndpointRequired(TypedDict):
    created_at: str
    description: str
    header_names: list[str]
    """Names of the custom headers; values are never shown"""
    id: str
    method: Literal["POST", "PUT"]
    patterns: list[str]
    policy: PolicyOverrides
    """Deviations from the profile"""
    profile: str
    """Wire dialect; fixed at creation"""
    public_id: str
    """The same endpoint's short id, to be read aloud; taken wherever the id is"""
    signing: Literal["own", "environment"]
    """Whose keys sign: the endpoint's own secrets, or the environment's signing keys"""
    status: Literal["active", "paused", "disabled"]
    status_at: str
    tenant_id: str
    updated_at: str
    url: str
    version: int
    """Grows with every change"""


class WrittenEndpoint(_WrittenEndpointRequired, total=False):
    auth_kind: str
    """Kind of the credential; its values are never shown"""
    content_filter: dict[str, Any]
    """Conditions on the event's type, attributes, headers, source and body; see docs/filters.md"""
    filter: dict[str, list[str]]
    metadata: dict[str, Any]
    """Any JSON values"""
    reenable_at: str
    """While it is disabled by failures: when it is tried again"""
    secret: IssuedSecret
    """Only when the endpoint was created"""
    status_reason: str
    uid: str
    """Chosen by the owner, unique in the tenant; taken wherever the id is"""


OPERATIONS: tuple[tuple[str, str, str], ...] = (
    ("stream_attempts", "GET", "/v1/attempts/stream"),
    ("list_broadcasts", "GET", "/v1/broadcasts"),
    ("get_broadcast", "GET", "/v1/broadcasts/{id}"),
    ("list_broadcast_tenants", "GET", "/v1/broadcasts/{id}/tenants"),
    ("get_catalogue", "GET", "/v1/catalogue"),
    ("list_dead_letters", "GET", "/v1/dead-letters"),
    ("export_dead_letters", "GET", "/v1/dead-letters/export"),
    ("group_dead_letters", "GET", "/v1/dead-letters/groups"),
    ("purge_dead_letters", "POST", "/v1/dead-letters/purge"),
    ("replay_dead_letters", "POST", "/v1/dead-letters/replay"),
    ("get_dead_letter", "GET", "/v1/dead-letters/{id}"),
    ("replay_dead_letter", "POST", "/v1/dead-letters/{id}/replay"),
    ("list_deliveries", "GET", "/v1/deliveries"),
    ("cancel_deliveries", "POST", "/v1/deliveries/cancel"),
    ("retry_deliveries", "POST", "/v1/deliveries/retry"),
    ("get_delivery", "GET", "/v1/deliveries/{id}"),
    ("cancel_delivery", "POST", "/v1/deliveries/{id}/cancel"),
    ("retry_delivery", "POST", "/v1/deliveries/{id}/retry"),
    ("list_endpoints", "GET", "/v1/endpoints"),
    ("create_endpoint", "POST", "/v1/endpoints"),
    ("delete_endpoint", "DELETE", "/v1/endpoints/{id}"),
    ("get_endpoint", "GET", "/v1/endpoints/{id}"),
    ("update_endpoint", "PATCH", "/v1/endpoints/{id}"),
    ("put_endpoint", "PUT", "/v1/endpoints/{id}"),
    ("explain_endpoint", "POST", "/v1/endpoints/{id}/explain"),
    ("pause_endpoint", "POST", "/v1/endpoints/{id}/pause"),
    ("probe_endpoint", "POST", "/v1/endpoints/{id}/probe"),
    ("resume_endpoint", "POST", "/v1/endpoints/{id}/resume"),
    ("rotate_secret", "POST", "/v1/endpoints/{id}/rotate-secret"),
    ("list_secrets", "GET", "/v1/endpoints/{id}/secrets"),
    ("revoke_secret", "POST", "/v1/endpoints/{id}/secrets/{secret}/revoke"),
    ("get_endpoint_stats", "GET", "/v1/endpoints/{id}/stats"),
    ("test_endpoint", "POST", "/v1/endpoints/{id}/test"),
    ("list_environments", "GET", "/v1/environments"),
    ("create_environment", "POST", "/v1/environments"),
    ("delete_environment", "DELETE", "/v1/environments/{id}"),
    ("get_environment", "GET", "/v1/environments/{id}"),
    ("update_environment", "PATCH", "/v1/environments/{id}"),
    ("put_environment", "PUT", "/v1/environments/{id}"),
    ("list_signing_keys", "GET", "/v1/environments/{id}/signing-keys"),
    ("rotate_signing_keys", "POST", "/v1/environments/{id}/signing-keys"),
    ("revoke_signing_key", "POST", "/v1/environments/{id}/signing-keys/{key}/revoke"),
    ("list_event_types", "GET", "/v1/event-types"),
    ("delete_event_type", "DELETE", "/v1/event-types/{name}"),
    ("get_event_type", "GET", "/v1/event-types/{name}"),
    ("put_event_type", "PUT", "/v1/event-types/{name}"),
    ("list_events", "GET", "/v1/events"),
    ("post_event", "POST", "/v1/events"),
    ("post_event_batch", "POST", "/v1/events/batch"),
    ("search_events", "GET", "/v1/events/search"),
    ("get_event", "GET", "/v1/events/{id}"),
    ("get_event_body", "GET", "/v1/events/{id}/body"),
    ("explain_event", "GET", "/v1/events/{id}/explain"),
    ("replay_event", "POST", "/v1/events/{id}/replay"),
    ("list_keys", "GET", "/v1/keys"),
    ("create_key", "POST", "/v1/keys"),
    ("revoke_key", "DELETE", "/v1/keys/{id}"),
    ("get_key", "GET", "/v1/keys/{id}"),
    ("list_nodes", "GET", "/v1/nodes"),
    ("list_notices", "GET", "/v1/notices"),
    ("acknowledge_notice", "POST", "/v1/notices/{id}/acknowledge"),
    ("get_portal", "GET", "/v1/portal"),
    ("list_portal_links", "GET", "/v1/portal-links"),
    ("create_portal_link", "POST", "/v1/portal-links"),
    ("revoke_portal_link", "DELETE", "/v1/portal-links/{id}"),
    ("get_portal_link", "GET", "/v1/portal-links/{id}"),
    ("end_sessions", "DELETE", "/v1/sessions"),
    ("list_sessions", "GET", "/v1/sessions"),
    ("create_session", "POST", "/v1/sessions"),
    ("end_current_session", "DELETE", "/v1/sessions/current"),
    ("get_current_session", "GET", "/v1/sessions/current"),
    ("end_session", "DELETE", "/v1/sessions/{id}"),
    ("get_session", "GET", "/v1/sessions/{id}"),
    ("get_settings", "GET", "/v1/settings"),
    ("create_sign_in_link", "POST", "/v1/sign-in-links"),
    ("list_sign_in_methods", "GET", "/v1/sign-in-methods"),
    ("list_sources", "GET", "/v1/sources"),
    ("create_source", "POST", "/v1/sources"),
    ("delete_source", "DELETE", "/v1/sources/{id}"),
    ("get_source", "GET", "/v1/sources/{id}"),
    ("update_source", "PATCH", "/v1/sources/{id}"),
    ("put_source", "PUT", "/v1/sources/{id}"),
    ("list_acknowledgments", "GET", "/v1/sources/{id}/acknowledgments"),
    ("acknowledge_description", "POST", "/v1/sources/{id}/acknowledgments"),
    ("pause_source", "POST", "/v1/sources/{id}/pause"),
    ("list_rejections", "GET", "/v1/sources/{id}/rejections"),
    ("resume_source", "POST", "/v1/sources/{id}/resume"),
    ("rotate_source_credential", "POST", "/v1/sources/{id}/rotate"),
    ("get_stats", "GET", "/v1/stats"),
    ("get_failures", "GET", "/v1/stats/failures"),
    ("get_waiting", "GET", "/v1/stats/waiting"),
    ("list_tenants", "GET", "/v1/tenants"),
    ("create_tenant", "POST", "/v1/tenants"),
    ("delete_tenant", "DELETE", "/v1/tenants/{id}"),
    ("get_tenant", "GET", "/v1/tenants/{id}"),
    ("update_tenant", "PATCH", "/v1/tenants/{id}"),
    ("put_tenant", "PUT", "/v1/tenants/{id}"),
    ("list_usage", "GET", "/v1/usage"),
    ("get_usage_total", "GET", "/v1/usage/total"),
)
"""Each method of the client, with the operation that it calls."""


class GodwitClient(Transport):
    """The native API: one method for each operation."""

    def stream_attempts(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Iterator[StreamedAttempt]:
        """Watch attempts as they happen.

        Server-sent events named attempt, whose data is one attempt in JSON. A client that reads too slowly misses
        some.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        return self._events(
            "GET",
            "/v1/attempts/stream",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def list_broadcasts(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListBroadcast:
        """List broadcasts.

        Events that were posted for several tenants of the environment. They are kept as long as the server keeps
        events.

        Needs an API key with the scope admin, or a key of the environment with the scope ingest or read or
        manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListBroadcast = self._json(
            "GET",
            "/v1/broadcasts",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_broadcast(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Broadcast:
        """Get the progress of a broadcast.

        Needs an API key with the scope admin, or a key of the environment with the scope ingest or read or
        manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Broadcast = self._json(
            "GET",
            f"/v1/broadcasts/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_broadcast_tenants(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["skipped"] | None = None,
    ) -> ListBroadcastTenant:
        """List the results of a broadcast.

        The tenants that have a result, newest first: the id of their event, or why they get none. While the
        broadcast runs the list grows.

        Needs an API key with the scope admin, or a key of the environment with the scope ingest or read or
        manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        status: Only tenants that were skipped
        """
        answer: ListBroadcastTenant = self._json(
            "GET",
            f"/v1/broadcasts/{path_segment(id)}/tenants",
            query={"limit": limit, "cursor": cursor, "status": status},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_catalogue(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        format: Literal["openapi", "asyncapi"] | None = None,
    ) -> Any:
        """Get the catalogue as a document for generators.

        The tenant's own event types and those that its environment shares, with the schemas in force. Types
        without a schema are in it too.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        format: openapi: OpenAPI 3.1, a webhook for each type. asyncapi: AsyncAPI 3.0, a message for each type.
        """
        answer: Any = self._json(
            "GET",
            "/v1/catalogue",
            query={"format": format},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_dead_letters(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        endpoint: str | None = None,
        type: str | None = None,
        status: Literal["terminal", "exhausted"] | None = None,
        reason: str | None = None,
        replayed: bool | None = None,
    ) -> ListDeadLetter:
        """List dead letters.

        Those that are open: deliveries which ended without being accepted and were not replayed since. With type,
        status, reason or since, a request examines up to 5,000 dead letters: a page may have fewer items than
        limit, even none, and still have a next_cursor.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        since: At or after this time (RFC 3339)
        until: Before this time (RFC 3339)
        endpoint: Only of this endpoint
        type: Only events of this type
        reason: Only with this reason
        replayed: Also those that were replayed since
        """
        answer: ListDeadLetter = self._json(
            "GET",
            "/v1/dead-letters",
            query={"limit": limit, "cursor": cursor, "since": since, "until": until, "endpoint": endpoint, "type": type, "status": status, "reason": reason, "replayed": replayed},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def export_dead_letters(
        self,
        *,
        endpoint: str | None = None,
        type: str | None = None,
        status: Literal["terminal", "exhausted"] | None = None,
        reason: str | None = None,
        since: str | None = None,
        until: str | None = None,
        replayed: bool | None = None,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Iterator[ExportedDeadLetter]:
        """Export dead letters with their payloads.

        One JSON document a line, newest first. The connection is cut if the export cannot be completed.

        Needs an API key with the scope read.

        replayed: Also those that were replayed since
        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        return self._lines(
            "GET",
            "/v1/dead-letters/export",
            query={"endpoint": endpoint, "type": type, "status": status, "reason": reason, "since": since, "until": until, "replayed": replayed},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def group_dead_letters(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        since: str | None = None,
        until: str | None = None,
        endpoint: str | None = None,
        type: str | None = None,
        status: Literal["terminal", "exhausted"] | None = None,
        reason: str | None = None,
        replayed: bool | None = None,
    ) -> DeadLetterGroups:
        """Count dead letters by endpoint and reason.

        Of those that a list with the same filters has.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        since: At or after this time (RFC 3339)
        until: Before this time (RFC 3339)
        endpoint: Only of this endpoint
        type: Only events of this type
        reason: Only with this reason
        replayed: Also those that were replayed since
        """
        answer: DeadLetterGroups = self._json(
            "GET",
            "/v1/dead-letters/groups",
            query={"since": since, "until": until, "endpoint": endpoint, "type": type, "status": status, "reason": reason, "replayed": replayed},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def purge_dead_letters(
        self,
        body: Purge,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        confirmation: str | None = None,
        command: str | None = None,
        step_up: str | None = None,
    ) -> Purged | Asked:
        """Remove the dead letters that match.

        For good, with the copies of their events; newest first, up to limit in one request. To select all, say
        all: true. It runs as the command dead_letters.purge. The first answer tells in affects how many dead
        letters would go, and from which endpoints.

        It is done in two steps. The first request does nothing and is answered with 202, a command_id and a
        confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it
        gets the same answer.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        confirmation: confirmation_token of the first answer: executes what that request asked for. Absent:
        nothing is done yet.
        command: command_id of the first answer; goes with Godwit-Confirmation
        step_up: Where the first answer has a step_up_url: the step_up_token that another API key got there
        """
        answer: Purged | Asked = self._json(
            "POST",
            "/v1/dead-letters/purge",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "Godwit-Confirmation": confirmation, "Godwit-Command": command, "Godwit-Step-Up": step_up},
            body=body,
        )
        return answer

    def replay_dead_letters(
        self,
        body: BulkReplay,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> BulkReplayed:
        """Replay the dead letters that match.

        Newest first, up to limit in one request; next_cursor continues where it ended. To select all, say all:
        true. It runs as the command dead_letters.replay, one for each thousand.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: BulkReplayed = self._json(
            "POST",
            "/v1/dead-letters/replay",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def get_dead_letter(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> DeadLetter:
        """Get the open dead letter of a delivery.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: DeadLetter = self._json(
            "GET",
            f"/v1/dead-letters/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def replay_dead_letter(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Delivery:
        """Replay a dead letter.

        Starts a new run under the same idempotency key. The dead letter is marked as replayed and kept until it
        expires.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Delivery = self._json(
            "POST",
            f"/v1/dead-letters/{path_segment(id)}/replay",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def list_deliveries(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        endpoint: str | None = None,
        event: str | None = None,
        type: str | None = None,
        status: Literal["pending", "accepted", "terminal", "exhausted", "cancelled"] | None = None,
    ) -> ListDelivery:
        """List deliveries.

        With type, a request examines up to 5,000 deliveries: a page may have fewer items than limit, even none,
        and still have a next_cursor.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        since: At or after this time (RFC 3339)
        until: Before this time (RFC 3339)
        endpoint: Only to this endpoint
        event: Only of this event
        type: Only events of this type
        """
        answer: ListDelivery = self._json(
            "GET",
            "/v1/deliveries",
            query={"limit": limit, "cursor": cursor, "since": since, "until": until, "endpoint": endpoint, "event": event, "type": type, "status": status},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def cancel_deliveries(
        self,
        body: BulkCancel,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> BulkChanged:
        """Cancel the deliveries that match.

        Ends those that wait, newest first, up to limit in one request; next_cursor continues where it ended. One
        that is under way at this moment is left alone. With type, a request examines up to 5,000 deliveries of
        each status, and may change none and still have a next_cursor. To select all, say all: true. With dry_run,
        the answer says how many there are. The tenant's evidence records who did it, with the choice and the
        number.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: BulkChanged = self._json(
            "POST",
            "/v1/deliveries/cancel",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def retry_deliveries(
        self,
        body: BulkRetry,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> BulkChanged:
        """Try the deliveries that match now.

        Newest first, up to limit in one request; next_cursor continues where it ended. Waiting ones are made due
        at once; those that ended start a new run under the same idempotency key. With type, a request examines up
        to 5,000 deliveries of each status, and may change none and still have a next_cursor. To select all, say
        all: true. With dry_run, the answer says how many there are. The tenant's evidence records who did it,
        with the choice and the number.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: BulkChanged = self._json(
            "POST",
            "/v1/deliveries/retry",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def get_delivery(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> DeliveryDetail:
        """Get a delivery and its attempts.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: DeliveryDetail = self._json(
            "GET",
            f"/v1/deliveries/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def cancel_delivery(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Delivery:
        """Cancel a delivery.

        Ends one that waits. Conflict when it is finished, or under way at this moment.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Delivery = self._json(
            "POST",
            f"/v1/deliveries/{path_segment(id)}/cancel",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def retry_delivery(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Delivery:
        """Try a delivery now.

        A waiting one is made due at once; a finished one starts a new run under the same idempotency key.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Delivery = self._json(
            "POST",
            f"/v1/deliveries/{path_segment(id)}/retry",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def list_endpoints(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        status: Literal["active", "paused", "disabled"] | None = None,
        search: str | None = None,
        health: Literal["healthy", "failing", "open"] | None = None,
    ) -> ListEndpoint:
        """List endpoints.

        A request for an environment lists those of all its tenants.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        status: Only those with this status
        search: Only endpoints whose URL, uid or description contains this text; ASCII letters match in either
        case
        health: Only active endpoints that do so, as GET /v1/stats/waiting counts them: open means that the
        circuit is open, failing that the last attempt failed or too many did in the last hour
        """
        answer: ListEndpoint = self._json(
            "GET",
            "/v1/endpoints",
            query={"limit": limit, "cursor": cursor, "status": status, "search": search, "health": health},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_endpoint(
        self,
        body: NewEndpoint,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedEndpoint:
        """Register an endpoint.

        The signing secret is in this answer and in no other, but for a repeat with the same Idempotency-Key.
        Creating an endpoint resolves no name and sends nothing.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedEndpoint = self._json(
            "POST",
            "/v1/endpoints",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def delete_endpoint(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
    ) -> None:
        """Delete an endpoint.

        What was waiting for it is cancelled. It runs as the command endpoint.delete; the request is its own
        confirmation.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        self._bytes(
            "DELETE",
            f"/v1/endpoints/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match},
        )

    def get_endpoint(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Endpoint:
        """Get an endpoint.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Endpoint = self._json(
            "GET",
            f"/v1/endpoints/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def update_endpoint(
        self,
        id: str,
        body: EndpointPatch,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Endpoint:
        """Change an endpoint.

        A JSON merge patch (RFC 7396): absent members stay, null clears, objects merge member by member. auth is
        replaced as a whole. The profile cannot change.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        answer: Endpoint = self._json(
            "PATCH",
            f"/v1/endpoints/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "If-Match": if_match},
            body=body,
        )
        return answer

    def put_endpoint(
        self,
        id: str,
        body: NewEndpoint,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> WrittenEndpoint | WrittenEndpoint:
        """Create or replace an endpoint.

        With a uid of your choice in the path. All settings are replaced: members that are absent get their
        defaults, and headers and auth that are not given are removed. algorithm, secret and paused have an effect
        only when the endpoint is created; the signing secret is in that answer and in no other. An endpoint that
        is as the request says stays as it is, with its version.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        if_none_match: * creates the object and replaces none: if it exists, the answer is 412.
        """
        answer: WrittenEndpoint | WrittenEndpoint = self._json(
            "PUT",
            f"/v1/endpoints/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def explain_endpoint(
        self,
        id: str,
        body: ExplainRequest,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> EndpointExplanation:
        """Explain whether an endpoint would get an event, and why.

        Judges an event by the endpoint's patterns, filter and content filter as they are now, and names the part
        that says no. Nothing is stored or sent.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: EndpointExplanation = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/explain",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def pause_endpoint(
        self,
        id: str,
        body: Pause | None = None,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Endpoint:
        """Pause an endpoint.

        Its deliveries are held, none is dropped.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Endpoint = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/pause",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def probe_endpoint(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Probe:
        """Send a test event and wait for the answer.

        One attempt, whatever the endpoint's status and patterns. Nothing is stored or counted, and nothing is
        tried again. That the endpoint refuses is a result, not an error.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Probe = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/probe",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def resume_endpoint(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Endpoint:
        """Resume an endpoint.

        Also enables an endpoint that was disabled, and clears its failure counts, hold and circuit.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Endpoint = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/resume",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def rotate_secret(
        self,
        id: str,
        body: Rotation | None = None,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedSecret:
        """Rotate the signing secret.

        The new secret signs at once, beside the old ones until the overlap ends. Its value is in this answer and
        in no other, but for a repeat with the same Idempotency-Key. It runs as the command
        endpoint.rotate_secret.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedSecret = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/rotate-secret",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def list_secrets(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> SecretList:
        """List signing secrets, without their values.

        Where the environment signs, its keys are listed first; secrets of the endpoint's own then do not sign.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: SecretList = self._json(
            "GET",
            f"/v1/endpoints/{path_segment(id)}/secrets",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def revoke_secret(
        self,
        id: str,
        secret: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        confirmation: str | None = None,
        command: str | None = None,
        step_up: str | None = None,
    ) -> RevokedSecret | Asked:
        """Revoke a signing secret.

        It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate
        first. It runs as the command endpoint.revoke_secret.

        It is done in two steps. The first request does nothing and is answered with 202, a command_id and a
        confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it
        gets the same answer.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        confirmation: confirmation_token of the first answer: executes what that request asked for. Absent:
        nothing is done yet.
        command: command_id of the first answer; goes with Godwit-Confirmation
        step_up: Where the first answer has a step_up_url: the step_up_token that another API key got there
        """
        answer: RevokedSecret | Asked = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/secrets/{path_segment(secret)}/revoke",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "Godwit-Confirmation": confirmation, "Godwit-Command": command, "Godwit-Step-Up": step_up},
        )
        return answer

    def get_endpoint_stats(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> EndpointStats:
        """Health, backlog and policy of an endpoint.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: EndpointStats = self._json(
            "GET",
            f"/v1/endpoints/{path_segment(id)}/stats",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def test_endpoint(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Accepted:
        """Send a test event.

        An event of the type godwit.test goes to this endpoint alone, whatever its patterns. It is stored, tried
        again and recorded as any other.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Accepted = self._json(
            "POST",
            f"/v1/endpoints/{path_segment(id)}/test",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def list_environments(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListEnvironment:
        """List environments.

        A key of an environment sees its own.

        Needs an API key with the scope admin, or a key of the environment with the scope read or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListEnvironment = self._json(
            "GET",
            "/v1/environments",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_environment(
        self,
        body: NewEnvironment,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Environment:
        """Create an environment.

        An environment owns tenants and the event types that they share. Its keys act for any of its tenants.

        Needs an API key with the scope admin.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Environment = self._json(
            "POST",
            "/v1/environments",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def delete_environment(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
    ) -> None:
        """Delete an environment.

        With its shared event types and its keys. Its tenants must have been deleted; the one that every server
        has cannot be.

        Needs an API key with the scope admin.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        self._bytes(
            "DELETE",
            f"/v1/environments/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match},
        )

    def get_environment(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Environment:
        """Get an environment.

        Needs an API key with the scope admin, or a key of the environment with the scope read or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Environment = self._json(
            "GET",
            f"/v1/environments/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def update_environment(
        self,
        id: str,
        body: EnvironmentPatch,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Environment:
        """Change an environment.

        Tenants that inherit a setting have the new one at once on this node, and within half a second on others.

        Needs an API key with the scope admin.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        answer: Environment = self._json(
            "PATCH",
            f"/v1/environments/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "If-Match": if_match},
            body=body,
        )
        return answer

    def put_environment(
        self,
        id: str,
        body: EnvironmentDocument,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> Environment | Environment:
        """Create or replace an environment.

        With a uid of your choice in the path. All settings are replaced; those that are absent get their
        defaults. live cannot change.

        Needs an API key with the scope admin.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        if_none_match: * creates the object and replaces none: if it exists, the answer is 412.
        """
        answer: Environment | Environment = self._json(
            "PUT",
            f"/v1/environments/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def list_signing_keys(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> SigningKeyList:
        """List the signing keys of an environment.

        They sign deliveries to the endpoints of the environment whose signing is environment.

        Needs an API key with the scope admin, or a key of the environment with the scope read or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: SigningKeyList = self._json(
            "GET",
            f"/v1/environments/{path_segment(id)}/signing-keys",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def rotate_signing_keys(
        self,
        id: str,
        body: KeyRotation | None = None,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedSigningKey:
        """Add a signing key to an environment.

        The new key signs at once, beside the others until the overlap ends; all nodes follow within half a
        second. It runs as the command environment.rotate_keys, with its evidence in the environment's chain.

        Needs an API key with the scope admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedSigningKey = self._json(
            "POST",
            f"/v1/environments/{path_segment(id)}/signing-keys",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def revoke_signing_key(
        self,
        id: str,
        key: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        confirmation: str | None = None,
        command: str | None = None,
        step_up: str | None = None,
    ) -> RevokedSigningKey | Asked:
        """Revoke a signing key of an environment.

        It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate
        first. It runs as the command environment.revoke_key.

        It is done in two steps. The first request does nothing and is answered with 202, a command_id and a
        confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it
        gets the same answer.

        Needs an API key with the scope admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        confirmation: confirmation_token of the first answer: executes what that request asked for. Absent:
        nothing is done yet.
        command: command_id of the first answer; goes with Godwit-Confirmation
        step_up: Where the first answer has a step_up_url: the step_up_token that another API key got there
        """
        answer: RevokedSigningKey | Asked = self._json(
            "POST",
            f"/v1/environments/{path_segment(id)}/signing-keys/{path_segment(key)}/revoke",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "Godwit-Confirmation": confirmation, "Godwit-Command": command, "Godwit-Step-Up": step_up},
        )
        return answer

    def list_event_types(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        standard: Literal["ojs", "cybercube"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListEventType:
        """List event types.

        By name: the tenant's own and those that its environment shares. The catalogue says what events mean and
        look like; whether they are held against it is the tenant's setting event_validation.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        standard: Those that are built in from this standard, instead of the tenant's own
        limit: How many items at most
        cursor: next_cursor of the page before
        """
        answer: ListEventType = self._json(
            "GET",
            "/v1/event-types",
            query={"standard": standard, "limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def delete_event_type(
        self,
        name: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
    ) -> None:
        """Delete an event type.

        With all versions of its schema. Events stay.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        self._bytes(
            "DELETE",
            f"/v1/event-types/{path_segment(name)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match},
        )

    def get_event_type(
        self,
        name: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> EventTypeDetail:
        """Get an event type.

        The tenant's own, or the one that its environment shares, or else the one of a standard.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: EventTypeDetail = self._json(
            "GET",
            f"/v1/event-types/{path_segment(name)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def put_event_type(
        self,
        name: str,
        body: EventTypeDraft,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        force: bool | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> EventTypeDetail | EventTypeDetail:
        """Write an event type.

        Description, deprecated and example are replaced. A schema that differs from the one in force becomes the
        next version; earlier ones are kept. If the version in force declares a compatibility and the next does
        not keep to it, it is refused with the places, unless force is set. A request for an environment writes a
        type that all its tenants share.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        force: Store the schema although it is not compatible with the one in force
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        if_none_match: * creates the object and replaces none: if it exists, the answer is 412.
        """
        answer: EventTypeDetail | EventTypeDetail = self._json(
            "PUT",
            f"/v1/event-types/{path_segment(name)}",
            query={"force": force},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def list_events(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        type: str | None = None,
        key: str | None = None,
    ) -> ListEvent:
        """List events.

        With type, a request examines up to 5,000 events: a page may have fewer items than limit, even none, and
        still have a next_cursor.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        since: At or after this time (RFC 3339)
        until: Before this time (RFC 3339)
        type: Only this type, or those under prefix.*
        key: Only the event with this idempotency key
        """
        answer: ListEvent = self._json(
            "GET",
            "/v1/events",
            query={"limit": limit, "cursor": cursor, "since": since, "until": until, "type": type, "key": key},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def post_event(
        self,
        body: EventEnvelope | Payload,
        *,
        type: str | None = None,
        attr: dict[str, str] | None = None,
        event_type: str | None = None,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Accepted:
        """Post an event.

        Two forms. With type in the query (or in the header Godwit-Event-Type) the body is the payload, delivered
        byte for byte with its Content-Type. Without it the body is an envelope in JSON. A CloudEvent may come in
        either mode of its HTTP binding: structured (application/cloudevents+json) or binary (ce-* fields, which
        go with every attempt); its type is the event's, with / and : replaced by dots, and its id is not its key.
        In binary mode Content-Type may be absent; the event is then delivered as application/octet-stream. Types
        that begin with webhook. or godwit. are the server's own and are refused.

        The answer leaves after the event is on disk. The payload may have up to 1048576 bytes.

        A key of an environment, or one with the scope admin, may post for several tenants at once, a broadcast:
        Godwit-Tenant then has up to 500 ids or uids with a comma between them, or * for all tenants of the
        environment that have an endpoint for the event. Each gets an event of its own. The answer leaves after
        the broadcast and its list of tenants are on disk; it has the id of the broadcast, under which its
        progress can be read. For up to 100 tenants the answer also waits for their events and lists them.

        Needs an API key with the scope ingest.

        type: Type of the event; the body is then its payload
        attr: Value of the attribute NAME; repeat with other names. Only with type.
        event_type: Type of the event, in place of the query
        tenant: Id or uid of the tenant to act for; or several, with a comma between them; or * for all tenants of
        the environment that have an endpoint for the event. Needs the scope admin, or a key of the tenants'
        environment. Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Accepted = self._json(
            "POST",
            "/v1/events",
            query={"type": type, "attr.NAME": attr},
            headers={"Godwit-Event-Type": event_type, "Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def post_event_batch(
        self,
        body: EventBatch,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> BatchResult | BatchResult:
        """Post a batch of events.

        Up to 1000 events in one transaction. All are checked first: if one is wrong, none is stored. An
        Idempotency-Key in the header stands for the whole batch, and each event then gets a key of its own;
        without it every event may bring its key, and repeats are told apart one by one. The body may have up to
        16777216 bytes.

        Needs an API key with the scope ingest.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: BatchResult | BatchResult = self._json(
            "POST",
            "/v1/events/batch",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def search_events(
        self,
        *,
        text: str | None = None,
        type: str | None = None,
        key: str | None = None,
        source: str | None = None,
        attribute: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Iterator[SearchLine]:
        """Search events, also by text in their payloads.

        Newest first, one JSON document a line, as soon as it is known: events, progress in between, and an end. A
        text is looked for in payloads and idempotency keys, byte for byte, whatever the case of ASCII letters; an
        event whose id it is comes first. There is no index of payloads: a search reads events. One search
        examines up to 250,000 events and 256 MiB of payload; the end then says how to go on. A search ends when
        its client disconnects. A tenant may have two under way.

        Needs an API key with the scope read.

        text: Text in the payload or in the idempotency key, or the id of an event
        type: Only this type, or those under prefix.*
        key: Only events with this idempotency key
        source: Only events that came by this source: its id or name
        attribute: Only events with this attribute: name:value, or a name for any value
        since: At or after this time (RFC 3339)
        until: Before this time (RFC 3339)
        limit: How many events at most
        cursor: next of the search before
        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        return self._lines(
            "GET",
            "/v1/events/search",
            query={"text": text, "type": type, "key": key, "source": source, "attribute": attribute, "since": since, "until": until, "limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def get_event(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> EventDetail:
        """Get an event and its deliveries.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: EventDetail = self._json(
            "GET",
            f"/v1/events/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_event_body(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> bytes:
        """Get the payload of an event.

        Byte for byte as posted, with its Content-Type.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        return self._bytes(
            "GET",
            f"/v1/events/{path_segment(id)}/body",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def explain_event(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        endpoint: str | None = None,
    ) -> EventExplanation:
        """Explain which endpoints got an event, and why.

        For each endpoint of the tenant: whether the event went to it, by which pattern, or what kept it away.
        Deliveries tell what happened. The settings of the endpoint, as they are now, tell why; where they were
        changed since the event came, the answer says so. A page may have fewer items than limit, even none, and
        still have a next_cursor.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        endpoint: Only this endpoint
        """
        answer: EventExplanation = self._json(
            "GET",
            f"/v1/events/{path_segment(id)}/explain",
            query={"limit": limit, "cursor": cursor, "endpoint": endpoint},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def replay_event(
        self,
        id: str,
        body: EventReplay | None = None,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> DeliveryItems:
        """Deliver an event again.

        Every delivery starts a new run under the same idempotency key. An endpoint that the event has not gone to
        yet gets it now.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: DeliveryItems = self._json(
            "POST",
            f"/v1/events/{path_segment(id)}/replay",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def list_keys(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListKey:
        """List API keys.

        Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read
        or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListKey = self._json(
            "GET",
            "/v1/keys",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_key(
        self,
        body: NewKey,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedKey:
        """Create an API key.

        The token is in this answer and in no other, but for a repeat with the same Idempotency-Key.

        Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedKey = self._json(
            "POST",
            "/v1/keys",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def revoke_key(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> None:
        """Revoke an API key.

        It is refused at once by this node and within seconds by all others. It stays in the list.

        Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        self._bytes(
            "DELETE",
            f"/v1/keys/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def get_key(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Key:
        """Get an API key.

        Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read
        or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Key = self._json(
            "GET",
            f"/v1/keys/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_nodes(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Nodes:
        """List nodes and shards.

        The nodes that share this server's database, which of them owns each shard of endpoints, and which
        versions they run. Every node gives the same answer.

        Needs an API key with the scope admin.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Nodes = self._json(
            "GET",
            "/v1/nodes",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_notices(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        open: bool | None = None,
    ) -> ListNotice:
        """List notices.

        What a person should know or decide: an endpoint was disabled, has moved, refuses for legal reasons,
        resolves to a forbidden address.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        open: Only those that nobody has acknowledged
        """
        answer: ListNotice = self._json(
            "GET",
            "/v1/notices",
            query={"limit": limit, "cursor": cursor, "open": open},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def acknowledge_notice(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Notice:
        """Acknowledge a notice.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Notice = self._json(
            "POST",
            f"/v1/notices/{path_segment(id)}/acknowledge",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def get_portal(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Portal:
        """Get the look of the portal.

        The theme of the caller's environment, and the tenant that the request is made for.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Portal = self._json(
            "GET",
            "/v1/portal",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_portal_links(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListPortalLink:
        """List portal links.

        Links are listed until a week after they have expired.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListPortalLink = self._json(
            "GET",
            "/v1/portal-links",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_portal_link(
        self,
        body: NewPortalLink,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedPortalLink:
        """Create a portal link.

        A URL that opens the portal of a tenant, once. The session that it makes can do what the capabilities say,
        for this tenant, and nothing else.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedPortalLink = self._json(
            "POST",
            "/v1/portal-links",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def revoke_portal_link(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> None:
        """Revoke a portal link.

        Ends the session that was made from it, too. DELETE /v1/sessions?tenant=…&kind=portal revokes all of a
        tenant.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        self._bytes(
            "DELETE",
            f"/v1/portal-links/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def get_portal_link(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> PortalLink:
        """Get a portal link.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: PortalLink = self._json(
            "GET",
            f"/v1/portal-links/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def end_sessions(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        tenant_id: str | None = None,
        kind: Literal["dashboard", "portal"] | None = None,
    ) -> EndedSessions:
        """End all sessions of a tenant.

        Also removes portal links of the tenant that were not used, unless kind is dashboard. A caller without the
        scope admin leaves the sessions of those with it.

        Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        tenant_id: Id or uid of the tenant
        kind: Only sessions of this kind
        """
        answer: EndedSessions = self._json(
            "DELETE",
            "/v1/sessions",
            query={"tenant": tenant_id, "kind": kind},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_sessions(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        kind: Literal["dashboard", "portal"] | None = None,
    ) -> ListSession:
        """List sessions.

        Those of the tenant's keys and portals; for an environment, those of the environment's own keys.

        Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read
        or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        kind: Only sessions of this kind
        """
        answer: ListSession = self._json(
            "GET",
            "/v1/sessions",
            query={"limit": limit, "cursor": cursor, "kind": kind},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_session(
        self,
        body: SignIn,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Sign in.

        Makes a session from an API key or from the code of a link, and sets its cookie. Pages of the portal send
        Godwit-Portal: 1, or frame if they are in a frame of another page, and Godwit-Environment with the id of
        their environment. Every sign-in makes a new token; a session that the browser had before at this place is
        ended.

        Needs no API key.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Session = self._json(
            "POST",
            "/v1/sessions",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def end_current_session(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> None:
        """Sign out.

        Ends the session of this request and removes its cookie.

        Needs an API key with the scope ingest or read or manage or admin or audit.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        self._bytes(
            "DELETE",
            "/v1/sessions/current",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def get_current_session(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Session:
        """Get the session of this request.

        Answers 404 to a request with an API key, which has no session.

        Needs an API key with the scope ingest or read or manage or admin or audit.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Session = self._json(
            "GET",
            "/v1/sessions/current",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def end_session(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> None:
        """End a session.

        It is refused at once by this node and within half a second by all others.

        Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        self._bytes(
            "DELETE",
            f"/v1/sessions/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )

    def get_session(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Session:
        """Get a session.

        Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read
        or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Session = self._json(
            "GET",
            f"/v1/sessions/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_settings(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Settings:
        """Get the configuration of the node that answers.

        Every setting with its value, its default and where the value came from; versions; bounds. Secrets are
        never shown.

        Needs an API key with the scope admin.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Settings = self._json(
            "GET",
            "/v1/settings",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_sign_in_link(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> SignInLink:
        """Create a sign-in link.

        A URL that opens the dashboard with a session that acts like the API key of this request, within 5 minutes
        and once. A session cannot make one.

        Needs an API key with the scope ingest or read or manage or admin or audit.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: SignInLink = self._json(
            "POST",
            "/v1/sign-in-links",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def list_sign_in_methods(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> SignInMethods:
        """List the ways to sign in.

        The ways in which people can sign in to the dashboard of this server.

        Needs no API key.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: SignInMethods = self._json(
            "GET",
            "/v1/sign-in-methods",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_sources(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListSource:
        """List sources.

        A request for an environment lists those of all its tenants.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListSource = self._json(
            "GET",
            "/v1/sources",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_source(
        self,
        body: NewSource,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedSource:
        """Register an upstream.

        Its deliveries to path go on to the endpoints. A secret that is made here is in this answer and in no
        other, but for a repeat with the same Idempotency-Key.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedSource = self._json(
            "POST",
            "/v1/sources",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def delete_source(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
    ) -> None:
        """Delete a source.

        Upstreams find nothing there from now on. What was taken in is delivered.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        self._bytes(
            "DELETE",
            f"/v1/sources/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match},
        )

    def get_source(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Source:
        """Get a source, with the mode in force.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Source = self._json(
            "GET",
            f"/v1/sources/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def update_source(
        self,
        id: str,
        body: SourcePatch,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Source:
        """Change a source.

        A JSON merge patch (RFC 7396). The scheme cannot change; credentials change by rotate.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        answer: Source = self._json(
            "PATCH",
            f"/v1/sources/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "If-Match": if_match},
            body=body,
        )
        return answer

    def put_source(
        self,
        id: str,
        body: SourceDraft,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> IssuedSource | IssuedSource:
        """Create or replace a source.

        With the name of the source in the path. All settings are replaced; those that are absent get their
        defaults. credentials have an effect only when the source is created; a secret that is made then is in
        that answer and in no other. A source that is as the request says stays as it is, with its version.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        if_none_match: * creates the object and replaces none: if it exists, the answer is 412.
        """
        answer: IssuedSource | IssuedSource = self._json(
            "PUT",
            f"/v1/sources/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def list_acknowledgments(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListAcknowledgment:
        """List acknowledgments of the service description.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListAcknowledgment = self._json(
            "GET",
            f"/v1/sources/{path_segment(id)}/acknowledgments",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def acknowledge_description(
        self,
        id: str,
        body: NewAcknowledgment,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Acknowledgment:
        """Record that the upstream acknowledged the service description.

        This is what lets deliveries be answered before they are delivered on (store-and-forward). It holds until
        a description promises less.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Acknowledgment = self._json(
            "POST",
            f"/v1/sources/{path_segment(id)}/acknowledgments",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def pause_source(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Source:
        """Pause a source.

        Upstreams are told to come again later (503).

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Source = self._json(
            "POST",
            f"/v1/sources/{path_segment(id)}/pause",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def list_rejections(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListRejection:
        """List what a source did not take in.

        The newest 200, for some days. Without payloads, credentials and header values.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        """
        answer: ListRejection = self._json(
            "GET",
            f"/v1/sources/{path_segment(id)}/rejections",
            query={"limit": limit, "cursor": cursor},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def resume_source(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Source:
        """Resume a source.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Source = self._json(
            "POST",
            f"/v1/sources/{path_segment(id)}/resume",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
        )
        return answer

    def rotate_source_credential(
        self,
        id: str,
        body: SourceRotation | None = None,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> IssuedSource:
        """Add a credential and let the others run out.

        The new one is good at once. A secret that is made here is in this answer and in no other, but for a
        repeat with the same Idempotency-Key.

        Needs an API key with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: IssuedSource = self._json(
            "POST",
            f"/v1/sources/{path_segment(id)}/rotate",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def get_stats(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        since: str | None = None,
        until: str | None = None,
        endpoint: str | None = None,
        tenant_id: str | None = None,
        step: Literal["minute", "hour", "day"] | None = None,
        group: Literal["none", "endpoint", "tenant"] | None = None,
        limit: int | None = None,
    ) -> Stats:
        """Show the history.

        Counts and latencies, step by step. Each count is stored in the transaction that stores what it counts, at
        the time of that transaction: the numbers are exact, also after a crash and with several nodes. Minutes
        are kept for 2 days, hours for 31 days and days for 400 days, unless the server is set up otherwise. A
        request for a tenant shows that tenant; one for an environment shows all its tenants together; an
        administrator's request that names neither shows the whole server.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        since: At or after this time (RFC 3339). Defaults to a day before until
        until: Before this time (RFC 3339). Defaults to now
        endpoint: Only this endpoint; several ids, with commas between, if they are grouped. A request for several
        tenants names it by its id
        tenant_id: Id or uid of the only tenant to show
        step: Length of a point. Defaults to minute for up to 6 hours, hour for up to 7 days, and day above
        group: Show endpoints or tenants one by one as well
        limit: How many groups at most
        """
        answer: Stats = self._json(
            "GET",
            "/v1/stats",
            query={"since": since, "until": until, "endpoint": endpoint, "tenant_id": tenant_id, "step": step, "group": group, "limit": limit},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_failures(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        since: str | None = None,
        until: str | None = None,
        endpoint: str | None = None,
        tenant_id: str | None = None,
    ) -> Failures:
        """Show why attempts failed.

        Failed attempts by cause, with the endpoints that they concern and what to do about it. What a request may
        see is as with the history.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        since: At or after this time (RFC 3339). Defaults to a day before until
        until: Before this time (RFC 3339). Defaults to now
        endpoint: Only this endpoint; several ids, with commas between, if they are grouped. A request for several
        tenants names it by its id
        tenant_id: Id or uid of the only tenant to show
        """
        answer: Failures = self._json(
            "GET",
            "/v1/stats/failures",
            query={"since": since, "until": until, "endpoint": endpoint, "tenant_id": tenant_id},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_waiting(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        tenant_id: str | None = None,
    ) -> Waiting:
        """Show what waits now.

        Waiting deliveries, and endpoints by their state. What a request may see is as with the history.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        tenant_id: Id or uid of the only tenant to count
        """
        answer: Waiting = self._json(
            "GET",
            "/v1/stats/waiting",
            query={"tenant_id": tenant_id},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def list_tenants(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        search: str | None = None,
        health: bool | None = None,
    ) -> ListTenant:
        """List tenants.

        Those of the environment that the request is made for. An administrator's request that names none lists
        those of all environments.

        Needs an API key with the scope admin, or a key of the environment with the scope read or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        search: Only tenants whose name or uid contains this text; ASCII letters match in either case
        health: Also say how each does: its endpoints by state, what waits, when a delivery was last accepted
        """
        answer: ListTenant = self._json(
            "GET",
            "/v1/tenants",
            query={"limit": limit, "cursor": cursor, "search": search, "health": health},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def create_tenant(
        self,
        body: NewTenant,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
    ) -> Tenant:
        """Create a tenant.

        A tenant owns an event bus: its events reach its own endpoints alone. It belongs to the environment that
        the request is made for, and starts without API keys.

        Needs an API key with the scope admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        """
        answer: Tenant = self._json(
            "POST",
            "/v1/tenants",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def delete_tenant(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
        confirmation: str | None = None,
        command: str | None = None,
        step_up: str | None = None,
    ) -> Asked | None:
        """Delete a tenant.

        Revokes its API keys, deletes its endpoints and cancels what was waiting for them. It runs as the command
        tenant.delete, of the tenant that the API key belongs to, which cannot delete itself. A second admin key
        of that tenant has to approve: it posts to the step_up_url of the first answer, and the token it gets goes
        into Godwit-Step-Up. A key of an environment with the scope manage deletes the environment's tenants
        without that approval; it then runs as the command environment.delete_tenant, with its evidence in the
        environment's chain.

        It is done in two steps. The first request does nothing and is answered with 202, a command_id and a
        confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it
        gets the same answer.

        Needs an API key with the scope admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        confirmation: confirmation_token of the first answer: executes what that request asked for. Absent:
        nothing is done yet.
        command: command_id of the first answer; goes with Godwit-Confirmation
        step_up: Where the first answer has a step_up_url: the step_up_token that another API key got there
        """
        answer: Asked | None = self._json(
            "DELETE",
            f"/v1/tenants/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match, "Godwit-Confirmation": confirmation, "Godwit-Command": command, "Godwit-Step-Up": step_up},
        )
        return answer

    def get_tenant(
        self,
        id: str,
        *,
        tenant: str | None = None,
        environment: str | None = None,
    ) -> Tenant:
        """Get a tenant.

        Needs an API key with the scope admin, or a key of the environment with the scope read or manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        """
        answer: Tenant = self._json(
            "GET",
            f"/v1/tenants/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def update_tenant(
        self,
        id: str,
        body: TenantPatch,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Tenant:
        """Change a tenant.

        Needs an API key with the scope admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        idempotency_key: 16 to 255 printable ASCII characters; they are quoted for you. A repeat with the same key
        and payload gets the first answer again.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        """
        answer: Tenant = self._json(
            "PATCH",
            f"/v1/tenants/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "Idempotency-Key": idempotency_key, "If-Match": if_match},
            body=body,
        )
        return answer

    def put_tenant(
        self,
        id: str,
        body: NewTenant,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
    ) -> Tenant | Tenant:
        """Create or replace a tenant.

        With a uid of your choice in the path, in the environment that the request is made for. All settings are
        replaced; those that are absent are the environment's. A tenant that is as the request says stays as it
        is, with its version.

        Needs an API key with the scope admin, or a key of the environment with the scope manage.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        if_match: ETag of the object as the caller knows it, or * for any. If the object has another version, or
        does not exist, the answer is 412.
        if_none_match: * creates the object and replaces none: if it exists, the answer is 412.
        """
        answer: Tenant | Tenant = self._json(
            "PUT",
            f"/v1/tenants/{path_segment(id)}",
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment, "If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def list_usage(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        tenant_id: str | None = None,
    ) -> ListTenantUsage:
        """List usage.

        What tenants used, by day (UTC), kept for 13 months. Each count is stored in the transaction that stores
        what it counts: the numbers are exact. A request for a tenant shows that tenant; one for an environment
        shows the environment's tenants with usage, also deleted ones; an administrator's request that names
        neither shows those of all environments. A page is a number of tenants.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        limit: How many items at most
        cursor: next_cursor of the page before; empty or absent: the first page
        from_: First day, UTC. Defaults to the day 29 days before the last
        to: Last day, UTC. Defaults to today
        tenant_id: Id or uid of the only tenant to show; the id, if it is deleted
        """
        answer: ListTenantUsage = self._json(
            "GET",
            "/v1/usage",
            query={"limit": limit, "cursor": cursor, "from": from_, "to": to, "tenant_id": tenant_id},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer

    def get_usage_total(
        self,
        *,
        tenant: str | None = None,
        environment: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        tenant_id: str | None = None,
    ) -> UsageTotal:
        """Show the usage of all tenants together.

        The sum over the tenants that the list of usage shows, by day.

        Needs an API key with the scope read.

        tenant: Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment.
        Absent: the API key's own.
        environment: Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own.
        from_: First day, UTC. Defaults to the day 29 days before the last
        to: Last day, UTC. Defaults to today
        tenant_id: Id or uid of the only tenant to show; the id, if it is deleted
        """
        answer: UsageTotal = self._json(
            "GET",
            "/v1/usage/total",
            query={"from": from_, "to": to, "tenant_id": tenant_id},
            headers={"Godwit-Tenant": tenant, "Godwit-Environment": environment},
        )
        return answer
