// Made by scripts/generate-client.mjs from spec/openapi.json; do not edit.
import { Transport, type CallOptions, type Payload } from "./transport.js";

export interface Accepted {
  /** If the request names several tenants, or all */
  broadcast?: Broadcast;
  created_at: string;
  /** How many endpoints it goes to; for a broadcast so far */
  deliveries: number;
  /** Id of the event; of the broadcast, if the request names several tenants */
  id: string;
  /** Goes with every attempt to deliver the event. Each event of a broadcast has a key of its own */
  idempotency_key: string;
}

export interface Acknowledgment {
  /** Id of the API key that recorded it */
  actor: string;
  at: string;
  /** Who acknowledged it */
  by: string;
  id: string;
  /** Of the service description */
  version: string;
}

export interface ActiveAgreement {
  /** What rests on it, as in statuses.404, multi_status, method */
  covers: string[];
  document: string;
  visible_to_both: boolean;
}

export interface Affected {
  /** How many dead letters would go */
  dead_letters: number;
  /** Whose they are; the endpoint with the most comes first */
  endpoints: AffectedEndpoint[];
  /** There may be more that match; one request removes up to its limit */
  more: boolean;
}

export interface AffectedEndpoint {
  dead_letters: number;
  id: string;
}

export interface Agreement {
  document: string;
  visible_to_both: boolean;
}

export interface AgreementPatch {
  document?: string | null;
  visible_to_both?: boolean | null;
}

export interface Asked {
  /** purge-dead-letters: what would go if it were confirmed now */
  affects?: Affected;
  /** For the header Godwit-Command */
  command_id: string;
  /** For the header Godwit-Confirmation. It is shown this once, and is good for this request alone. */
  confirmation_token: string;
  /** Until when it can be confirmed */
  expires_at: string;
  /** Nothing was done */
  status: "awaiting_confirmation";
  /** Where another API key has to approve first: POST with that key */
  step_up_url?: string;
}

export interface Attempt {
  delivery_id: string;
  duration_ms: number;
  endpoint_id: string;
  event_id: string;
  failure_class?: "transport" | "application";
  id: string;
  /** 1 for the first, over all runs */
  n: number;
  /** When the next attempt is due */
  next_at?: string;
  outcome: "accepted" | "transient" | "terminal";
  reason: string;
  /** unknown: the receiver may or may not have got it */
  receiver_state?: "unknown";
  /** The request as it was sent, secrets masked. Of acknowledged attempts a busy server keeps it of a sample */
  request?: AttemptRequest;
  /** The response as it was received; absent if there was none */
  response?: AttemptResponse;
  /** Least wait that the receiver asked for */
  retry_after_seconds?: number;
  started_at: string;
  /** HTTP status; absent when none arrived */
  status?: number;
  /** Where the time went; absent if it was not measured */
  timing?: AttemptTiming;
  /** What was seen, for people who ask what happened */
  trace: Trace;
  trigger: string;
  url: string;
}

export interface AttemptRequest {
  headers: HeaderField[];
  url: string;
}

export interface AttemptResponse {
  /** Up to 4 KiB */
  body: string;
  /** Kept where those of the request are */
  headers: HeaderField[];
  status: number;
  /** There is more of the body */
  truncated: boolean;
}

export interface AttemptTiming {
  connect_ms: number;
  /** To resolve the name; 0 if the connection was used before */
  dns_ms: number;
  /** From the first byte of the request to the first of the response */
  first_byte_ms: number;
  tls_ms: number;
  /** Of the whole attempt; more than the parts together by the reading of the response */
  total_ms: number;
}

export interface Auth {
  /** oauth2 */
  audience?: string;
  /** mtls: the client's certificate chain */
  certificate_pem?: string;
  /** oauth2 */
  client_id?: string;
  /** oauth2 */
  client_secret?: string;
  kind: "bearer" | "basic" | "oauth2" | "mtls";
  /** basic */
  password?: string;
  /** mtls: its key */
  private_key_pem?: string;
  /** oauth2 */
  scopes?: string[];
  /** bearer: the token */
  token?: string;
  /** oauth2: where tokens are fetched, by client credentials */
  token_url?: string;
  /** basic */
  username?: string;
}

export interface AuthPatch {
  /** oauth2 */
  audience?: string;
  /** mtls: the client's certificate chain */
  certificate_pem?: string;
  /** oauth2 */
  client_id?: string;
  /** oauth2 */
  client_secret?: string;
  kind: "bearer" | "basic" | "oauth2" | "mtls";
  /** basic */
  password?: string;
  /** mtls: its key */
  private_key_pem?: string;
  /** oauth2 */
  scopes?: string[];
  /** bearer: the token */
  token?: string;
  /** oauth2: where tokens are fetched, by client credentials */
  token_url?: string;
  /** basic */
  username?: string;
}

export interface BatchItem {
  created_at?: string;
  deliveries?: number;
  id?: string;
  idempotency_key?: string;
  index: number;
  /** Problem details of a refused event */
  problem?: unknown;
  status: "accepted" | "replayed" | "refused";
}

export interface BatchResult {
  items: BatchItem[];
}

export interface Broadcast {
  /** How many of them have their event */
  accepted: number;
  /** For all tenants that had an endpoint for it when it was accepted; otherwise the request named them */
  all_tenants: boolean;
  content_type: string;
  created_at: string;
  /** Of the events so far */
  deliveries: number;
  ended_at?: string;
  id: string;
  /** Only in the answer to the post: the result of each tenant, if they are at most 100 and all have one */
  items?: BroadcastTenant[];
  /** Who posted it */
  principal: string;
  /** How many of them get none */
  skipped: number;
  state: "running" | "ended";
  /** How many tenants it is for, fixed when it was accepted */
  tenants: number;
  type: string;
}

export interface BroadcastTenant {
  detail?: string;
  event_id?: string;
  /** Why the tenant gets no event: the schema of its own type, or a limit, refuses it; or the tenant was deleted meanwhile */
  reason?: "invalid" | "limit" | "tenant-deleted";
  status: "accepted" | "skipped";
  tenant_id: string;
  /** The tenant's own id */
  uid?: string;
}

export interface BulkCancel {
  /** true: all deliveries of the tenant. Required where neither ids nor a filter is given, and refused beside one. */
  all?: boolean;
  /** next_cursor of the request before */
  cursor?: string;
  /** true: change nothing, and count all that match, up to 10,000; with type, among the newest 5,000 of each status */
  dry_run?: boolean;
  /** Only to this endpoint */
  endpoint?: string;
  /** Only of this event */
  event?: string;
  /** These deliveries, whatever their status. Goes with no filter. */
  ids?: string[];
  /** How many at most in this request */
  limit?: number;
  /** Created at or after */
  since?: string;
  /** Only events of this type */
  type?: string;
  /** Created before */
  until?: string;
}

export interface BulkChanged {
  /** How many this request changed; 0 with dry_run. Those that had changed meanwhile, or are under way at this moment, are left alone. */
  changed: number;
  /** How many match: of all with dry_run, else of those that this request looked at */
  matched: number;
  /** There are more: with dry_run, matched is a lower bound; else send the request again with next_cursor */
  more: boolean;
  /** For cursor of the next request */
  next_cursor?: string;
}

export interface BulkReplay {
  /** true: every dead letter of the tenant. Required where no filter is given, and refused beside one. */
  all?: boolean;
  /** next_cursor of the request before */
  cursor?: string;
  /** Only of this endpoint */
  endpoint?: string;
  /** How many at most in this request */
  limit?: number;
  /** Only with this reason */
  reason?: string;
  /** Dead at or after */
  since?: string;
  status?: "terminal" | "exhausted";
  /** Only events of this type */
  type?: string;
  /** Dead before */
  until?: string;
}

export interface BulkReplayed {
  /** There may be more: send the same request with this cursor */
  next_cursor?: string;
  /** Deliveries that were started again */
  replayed: number;
}

export interface BulkRetry {
  /** true: all deliveries of the tenant. Required where neither ids nor a filter is given, and refused beside one. */
  all?: boolean;
  /** next_cursor of the request before */
  cursor?: string;
  /** true: change nothing, and count all that match, up to 10,000; with type, among the newest 5,000 of each status */
  dry_run?: boolean;
  /** Only to this endpoint */
  endpoint?: string;
  /** Only of this event */
  event?: string;
  /** These deliveries, whatever their status. Goes with no filter. */
  ids?: string[];
  /** How many at most in this request */
  limit?: number;
  /** Created at or after */
  since?: string;
  /** Only those with this status. Absent: pending, terminal and exhausted ones, which is what has not arrived. */
  status?: "pending" | "accepted" | "terminal" | "exhausted" | "cancelled";
  /** Only events of this type */
  type?: string;
  /** Created before */
  until?: string;
}

export interface DayUsage {
  /** Attempts to deliver, of any outcome */
  attempts: number;
  /** Payloads of the events, as they are stored */
  bytes_accepted: number;
  /** Bodies of the requests to endpoints, one for each attempt */
  bytes_sent: number;
  /** UTC */
  day: string;
  /** Deliveries made: one for each endpoint that an event goes to */
  deliveries: number;
  /** Events accepted; the repeat of a request counts no second time */
  events: number;
}

export interface DeadLetter {
  dead_at: string;
  delivery: Delivery;
  event: Event;
  /** One line about the last attempt */
  last_detail?: string;
  /** When it was sent again. If that fails for good too, there is a new dead letter. */
  replayed_at?: string;
}

export interface DeadLetterGroup {
  count: number;
  endpoint_id: string;
  /** When the latest of them ended */
  last_at: string;
  reason: string;
}

export interface DeadLetterGroups {
  /** Dead letters that were counted, also those of groups that are left out */
  counted: number;
  /** The largest group first, 200 at most */
  items: DeadLetterGroup[];
  /** There are more dead letters: the newest 10,000 were counted */
  more: boolean;
}

export interface Delivery {
  /** Attempts made so far */
  attempt_count: number;
  created_at: string;
  /** When the next attempt is due */
  due_at?: string;
  endpoint_id: string;
  event_id: string;
  /** Absent when the event was removed at the end of its retention */
  event_type?: string;
  id: string;
  /** HTTP status of the last attempt */
  last_status?: number;
  /** Why it is where it is */
  reason?: string;
  run: Run;
  /** accepted: the receiver acknowledged the request, and nothing more */
  status: "pending" | "accepted" | "terminal" | "exhausted" | "cancelled";
  updated_at: string;
}

export interface DeliveryDetail {
  /** Attempts made so far */
  attempt_count: number;
  /** First to last */
  attempts: Attempt[];
  created_at: string;
  /** When the next attempt is due */
  due_at?: string;
  endpoint_id: string;
  event_id: string;
  /** Absent when the event was removed at the end of its retention */
  event_type?: string;
  id: string;
  /** HTTP status of the last attempt */
  last_status?: number;
  /** Why it is where it is */
  reason?: string;
  run: Run;
  /** accepted: the receiver acknowledged the request, and nothing more */
  status: "pending" | "accepted" | "terminal" | "exhausted" | "cancelled";
  updated_at: string;
}

export interface DeliveryItems {
  items: Delivery[];
}

export interface Downstream {
  /** Id of the delivery */
  delivery: string;
  outcome: "pending" | "terminal" | "exhausted";
  reason?: string;
  /** HTTP status of the endpoint's last answer */
  status?: number;
}

export interface EndedSessions {
  /** How many sessions were ended */
  ended: number;
}

export interface Endpoint {
  /** Kind of the credential; its values are never shown */
  auth_kind?: string;
  /** Conditions on the event's type, attributes, headers, source and body; see docs/filters.md */
  content_filter?: Record<string, unknown>;
  created_at: string;
  description: string;
  filter?: Record<string, string[]>;
  /** Names of the custom headers; values are never shown */
  header_names: string[];
  id: string;
  /** Any JSON values */
  metadata?: Record<string, unknown>;
  method: "POST" | "PUT";
  patterns: string[];
  /** Deviations from the profile */
  policy: PolicyOverrides;
  /** Wire dialect; fixed at creation */
  profile: "eds" | "ojs" | "cybercube" | "standard-webhooks";
  /** The same endpoint's short id, to be read aloud; taken wherever the id is */
  public_id: string;
  /** While it is disabled by failures: when it is tried again */
  reenable_at?: string;
  /** Whose keys sign: the endpoint's own secrets, or the environment's signing keys */
  signing: "own" | "environment";
  status: "active" | "paused" | "disabled";
  status_at: string;
  status_reason?: string;
  tenant_id: string;
  /** Chosen by the owner, unique in the tenant; taken wherever the id is */
  uid?: string;
  updated_at: string;
  url: string;
  /** Grows with every change */
  version: number;
}

export interface EndpointExplanation {
  /** The reason in a sentence */
  detail: string;
  matched: boolean;
  /** Of the reason content: the place in content_filter that said no, as in body.amount.$gte */
  part?: string;
  reason: "matched" | "event-type" | "attribute" | "content" | "paused";
}

export interface EndpointPatch {
  /** Replaced as a whole; null removes it */
  auth?: AuthPatch | null;
  /** Replaced as a whole; null removes it */
  content_filter?: Record<string, unknown> | null;
  description?: string | null;
  filter?: Record<string, string[] | null> | null;
  headers?: Record<string, string | null> | null;
  /** Any JSON values; null removes a member, or all of them */
  metadata?: Record<string, unknown> | null;
  method?: "POST" | "PUT" | null;
  patterns?: string[] | null;
  /** null removes every deviation from the profile */
  policy?: PolicyPatch | null;
  /** Cannot change */
  profile?: string;
  /** own needs a live secret of the endpoint's own: rotate first */
  signing?: "own" | "environment" | null;
  uid?: string | null;
  url?: string;
}

export interface EndpointStats {
  /** What deviates from the status table or method by agreement with the receiver */
  agreements: ActiveAgreement[];
  /** Deliveries that ended without being accepted; counted up to 1000 */
  dead_letters: number;
  /** There are more than were counted */
  dead_letters_capped: boolean;
  endpoint_id: string;
  health: Health;
  /** Members of the policy that the endpoint overrides */
  overrides: string[];
  /** Deliveries that wait or are under way */
  pending: number;
  /** In force: the profile's defaults with the endpoint's overrides */
  policy: Policy;
  /** While it is disabled by failures: when it is tried again */
  reenable_at?: string;
  status: "active" | "paused" | "disabled";
  status_reason?: string;
}

export interface Environment {
  /** Of tenants that do not say */
  alert_emails: string[];
  /** Origins of pages that may show the portal in a frame */
  allowed_origins: string[];
  /** Absent on the one that every server has */
  created_at?: string;
  /** Policy of new endpoints that give none */
  endpoint_policy?: PolicyOverrides;
  /** Profile of new endpoints that name none. Absent: eds */
  endpoint_profile?: string;
  /** Whose keys sign for new endpoints that say nothing and whose profile allows it */
  endpoint_signing: "own" | "environment";
  /** Of tenants that do not say */
  event_validation: "" | "known" | "strict";
  id: string;
  /** Of tenants that do not say */
  limits: Limits;
  /** Shown to receivers, as livemode of CYBERCUBE events. Fixed when the environment is created */
  live: boolean;
  /** A request that changes something and names a tenant by a uid that there is not creates the tenant */
  make_tenants: boolean;
  name: string;
  /** Of tenants that do not say */
  require_idempotency_key: boolean;
  /** How long dead letters are kept. 0: as long as the server keeps them */
  retention_dead_letters_seconds: number;
  /** How long events, deliveries and attempts are kept once all deliveries of the event have ended. 0: as long as the server keeps them */
  retention_events_seconds: number;
  /** Look of the portal */
  theme?: Theme;
  /** Chosen by the caller; names the environment wherever its id does */
  uid: string;
  updated_at?: string;
  /** Grows with every change */
  version: number;
}

export interface EnvironmentDocument {
  alert_emails?: string[];
  /** Origins of pages that may show the portal in a frame, as in https://app.example.com. Absent: none may */
  allowed_origins?: string[];
  endpoint_policy?: PolicyOverrides;
  endpoint_profile?: "" | "eds" | "ojs" | "cybercube" | "standard-webhooks";
  /** Whose keys sign for new endpoints that say nothing: their own secrets, or the environment's keys if the profile is eds. Defaults to own. */
  endpoint_signing?: "own" | "environment";
  event_validation?: "" | "known" | "strict";
  /** Of tenants that do not say. Absent: the server's */
  limits?: Limits;
  live?: boolean;
  make_tenants?: boolean;
  name: string;
  require_idempotency_key?: boolean;
  /** At least 3600 and at most the server's retention. 0: the server's */
  retention_dead_letters_seconds?: number;
  /** At least 3600 and at most the server's retention. 0: the server's */
  retention_events_seconds?: number;
  /** Look of the portal */
  theme?: Theme;
  /** The one in the path */
  uid?: string;
}

export interface EnvironmentPatch {
  /** Replaced as a whole */
  alert_emails?: string[];
  /** Replaced as a whole */
  allowed_origins?: string[];
  /** Replaced as a whole */
  endpoint_policy?: PolicyOverrides;
  endpoint_profile?: "" | "eds" | "ojs" | "cybercube" | "standard-webhooks";
  endpoint_signing?: "own" | "environment";
  event_validation?: "" | "known" | "strict";
  /** Replaced as a whole */
  limits?: Limits;
  /** Cannot change */
  live?: boolean;
  make_tenants?: boolean;
  name?: string;
  require_idempotency_key?: boolean;
  retention_dead_letters_seconds?: number;
  retention_events_seconds?: number;
  /** Replaced as a whole */
  theme?: Theme;
  uid?: string;
}

export interface Event {
  attributes?: Record<string, string>;
  content_type: string;
  created_at: string;
  /** Header fields that go with every attempt as they came */
  headers?: EventHeader[];
  id: string;
  idempotency_key: string;
  /** Who posted it */
  principal: string;
  /** The source it came by, when it was relayed */
  source_id?: string;
  type: string;
}

export interface EventBatch {
  events: EventEnvelope[];
}

export interface EventDetail {
  attributes?: Record<string, string>;
  content_type: string;
  created_at: string;
  /** The newest 200 */
  deliveries: Delivery[];
  /** Header fields that go with every attempt as they came */
  headers?: EventHeader[];
  id: string;
  idempotency_key: string;
  /** Who posted it */
  principal: string;
  /** Length of the payload in bytes */
  size: number;
  /** The source it came by, when it was relayed */
  source_id?: string;
  type: string;
}

export interface EventEnvelope {
  /** What endpoint filters look at */
  attributes?: Record<string, string>;
  /** Media type of the payload. Defaults to application/json for data and to application/octet-stream for data_base64. */
  content_type?: string;
  /** The payload: any JSON, delivered byte for byte as it stands here. Exactly one of data and data_base64 is required. */
  data?: unknown;
  /** A payload that is not JSON */
  data_base64?: string;
  /** In a batch: the key of this event. A single event has its key in the header. */
  idempotency_key?: string;
  type: string;
}

export interface EventExplanation {
  /** The tenant's endpoints, newest first, and then deleted ones that the event went to */
  endpoints: Explanation[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface EventHeader {
  name: string;
  value: string;
}

export interface EventReplay {
  /** Only to these; absent: to all that it went to */
  endpoints?: string[];
}

export interface EventType {
  /** What the next version of the schema must keep to */
  compatibility?: "none" | "backward" | "forward" | "full";
  created_at?: string;
  deprecated: boolean;
  description: string;
  example?: unknown;
  name: string;
  /** JSON Schema (draft 2020-12) in force: of the payload, or of the whole event where it is a standard's */
  schema?: unknown;
  /** All tenants of the environment have it */
  shared: boolean;
  /** The standard that it is built in from; absent on others */
  standard?: "ojs" | "cybercube";
  updated_at?: string;
  /** Of the schema in force */
  version?: number;
}

export interface EventTypeDetail {
  /** What the next version of the schema must keep to */
  compatibility?: "none" | "backward" | "forward" | "full";
  created_at?: string;
  deprecated: boolean;
  description: string;
  example?: unknown;
  name: string;
  /** JSON Schema (draft 2020-12) in force: of the payload, or of the whole event where it is a standard's */
  schema?: unknown;
  /** All tenants of the environment have it */
  shared: boolean;
  /** The standard that it is built in from; absent on others */
  standard?: "ojs" | "cybercube";
  updated_at?: string;
  /** Of the schema in force */
  version?: number;
  /** First to last; the last is in force */
  versions: SchemaVersion[];
}

export interface EventTypeDraft {
  /** What later versions of the schema must keep to. backward: events of this version are valid by the next. forward: events of the next are valid by this one, so that receivers written for it go on working. full: both. Members that a schema does not name are not compared. Absent: what is declared stays. */
  compatibility?: "none" | "backward" | "forward" | "full";
  /** Producers should use another type. Nothing is refused for it. */
  deprecated?: boolean;
  description?: string;
  /** A payload that fits the schema */
  example?: unknown;
  /** JSON Schema (draft 2020-12) of the payload. format is checked; nothing outside is fetched. Absent: the one in force stays. */
  schema?: unknown;
}

export interface ExplainRequest {
  attributes?: Record<string, string>;
  /** Any JSON value */
  body?: unknown;
  /** A filter to try in place of the endpoint's own. It is checked, and not stored. */
  content_filter?: Record<string, unknown>;
  /** Id of a stored event. Without it, the event has the members type, attributes, headers, source and body. */
  event?: string;
  /** Kept header fields */
  headers?: Record<string, string>;
  /** Id of the source that it came through */
  source?: string;
  type?: string;
}

export interface ExplainedEndpoint {
  id: string;
  status: "active" | "paused" | "disabled" | "deleted";
  uid?: string;
  url: string;
}

export interface Explanation {
  /** Id of the delivery */
  delivery?: string;
  /** The reason in a sentence */
  detail: string;
  endpoint: ExplainedEndpoint;
  /** The event went to the endpoint, or is on its way */
  matched: boolean;
  /** Of the reason content: the place in content_filter that said no, as in body.amount.$gte */
  part?: string;
  reason: "matched" | "replayed" | "changed" | "held" | "event-type" | "attribute" | "content" | "paused" | "created-later" | "deleted" | "under-way" | "not-chosen";
  /** Status of the delivery */
  state?: "pending" | "accepted" | "terminal" | "exhausted" | "cancelled";
}

export interface ExportedDeadLetter {
  /** The payload, byte for byte */
  body_base64: string;
  /** The payload as text, where it is valid UTF-8 */
  body_text?: string;
  dead_at: string;
  delivery: Delivery;
  event: Event;
  /** One line about the last attempt */
  last_detail?: string;
  /** When it was sent again. If that fails for good too, there is a new dead letter. */
  replayed_at?: string;
}

export interface FailureCause {
  /** What to do about it */
  advice: string;
  cause: "certificate" | "dns" | "timeout" | "refused" | "connect" | "reset" | "tls" | "truncated" | "protocol" | "address" | "redirect" | "credential" | "request" | "server-error" | "client-error" | "response" | "other";
  /** HTTP status, if the receiver answered */
  code?: number;
  /** Failed attempts */
  count: number;
  /** How many endpoints */
  endpoints: number;
  /** Id of the endpoint with the most */
  example_endpoint: string;
  /** Id of its tenant */
  example_tenant: string;
  /** First seen within the range */
  first_at: string;
  /** Last seen within the range */
  last_at: string;
}

export interface Failures {
  /** The most frequent first */
  causes: FailureCause[];
  /** Since when the history covers the range: later than since if the server is younger, or keeps this step for a shorter time. Rates are right if they are divided by the time from here to covered_until */
  covered_since: string;
  /** Until when it covers the range: now, if the range ends later */
  covered_until: string;
  /** Beginning of the range: the one asked for, at the beginning of a step */
  since: string;
  /** End of the range, exclusive: at the end of a step */
  until: string;
}

export interface Field {
  /** What is wrong with it */
  detail: string;
  /** Path of the member, as in policy.max_retries or events[3].type */
  field: string;
}

export interface FixedLimit {
  description: string;
  name: string;
  unit?: "bytes" | "seconds";
  value: number;
}

export interface FoundEvent {
  attributes?: Record<string, string>;
  content_type: string;
  created_at: string;
  /** Header fields that go with every attempt as they came */
  headers?: EventHeader[];
  id: string;
  idempotency_key: string;
  /** The text with its surroundings, in one line */
  match?: string;
  /** Who posted it */
  principal: string;
  /** Length of the payload in bytes */
  size: number;
  /** The source it came by, when it was relayed */
  source_id?: string;
  type: string;
}

export interface HeaderField {
  name: string;
  value: string;
}

export interface Health {
  accepted: number;
  avg_duration_ms: number;
  /** Since when it is only probed */
  circuit_open_at?: string;
  consecutive_failures: number;
  consecutive_terminal: number;
  /** Too many of its attempts failed in the last hour */
  degraded: boolean;
  degraded_at?: string;
  /** Nothing is sent before this: the endpoint asked for it */
  hold_until?: string;
  last_accepted_at?: string;
  last_failure_at?: string;
  last_reason?: string;
  probe_at?: string;
  /** Attempts of any kind that were not accepted since the last accepted one */
  streak: number;
  /** When the endpoint said it would end */
  sunset_at?: string;
  terminal: number;
  transient: number;
}

export interface Hop {
  from: string;
  status: number;
  to: string;
}

export interface IssuedCredential {
  id: string;
  /** It is shown this once */
  secret: string;
}

export interface IssuedEndpoint {
  /** Kind of the credential; its values are never shown */
  auth_kind?: string;
  /** Conditions on the event's type, attributes, headers, source and body; see docs/filters.md */
  content_filter?: Record<string, unknown>;
  created_at: string;
  description: string;
  filter?: Record<string, string[]>;
  /** Names of the custom headers; values are never shown */
  header_names: string[];
  id: string;
  /** Any JSON values */
  metadata?: Record<string, unknown>;
  method: "POST" | "PUT";
  patterns: string[];
  /** Deviations from the profile */
  policy: PolicyOverrides;
  /** Wire dialect; fixed at creation */
  profile: "eds" | "ojs" | "cybercube" | "standard-webhooks";
  /** The same endpoint's short id, to be read aloud; taken wherever the id is */
  public_id: string;
  /** While it is disabled by failures: when it is tried again */
  reenable_at?: string;
  secret: IssuedSecret;
  /** Whose keys sign: the endpoint's own secrets, or the environment's signing keys */
  signing: "own" | "environment";
  status: "active" | "paused" | "disabled";
  status_at: string;
  status_reason?: string;
  tenant_id: string;
  /** Chosen by the owner, unique in the tenant; taken wherever the id is */
  uid?: string;
  updated_at: string;
  url: string;
  /** Grows with every change */
  version: number;
}

export interface IssuedKey {
  created_at: string;
  expires_at?: string;
  /** First characters of the token, to tell keys apart */
  hint: string;
  id: string;
  /** Principals that made the key: that of the key it was created with, and those that made that one. None of them and this key's principal can approve each other's commands. Empty for keys made with godwit keys create, and for keys older than this record. */
  made_by: string[];
  name: string;
  /** Identity that idempotency is scoped by; a key that replaces another keeps it */
  principal: string;
  revoked_at?: string;
  scopes: string[];
  /** The API key itself. It is shown this once and kept as a hash alone. */
  token: string;
}

export interface IssuedPortalLink {
  /** view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types */
  capabilities: string[];
  created_at: string;
  expires_at: string;
  hide_navigation?: boolean;
  id: string;
  /** The API key that made it */
  key_id?: string;
  name?: string;
  return_url?: string;
  /** Seconds that its session lives at most */
  session_expires_in: number;
  /** The session that was made from it */
  session_id?: string;
  start_page?: string;
  tenant_id: string;
  theme?: "light" | "dark" | "system";
  /** Give it to the tenant's browser. It holds the code, which is shown this once and kept as a hash alone. */
  url: string;
  used_at?: string;
}

export interface IssuedSecret {
  algorithm: "hmac-sha256" | "ed25519";
  created_at: string;
  expires_at?: string;
  /** Last four characters of its value */
  hint?: string;
  /** Also the keyid of signatures made with it */
  id: string;
  /** Whether it signs now */
  live: boolean;
  not_before: string;
  /** Ed25519 public key: standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory */
  public_key?: string;
  /** The value was shown to an earlier request with this Idempotency-Key and is kept nowhere; who lost it rotates again */
  secret_redacted?: boolean;
  /** It is a signing key of the environment, which signs for other endpoints too */
  shared?: boolean;
  /** The shared secret, in the profile's form; it is shown this once. eds: standard base64 of the key of 32 bytes, to be decoded before use. ojs, cybercube: the text itself is the key. standard-webhooks: whsec_ and base64 of the key. Absent where the public key is enough. */
  value?: string;
}

export interface IssuedSigningKey {
  algorithm: "ed25519";
  created_at: string;
  expires_at?: string;
  /** Also the keyid of signatures made with it */
  id: string;
  /** Whether it signs now */
  live: boolean;
  /** When the other keys stop signing */
  others_until: string;
  /** Standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory */
  public_key: string;
}

export interface IssuedSource {
  /** The acknowledgment that holds */
  acknowledged?: Acknowledgment;
  adopt: boolean;
  created_at: string;
  /** Without secrets */
  credentials: SourceCredential[];
  description?: string;
  event_type: SourceEventType;
  id: string;
  /** The credential that was made; absent where you brought your own */
  issued?: IssuedCredential;
  keep_headers: string[];
  /** What stands behind the key id of signatures on its events, so that receivers tell it from other upstreams */
  key_id_suffix: string;
  /** When the last authentic request came, to the minute; absent: none has come */
  last_received_at?: string;
  /** The mode that is wanted */
  mode: "store-and-forward" | "pass-through";
  /** store-and-forward only while an acknowledgment of the service description holds */
  mode_in_force?: "store-and-forward" | "pass-through";
  name: string;
  /** Where the upstream delivers */
  path: string;
  /** The same place by the tenant's public id and the source's name */
  public_path?: string;
  scheme: "eds" | "ojs" | "cybercube" | "standard-webhooks" | "github" | "stripe" | "shopify" | "slack" | "twilio" | "paypal" | "bearer" | "basic" | "mtls";
  settings: SourceSettings;
  status: "active" | "paused";
  tenant_id: string;
  updated_at: string;
  version: number;
}

export interface Key {
  created_at: string;
  expires_at?: string;
  /** First characters of the token, to tell keys apart */
  hint: string;
  id: string;
  /** Principals that made the key: that of the key it was created with, and those that made that one. None of them and this key's principal can approve each other's commands. Empty for keys made with godwit keys create, and for keys older than this record. */
  made_by: string[];
  name: string;
  /** Identity that idempotency is scoped by; a key that replaces another keeps it */
  principal: string;
  revoked_at?: string;
  scopes: string[];
}

export interface KeyRotation {
  /** How long the other keys go on signing beside the new one. Defaults to 86400. */
  overlap_seconds?: number;
}

export interface Limits {
  /** Events that may come at once. Absent: those of a second */
  burst?: number;
  /** Endpoints that the tenant's own keys may create in a minute; more are answered with 429. Absent: 60, unless the server has another default */
  endpoint_creations_per_minute?: number;
  /** Endpoints that the tenant may have; more are answered with 403 */
  endpoints?: number;
  /** Events that the tenant may bring in a second, over all nodes; more are answered with 429. Absent: no limit, unless the server has one */
  events_per_second?: number;
  /** Size of an event's payload; the server's limit applies too. Larger ones are answered with 413 */
  payload_bytes?: number;
  /** Deliveries that may wait; while so many do, events are answered with 429. Absent: no limit, unless the server has one */
  waiting_deliveries?: number;
}

export interface ListAcknowledgment {
  items: Acknowledgment[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListBroadcast {
  items: Broadcast[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListBroadcastTenant {
  items: BroadcastTenant[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListDeadLetter {
  items: DeadLetter[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListDelivery {
  items: Delivery[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListEndpoint {
  items: Endpoint[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListEnvironment {
  items: Environment[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListEvent {
  items: Event[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListEventType {
  items: EventType[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListKey {
  items: Key[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListNotice {
  items: Notice[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListPortalLink {
  items: PortalLink[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListRejection {
  items: Rejection[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListSession {
  items: Session[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListSource {
  items: Source[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListTenant {
  items: Tenant[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface ListTenantUsage {
  items: TenantUsage[];
  /** Pass as cursor to get the next page; absent on the last one */
  next_cursor?: string;
}

export interface NewAcknowledgment {
  /** Who agreed to it, on the upstream's side */
  by: string;
  /** Of the service description that was read, at /.well-known/webhook-service */
  version: string;
}

export interface NewCredential {
  /** eds: key id of the upstream's signatures; basic: its user name. Else made here. */
  id?: string;
  /** eds: Ed25519 key in base64; standard-webhooks: whpk_…; paypal: certificate in PEM; mtls: SHA-256 fingerprint of the certificate */
  public_key?: string;
  /** Shared secret, token or password. Kept encrypted. */
  secret?: string;
}

export interface NewEndpoint {
  /** How requests are signed. Defaults to the profile's first. */
  algorithm?: "hmac-sha256" | "ed25519";
  auth?: Auth;
  /** Conditions on the event's type, attributes, headers, source and body, such as {"body": {"amount": {"$gte": 100}}}; all must hold. See docs/filters.md. */
  content_filter?: Record<string, unknown>;
  description?: string;
  /** For each attribute named, the event's value must be one of those listed */
  filter?: Record<string, string[]>;
  /** Added to every request; values are kept encrypted and never shown */
  headers?: Record<string, string>;
  /** What you keep about the endpoint: any JSON values. It has no effect. */
  metadata?: Record<string, unknown>;
  /** PUT needs policy.agreement. Defaults to POST. */
  method?: "POST" | "PUT";
  /** Event types to deliver: exact, prefix.* or *. Defaults to ["*"]. */
  patterns?: string[];
  /** Whether it starts paused */
  paused?: boolean;
  policy?: PolicyOverrides;
  /** Wire dialect: eds, ojs, cybercube or standard-webhooks. Defaults to eds. */
  profile?: "eds" | "ojs" | "cybercube" | "standard-webhooks";
  /** Your own signing key, in the form in which the profile shows keys. It is kept encrypted. Defaults to a new one. */
  secret?: string;
  /** own: the endpoint has secrets of its own. environment: the environment's signing keys sign; profile eds. Defaults to the environment's endpoint_signing, and to own with an algorithm or a secret. */
  signing?: "own" | "environment";
  /** An id of your own, unique in the tenant */
  uid?: string;
  /** Where to deliver; https unless the operator allows http */
  url: string;
}

export interface NewEnvironment {
  alert_emails?: string[];
  /** Origins of pages that may show the portal in a frame, as in https://app.example.com. Absent: none may */
  allowed_origins?: string[];
  endpoint_policy?: PolicyOverrides;
  endpoint_profile?: "" | "eds" | "ojs" | "cybercube" | "standard-webhooks";
  /** Whose keys sign for new endpoints that say nothing: their own secrets, or the environment's keys if the profile is eds. Defaults to own. */
  endpoint_signing?: "own" | "environment";
  event_validation?: "" | "known" | "strict";
  /** Of tenants that do not say. Absent: the server's */
  limits?: Limits;
  live?: boolean;
  make_tenants?: boolean;
  name: string;
  require_idempotency_key?: boolean;
  /** At least 3600 and at most the server's retention. 0: the server's */
  retention_dead_letters_seconds?: number;
  /** At least 3600 and at most the server's retention. 0: the server's */
  retention_events_seconds?: number;
  /** Look of the portal */
  theme?: Theme;
  uid: string;
}

export interface NewKey {
  /** From then on it is refused; absent: never */
  expires_at?: string;
  name: string;
  /** Id of a key of this tenant whose place it takes. The new key acts under the same principal, so that repeated requests stay the same requests; the old key works until it is deleted. */
  replaces?: string;
  /** What it may do. A key can grant no scope that it lacks; one with admin can grant metrics, too. */
  scopes: Array<"ingest" | "read" | "manage" | "admin" | "audit" | "metrics">;
}

export interface NewPortalLink {
  /** What the session may do; none implies another */
  capabilities: Array<"view_endpoints" | "manage_endpoints" | "secrets" | "send_tests" | "view_payloads" | "replay" | "event_types">;
  /** Seconds within which the link can be used, 10 to 604800. Defaults to 600 */
  expires_in?: number;
  /** For a portal in a frame of a page with navigation of its own */
  hide_navigation?: boolean;
  /** For lists */
  name?: string;
  /** Where the portal leads back to */
  return_url?: string;
  /** Seconds that the session lives at most, 60 to 2592000. Defaults to 86400 */
  session_expires_in?: number;
  /** Page of the portal that is shown first */
  start_page?: string;
  /** Id or uid of the tenant; absent: the one that the request is made for */
  tenant?: string;
  theme?: "light" | "dark" | "system";
}

export interface NewSource {
  /** Take deliveries without Idempotency-Key: one is made of the upstream's delivery id */
  adopt?: boolean;
  /** What deliveries are verified with. Absent: a secret is made, where the scheme lets us choose it. */
  credentials?: NewCredential[];
  description?: string;
  /** Defaults to what a CloudEvent or the scheme tells */
  event_type?: SourceEventType;
  /** Header fields that go on to the endpoints as they came */
  keep_headers?: string[];
  /** Defaults to store-and-forward, which needs an acknowledgment to be in force */
  mode?: "store-and-forward" | "pass-through";
  /** Letters, digits, '-', '_' and '.'; unique in the tenant */
  name: string;
  /** How the upstream proves who it is: eds, ojs, cybercube, standard-webhooks, github, stripe, shopify, slack, twilio, paypal, bearer, basic or mtls */
  scheme: "eds" | "ojs" | "cybercube" | "standard-webhooks" | "github" | "stripe" | "shopify" | "slack" | "twilio" | "paypal" | "bearer" | "basic" | "mtls";
  settings?: SourceSettings;
}

export interface NewTenant {
  /** E-mail addresses that are told of dead letters, degraded and disabled endpoints. Absent: the environment's */
  alert_emails?: string[];
  /** Absent: as the environment says */
  event_validation?: "" | "known" | "strict";
  /** Absent: the environment's */
  limits?: Limits;
  name: string;
  /** Absent: as the environment says */
  require_idempotency_key?: boolean;
  /** An id of your own, unique in the environment */
  uid?: string;
}

export interface Node {
  /** URL at which clients reach it */
  address: string;
  /** It has said so within the time that its leases last */
  alive: boolean;
  /** Deliveries in its memory, as of its last beat */
  held: number;
  /** Requests in flight, as of its last beat */
  in_flight: number;
  /** How long the oldest delivery had been waiting for the node alone at its last beat */
  lag_seconds: number;
  /** How long ago that was */
  last_beat_age_seconds: number;
  /** When it last said that it is alive, by the database's clock */
  last_beat_at?: string;
  name: string;
  /** Process and host */
  process: string;
  /** Version of the database's schema that the program was made for */
  schema: number;
  /** How many shards it owns now */
  shards: number;
  /** By the database's clock */
  started_at?: string;
  /** starting: it has taken its name and not run yet, or its start failed; leaving: it is stopping and gives its shards to others, or has stopped */
  state: "starting" | "running" | "leaving";
  /** Version of the program */
  version: string;
}

export interface NodeVersion {
  /** Names of the nodes that run it */
  nodes: string[];
  schema: number;
  version: string;
}

export interface Nodes {
  /** Name of the node that answered this request */
  answered_by: string;
  /** By the database's clock */
  at: string;
  /** How many shards no live node owns */
  free_shards: number;
  /** By name; also those that have stopped, for 30 days */
  nodes: Node[];
  shards: Shard[];
  /** What the live nodes run. More than one: an upgrade is not finished. */
  versions: NodeVersion[];
}

export interface Notice {
  acknowledged_at?: string;
  acknowledged_by?: string;
  created_at: string;
  delivery_id?: string;
  detail?: string;
  endpoint_id?: string;
  event_id?: string;
  id: string;
  kind: string;
  /** Link field of a 451 response */
  link?: string;
}

export interface Option {
  default: string;
  description: string;
  group: string;
  /** Its place in a configuration file */
  key: string;
  /** The flag, without dashes */
  name: string;
  /** Where the value came from: default, flag, environment with the variable, file with the line, or program */
  origin: string;
  /** It holds a secret, or may */
  secret: boolean;
  /** A secret is not shown: (set), or a URL without its password */
  value: string;
  /** Its environment variable */
  variable: string;
}

export interface Palette {
  /** Buttons and links, as #rrggbb */
  accent?: string;
  background?: string;
  border?: string;
  /** Text of less weight */
  muted?: string;
  /** Tables and forms */
  surface?: string;
  text?: string;
}

export interface Pause {
  /** Shown as status_reason */
  reason?: string;
}

export interface Policy {
  /** Attempts of all the tenant's endpoints that have it, in any minute; 0 is no limit */
  account_per_minute: number;
  /** Its dead letters and bad health are told to the tenant's alert addresses */
  alert: boolean;
  /** webhook.* events tell about its deliveries */
  announce: boolean;
  base_seconds: number;
  burst: number;
  cap_seconds: number;
  circuit_after: number;
  concurrency: number;
  dedup_window_seconds: number;
  /** Share of failed attempts in an hour above which it is degraded; 0: not watched */
  degraded_above: number;
  disable_after: number;
  /** Attempts in a row that were not accepted; 0 never */
  disable_after_failures: number;
  hold_scope: string;
  key_alphabet?: "printable" | "alphanumeric" | "hex";
  key_max_length?: number;
  /** What the receiver has published about idempotency keys; those that are made here keep to it */
  key_min_length?: number;
  max_elapsed_seconds: number;
  max_retries: number;
  multi_status: boolean;
  /** Attempts in any minute; 0 is no limit */
  per_minute: number;
  /** Attempts in any second; 0 is no limit */
  per_second: number;
  /** 0 is no limit */
  rate_per_second: number;
  /** How long it rests when disabled by failures; 0 is until it is resumed */
  reenable_after_seconds: number;
  /** A 401 gets one more attempt at once, newly signed and with a renewed token */
  refresh_on_401: boolean;
  /** Which signatures go out while two secrets are live: both, old-first or old-only */
  rotation?: string;
  schedule_seconds?: number[];
  /** Events that come while the endpoint is paused are not for it */
  skip_while_paused: boolean;
  statuses?: Record<string, string>;
  timeout_seconds: number;
}

export interface PolicyOverrides {
  account_per_minute?: number;
  agreement?: Agreement;
  alert?: boolean;
  announce?: boolean;
  base_seconds?: number;
  burst?: number;
  cap_seconds?: number;
  circuit_after?: number;
  concurrency?: number;
  dedup_window_seconds?: number;
  disable_after?: number;
  disable_after_failures?: number;
  hold_scope?: string;
  key_alphabet?: string;
  key_max_length?: number;
  key_min_length?: number;
  max_elapsed_seconds?: number;
  max_retries?: number;
  multi_status?: boolean;
  per_minute?: number;
  per_second?: number;
  rate_per_second?: number;
  reenable_after_seconds?: number;
  refresh_on_401?: boolean;
  rotation?: string;
  skip_while_paused?: boolean;
  statuses?: Record<string, string>;
  timeout_seconds?: number;
}

export interface PolicyPatch {
  account_per_minute?: number | null;
  agreement?: AgreementPatch | null;
  alert?: boolean | null;
  announce?: boolean | null;
  base_seconds?: number | null;
  burst?: number | null;
  cap_seconds?: number | null;
  circuit_after?: number | null;
  concurrency?: number | null;
  dedup_window_seconds?: number | null;
  disable_after?: number | null;
  disable_after_failures?: number | null;
  hold_scope?: string | null;
  key_alphabet?: string | null;
  key_max_length?: number | null;
  key_min_length?: number | null;
  max_elapsed_seconds?: number | null;
  max_retries?: number | null;
  multi_status?: boolean | null;
  per_minute?: number | null;
  per_second?: number | null;
  rate_per_second?: number | null;
  reenable_after_seconds?: number | null;
  refresh_on_401?: boolean | null;
  rotation?: string | null;
  skip_while_paused?: boolean | null;
  statuses?: Record<string, string | null> | null;
  timeout_seconds?: number | null;
}

export interface Portal {
  environment: PortalEnvironment;
  /** Absent if the request is made for the environment itself */
  tenant?: PortalTenant;
  /** Members that are absent have the portal's own look */
  theme: Theme;
}

export interface PortalEnvironment {
  id: string;
  live: boolean;
  name: string;
  uid: string;
}

export interface PortalLink {
  /** view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types */
  capabilities: string[];
  created_at: string;
  expires_at: string;
  hide_navigation?: boolean;
  id: string;
  /** The API key that made it */
  key_id?: string;
  name?: string;
  return_url?: string;
  /** Seconds that its session lives at most */
  session_expires_in: number;
  /** The session that was made from it */
  session_id?: string;
  start_page?: string;
  tenant_id: string;
  theme?: "light" | "dark" | "system";
  used_at?: string;
}

export interface PortalTenant {
  id: string;
  name: string;
  uid?: string;
}

export interface Probe {
  /** The beginning of the answer's body */
  body?: string;
  /** What went wrong on the way */
  detail?: string;
  duration_ms: number;
  failure_class?: "transport" | "application";
  outcome: "accepted" | "transient" | "terminal";
  reason: string;
  /** HTTP status; absent when none arrived */
  status?: number;
  /** Where the last hop went */
  url: string;
}

export interface Problem {
  /** Stable code of the kind of problem; decide by this */
  code: string;
  /** What happened this time, for people */
  detail?: string;
  /** Outcomes at the endpoints that have not accepted a relayed event */
  downstream?: Downstream[];
  /** The fields that are wrong */
  errors?: Field[];
  /** Name of the request in the server's log */
  request_id?: string;
  /** HTTP status code */
  status: number;
  /** Short summary; the same for every problem of this kind */
  title: string;
  /** Documentation of this kind of problem */
  type: string;
}

export interface Purge {
  /** true: every dead letter of the tenant. Required where no filter is given, and refused beside one. */
  all?: boolean;
  /** Only of this endpoint */
  endpoint?: string;
  /** How many at most in this request */
  limit?: number;
  /** Only with this reason */
  reason?: string;
  /** Also those that were replayed since */
  replayed?: boolean;
  /** Dead at or after */
  since?: string;
  status?: "terminal" | "exhausted";
  /** Only events of this type */
  type?: string;
  /** Dead before */
  until?: string;
}

export interface Purged {
  /** There may be more that match */
  more: boolean;
  /** Dead letters that were removed */
  purged: number;
}

export interface ReceiverProblem {
  detail?: string;
  status?: number;
  title?: string;
  type?: string;
}

export interface Rejection {
  at: string;
  /** Problem code */
  code: string;
  detail?: string;
  /** Names alone */
  headers: string[];
  id: string;
  method: string;
  /** What authentication found wrong */
  reason?: string;
  remote_addr: string;
  /** Length of the body in bytes; -1 when it is not known */
  size: number;
  /** What was answered */
  status: number;
}

export interface RevokedSecret {
  endpoint_id: string;
  /** It no longer signs */
  secret_id: string;
}

export interface RevokedSigningKey {
  environment_id: string;
  /** It no longer signs */
  key_id: string;
}

export interface Rotation {
  /** Defaults to that of the newest secret */
  algorithm?: "hmac-sha256" | "ed25519";
  /** How long the old secrets go on signing beside the new one. Defaults to 86400. */
  overlap_seconds?: number;
  /** Your own signing key, in the form in which the profile shows keys. Defaults to a new one. */
  secret?: string;
}

export interface Run {
  /** Who asked for it */
  actor?: string;
  attempt_count: number;
  first_at?: string;
  /** What started it: accept, manual, replay or test */
  trigger: string;
}

export interface SchemaVersion {
  created_at?: string;
  schema: unknown;
  version: number;
}

export interface SearchEnd {
  /** Pass as cursor to go on; absent if no event is left */
  next?: string;
  /** all: no event is left; limit: as many were found as wanted; bound: one search examines no more */
  reason: "all" | "limit" | "bound";
  /** Events examined */
  scanned: number;
}

export interface SearchLine {
  /** The last line. A search without it was cut off. */
  end?: SearchEnd;
  event?: FoundEvent;
  progress?: SearchProgress;
}

export interface SearchProgress {
  /** When the last of them was created */
  reached: string;
  /** Events examined so far */
  scanned: number;
}

export interface Secret {
  algorithm: "hmac-sha256" | "ed25519";
  created_at: string;
  expires_at?: string;
  /** Last four characters of its value */
  hint?: string;
  /** Also the keyid of signatures made with it */
  id: string;
  /** Whether it signs now */
  live: boolean;
  not_before: string;
  /** Ed25519 public key: standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory */
  public_key?: string;
  /** It is a signing key of the environment, which signs for other endpoints too */
  shared?: boolean;
}

export interface SecretList {
  items: Secret[];
}

export interface Session {
  /** Address that it was made from */
  address: string;
  /** What a portal session may do: view_endpoints, manage_endpoints, secrets, send_tests, view_payloads, replay, event_types */
  capabilities?: string[];
  created_at: string;
  /** Whether it is the session of this request */
  current: boolean;
  environment?: SessionEnvironment;
  /** It ends then in any case */
  expires_at: string;
  hide_navigation?: boolean;
  id: string;
  /** It ends then unless it is used before */
  idle_until: string;
  /** The API key that a dashboard session acts like */
  key_id?: string;
  kind: "dashboard" | "portal";
  /** Up to a minute older than the last request */
  last_used_at: string;
  /** The link that it was made from */
  link_id?: string;
  /** Name of the API key, the user or the portal link */
  name: string;
  /** Where a portal leads back to */
  return_url?: string;
  /** Of the API key or the user; a portal has capabilities instead */
  scopes: string[];
  start_page?: string;
  /** The user as the identity provider names it */
  subject?: string;
  /** The tenant of the API key or the portal; absent for a key of an environment */
  tenant?: SessionTenant;
  theme?: "light" | "dark" | "system";
  /** Name of the user, if it was signed in by an identity provider: a verified e-mail address, a login name or a name */
  user?: string;
  user_agent: string;
  /** The user as evidence names it; it follows from the provider and the subject, and never changes */
  user_id?: string;
}

export interface SessionEnvironment {
  id: string;
  name: string;
  uid: string;
}

export interface SessionTenant {
  id: string;
  name: string;
  uid?: string;
}

export interface Settings {
  /** Version of Go that built it */
  go: string;
  /** Bounds that no setting changes */
  limits: FixedLimit[];
  /** Name of the node that answered */
  node: string;
  /** Every setting, in the order of the reference page */
  options: Option[];
  /** Revision of its source */
  revision?: string;
  started_at: string;
  store: StoreSettings;
  /** Version of the program */
  version: string;
}

export interface Shard {
  /** Grows with every change of owner */
  epoch: number;
  /** No live node owns it */
  free: boolean;
  /** Name of the node that has the lease, or had it until it fell silent; empty: released */
  owner: string;
  shard: number;
}

export interface SignIn {
  /** The code of a sign-in link or portal link, which is behind #code= in its URL. It is good for one sign-in */
  code?: string;
  /** An API key. The session acts like it */
  key?: string;
}

export interface SignInLink {
  expires_at: string;
  /** Opens the dashboard signed in, once. The code behind # is not sent to the server when the page is loaded */
  url: string;
}

export interface SignInMethod {
  kind: "api_key" | "oidc";
  /** What a person chooses by, such as the name of the identity provider */
  name: string;
  /** oidc: the page that leads to the provider's own sign-out, if it is known to have one */
  sign_out_url?: string;
  /** oidc: the page that begins the sign-in. Its parameter return names the page of the dashboard to open afterwards, as in ?return=/ui/events */
  start_url?: string;
}

export interface SignInMethods {
  items: SignInMethod[];
}

export interface SigningKey {
  algorithm: "ed25519";
  created_at: string;
  expires_at?: string;
  /** Also the keyid of signatures made with it */
  id: string;
  /** Whether it signs now */
  live: boolean;
  /** Standard base64 of its 32 bytes; also published under /.well-known/http-message-signatures-directory */
  public_key: string;
}

export interface SigningKeyList {
  items: SigningKey[];
}

export interface Source {
  /** The acknowledgment that holds */
  acknowledged?: Acknowledgment;
  adopt: boolean;
  created_at: string;
  /** Without secrets */
  credentials: SourceCredential[];
  description?: string;
  event_type: SourceEventType;
  id: string;
  keep_headers: string[];
  /** What stands behind the key id of signatures on its events, so that receivers tell it from other upstreams */
  key_id_suffix: string;
  /** When the last authentic request came, to the minute; absent: none has come */
  last_received_at?: string;
  /** The mode that is wanted */
  mode: "store-and-forward" | "pass-through";
  /** store-and-forward only while an acknowledgment of the service description holds */
  mode_in_force?: "store-and-forward" | "pass-through";
  name: string;
  /** Where the upstream delivers */
  path: string;
  /** The same place by the tenant's public id and the source's name */
  public_path?: string;
  scheme: "eds" | "ojs" | "cybercube" | "standard-webhooks" | "github" | "stripe" | "shopify" | "slack" | "twilio" | "paypal" | "bearer" | "basic" | "mtls";
  settings: SourceSettings;
  status: "active" | "paused";
  tenant_id: string;
  updated_at: string;
  version: number;
}

export interface SourceCredential {
  created_at: string;
  expires_at?: string;
  /** Last four characters of the secret */
  hint?: string;
  /** Key id of signatures, user name, or ours */
  id: string;
  public_key?: string;
}

export interface SourceDraft {
  /** Take deliveries without Idempotency-Key: one is made of the upstream's delivery id */
  adopt?: boolean;
  /** Used when the source is created; afterwards they change by rotate */
  credentials?: NewCredential[];
  description?: string;
  /** Defaults to what a CloudEvent or the scheme tells */
  event_type?: SourceEventType;
  /** Header fields that go on to the endpoints as they came */
  keep_headers?: string[];
  /** Defaults to store-and-forward, which needs an acknowledgment to be in force */
  mode?: "store-and-forward" | "pass-through";
  /** The one in the path */
  name?: string;
  /** As in NewSource; cannot change */
  scheme: string;
  settings?: SourceSettings;
}

export interface SourceEventType {
  /** This one; or what stands in where header or member are not there */
  fixed?: string;
  /** Value of this header field */
  header?: string;
  /** Text at this path of members in a JSON body, joined with dots */
  member?: string;
}

export interface SourcePatch {
  adopt?: boolean | null;
  description?: string | null;
  event_type?: Record<string, unknown> | null;
  keep_headers?: string[] | null;
  mode?: "store-and-forward" | "pass-through" | null;
  name?: string;
  /** Cannot change */
  scheme?: string;
  settings?: Record<string, unknown> | null;
}

export interface SourceRotation {
  /** The new one. Absent: one is made, where the scheme lets us choose it. */
  credential?: NewCredential;
  /** How long the old ones are good beside the new one. Defaults to 86400. */
  overlap_seconds?: number;
}

export interface SourceSettings {
  /** Deliveries are commands, submitted in the name of the API key with this id; see /ids/v1 */
  commands_as?: string;
  /** adopt: header with the upstream's own id of a delivery, in place of the scheme's */
  delivery_header?: string;
  /** eds: label of a signature that is the origin's own and goes on untouched */
  end_to_end?: string;
  /** Take an Idempotency-Key without quotes as well; it goes on as it came */
  lenient_key?: boolean;
  /** eds: where the agreement is written that lets the upstream use PUT */
  put_agreement?: string;
  /** paypal: id of the webhook, which is signed but not sent */
  webhook_id?: string;
}

export interface Stats {
  /** Since when the history covers the range: later than since if the server is younger, or keeps this step for a shorter time. Rates are right if they are divided by the time from here to covered_until */
  covered_since: string;
  /** Until when it covers the range: now, if the range ends later */
  covered_until: string;
  /** With group: how many there are; groups has limit of them at most */
  group_count?: number;
  /** With group: those with the most failed attempts first */
  groups?: StatsGroup[];
  /** One for each step, also those without traffic */
  points: StatsPoint[];
  /** Beginning of the range: the one asked for, at the beginning of a step */
  since: string;
  step: "minute" | "hour" | "day";
  /** Of all points */
  total: StatsCounts;
  /** End of the range, exclusive: at the end of a step */
  until: string;
}

export interface StatsCounts {
  /** Attempts that the receiver acknowledged; each ends its delivery */
  acknowledged: number;
  /** Attempts to deliver, of any outcome */
  attempts: number;
  /** Deliveries that became dead letters */
  dead: number;
  /** Events accepted; of an endpoint: events for it */
  events: number;
  /** The other attempts */
  failed_attempts: number;
  /** Half of the acknowledged deliveries took no longer than this from the acceptance of the event to the receiver's answer, waits and retries included. Off by 6.25 % at most; absent if there were none. Replays do not count */
  p50_ms?: number;
  /** 99 of 100 took no longer */
  p99_ms?: number;
}

export interface StatsGroup {
  /** Id of the endpoint */
  endpoint?: string;
  points: StatsPoint[];
  /** Id of the tenant */
  tenant: string;
  total: StatsCounts;
}

export interface StatsPoint {
  /** Attempts that the receiver acknowledged; each ends its delivery */
  acknowledged: number;
  /** Beginning of the step */
  at: string;
  /** Attempts to deliver, of any outcome */
  attempts: number;
  /** Deliveries that became dead letters */
  dead: number;
  /** Events accepted; of an endpoint: events for it */
  events: number;
  /** The other attempts */
  failed_attempts: number;
  /** Half of the acknowledged deliveries took no longer than this from the acceptance of the event to the receiver's answer, waits and retries included. Off by 6.25 % at most; absent if there were none. Replays do not count */
  p50_ms?: number;
  /** 99 of 100 took no longer */
  p99_ms?: number;
}

export interface StoreSettings {
  backend: "sqlite" | "postgres";
  /** What an acknowledgement guarantees */
  durability: string;
  /** Path, or host and database */
  location: string;
  /** Version of the schema */
  schema: number;
  version: string;
}

export interface StreamedAttempt {
  delivery_id: string;
  /** Of the delivery, after the attempt */
  delivery_status: string;
  duration_ms: number;
  endpoint_id: string;
  event_id: string;
  event_type: string;
  failure_class?: "transport" | "application";
  id: string;
  /** 1 for the first, over all runs */
  n: number;
  /** When the next attempt is due */
  next_at?: string;
  outcome: "accepted" | "transient" | "terminal";
  reason: string;
  /** unknown: the receiver may or may not have got it */
  receiver_state?: "unknown";
  /** The request as it was sent, secrets masked. Of acknowledged attempts a busy server keeps it of a sample */
  request?: AttemptRequest;
  /** The response as it was received; absent if there was none */
  response?: AttemptResponse;
  /** Least wait that the receiver asked for */
  retry_after_seconds?: number;
  started_at: string;
  /** HTTP status; absent when none arrived */
  status?: number;
  /** Where the time went; absent if it was not measured */
  timing?: AttemptTiming;
  /** What was seen, for people who ask what happened */
  trace: Trace;
  trigger: string;
  url: string;
}

export interface Tenant {
  /** Its short id, as CYBERCUBE events name it */
  account_id: string;
  /** Who is told of dead letters, degraded and disabled endpoints */
  alert_emails: string[];
  created_at: string;
  environment_id: string;
  /** known: events whose type has a schema must fit it. strict: types that are not in the catalogue are refused too. Empty: anything goes. */
  event_validation: "" | "known" | "strict";
  /** How it does, in a list with health=true */
  health?: TenantHealth;
  id: string;
  /** The members above that are the environment's */
  inherits: Array<"require_idempotency_key" | "event_validation" | "alert_emails" | "limits">;
  /** What the tenant may use. The server's defaults hold for absent members */
  limits: Limits;
  name: string;
  /** How many event types it has beside those that its environment shares */
  own_event_types: number;
  /** Events without Idempotency-Key are refused */
  require_idempotency_key: boolean;
  /** Chosen by the caller, unique in the environment; names the tenant wherever its id does */
  uid?: string;
  /** Grows with every change */
  version: number;
}

export interface TenantHealth {
  /** Its endpoints by their state. Each is counted once, under the first that applies */
  endpoints: WaitingEndpoints;
  /** When a receiver last acknowledged a delivery; absent: none has */
  last_accepted_at?: string;
  /** Deliveries that wait or are under way; counted up to 1000 */
  waiting: number;
  /** There may be more than were counted */
  waiting_capped: boolean;
}

export interface TenantPatch {
  /** Replaced as a whole */
  alert_emails?: string[];
  event_validation?: "" | "known" | "strict";
  /** Members that are the environment's from now on. Replaced as a whole; a member that is given itself is the tenant's own */
  inherits?: Array<"require_idempotency_key" | "event_validation" | "alert_emails" | "limits">;
  /** Replaced as a whole */
  limits?: Limits;
  name?: string;
  require_idempotency_key?: boolean;
  uid?: string;
}

export interface TenantUsage {
  /** Days with usage, in order */
  days: DayUsage[];
  tenant_id: string;
  /** The caller's own id of the tenant */
  tenant_uid?: string;
  /** Of all the days below */
  total: Usage;
}

export interface Theme {
  /** Colours of the dark look */
  dark?: Palette;
  /** As logo */
  favicon?: string;
  /** A list of font families, as in CSS */
  font?: string;
  /** Colours of the light look */
  light?: Palette;
  /** A PNG or SVG image as a data URL in base64, at most 32 KiB */
  logo?: string;
  /** Radius of corners in pixels, 0 to 16 */
  radius?: number;
  words?: ThemeWords;
}

export interface ThemeWords {
  deliveries?: string;
  endpoints?: string;
  event_types?: string;
  /** Where the help link leads: an https URL */
  help_url?: string;
  title?: string;
}

export interface Trace {
  actor?: string;
  detail?: string;
  hops?: Hop[];
  link?: string;
  problem?: ReceiverProblem;
  proto?: string;
  remote_addr?: string;
  response_body?: string;
  response_content_type?: string;
  retry_after?: string;
  signed_with?: string[];
}

export interface Usage {
  /** Attempts to deliver, of any outcome */
  attempts: number;
  /** Payloads of the events, as they are stored */
  bytes_accepted: number;
  /** Bodies of the requests to endpoints, one for each attempt */
  bytes_sent: number;
  /** Deliveries made: one for each endpoint that an event goes to */
  deliveries: number;
  /** Events accepted; the repeat of a request counts no second time */
  events: number;
}

export interface UsageTotal {
  /** Days with usage, in order */
  days: DayUsage[];
  /** Of all the days below */
  total: Usage;
}

export interface Waiting {
  endpoints: WaitingEndpoints;
  /** Since when the delivery is due that is due for longest, or when the next one is due; absent if none waits */
  oldest_at?: string;
  /** Deliveries that wait or are under way; counted up to 100000 */
  waiting: number;
  /** There are more than were counted */
  waiting_capped: boolean;
}

export interface WaitingEndpoints {
  disabled: number;
  /** The last attempt failed, or too many did in the last hour */
  failing: number;
  healthy: number;
  /** With an open circuit: only probed */
  open: number;
  paused: number;
}

export interface Wire {
  c?: boolean;
  p?: string[];
  q?: string[];
  t?: number[];
}

export interface WrittenEndpoint {
  /** Kind of the credential; its values are never shown */
  auth_kind?: string;
  /** Conditions on the event's type, attributes, headers, source and body; see docs/filters.md */
  content_filter?: Record<string, unknown>;
  created_at: string;
  description: string;
  filter?: Record<string, string[]>;
  /** Names of the custom headers; values are never shown */
  header_names: string[];
  id: string;
  /** Any JSON values */
  metadata?: Record<string, unknown>;
  method: "POST" | "PUT";
  patterns: string[];
  /** Deviations from the profile */
  policy: PolicyOverrides;
  /** Wire dialect; fixed at creation */
  profile: string;
  /** The same endpoint's short id, to be read aloud; taken wherever the id is */
  public_id: string;
  /** While it is disabled by failures: when it is tried again */
  reenable_at?: string;
  /** Only when the endpoint was created */
  secret?: IssuedSecret;
  /** Whose keys sign: the endpoint's own secrets, or the environment's signing keys */
  signing: "own" | "environment";
  status: "active" | "paused" | "disabled";
  status_at: string;
  status_reason?: string;
  tenant_id: string;
  /** Chosen by the owner, unique in the tenant; taken wherever the id is */
  uid?: string;
  updated_at: string;
  url: string;
  /** Grows with every change */
  version: number;
}

/** The native API of a Godwit server: one method for each operation. */
export class GodwitClient extends Transport {
  /**
   * Watch attempts as they happen.
   *
   * Server-sent events named attempt, whose data is one attempt in JSON. A client that reads too slowly misses some.
   *
   * Needs an API key with the scope read.
   */
  streamAttempts(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): AsyncGenerator<StreamedAttempt> {
    return this.events<StreamedAttempt>({ method: "GET", path: `/v1/attempts/stream`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List broadcasts.
   *
   * Events that were posted for several tenants of the environment. They are kept as long as the server keeps events.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope ingest or read or manage.
   */
  listBroadcasts(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListBroadcast> {
    return this.json<ListBroadcast>({ method: "GET", path: `/v1/broadcasts`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get the progress of a broadcast.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope ingest or read or manage.
   */
  getBroadcast(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Broadcast> {
    return this.json<Broadcast>({ method: "GET", path: `/v1/broadcasts/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List the results of a broadcast.
   *
   * The tenants that have a result, newest first: the id of their event, or why they get none. While the broadcast runs the list grows.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope ingest or read or manage.
   */
  listBroadcastTenants(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** Only tenants that were skipped */
      status?: "skipped" | undefined;
    } = {},
  ): Promise<ListBroadcastTenant> {
    return this.json<ListBroadcastTenant>({ method: "GET", path: `/v1/broadcasts/${encodeURIComponent(id)}/tenants`, query: { "limit": options.limit, "cursor": options.cursor, "status": options.status }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get the catalogue as a document for generators.
   *
   * The tenant's own event types and those that its environment shares, with the schemas in force. Types without a schema are in it too.
   *
   * Needs an API key with the scope read.
   */
  getCatalogue(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** openapi: OpenAPI 3.1, a webhook for each type. asyncapi: AsyncAPI 3.0, a message for each type. */
      format?: "openapi" | "asyncapi" | undefined;
    } = {},
  ): Promise<unknown> {
    return this.json<unknown>({ method: "GET", path: `/v1/catalogue`, query: { "format": options.format }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List dead letters.
   *
   * Those that are open: deliveries which ended without being accepted and were not replayed since. With type, status, reason or since, a request examines up to 5,000 dead letters: a page may have fewer items than limit, even none, and still have a next_cursor.
   *
   * Needs an API key with the scope read.
   */
  listDeadLetters(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** At or after this time (RFC 3339) */
      since?: string | undefined;
      /** Before this time (RFC 3339) */
      until?: string | undefined;
      /** Only of this endpoint */
      endpoint?: string | undefined;
      /** Only events of this type */
      type?: string | undefined;
      status?: "terminal" | "exhausted" | undefined;
      /** Only with this reason */
      reason?: string | undefined;
      /** Also those that were replayed since */
      replayed?: boolean | undefined;
    } = {},
  ): Promise<ListDeadLetter> {
    return this.json<ListDeadLetter>({ method: "GET", path: `/v1/dead-letters`, query: { "limit": options.limit, "cursor": options.cursor, "since": options.since, "until": options.until, "endpoint": options.endpoint, "type": options.type, "status": options.status, "reason": options.reason, "replayed": options.replayed }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Export dead letters with their payloads.
   *
   * One JSON document a line, newest first. The connection is cut if the export cannot be completed.
   *
   * Needs an API key with the scope read.
   */
  exportDeadLetters(
    options: CallOptions & {
      endpoint?: string | undefined;
      type?: string | undefined;
      status?: "terminal" | "exhausted" | undefined;
      reason?: string | undefined;
      since?: string | undefined;
      until?: string | undefined;
      /** Also those that were replayed since */
      replayed?: boolean | undefined;
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): AsyncGenerator<ExportedDeadLetter> {
    return this.lines<ExportedDeadLetter>({ method: "GET", path: `/v1/dead-letters/export`, query: { "endpoint": options.endpoint, "type": options.type, "status": options.status, "reason": options.reason, "since": options.since, "until": options.until, "replayed": options.replayed }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Count dead letters by endpoint and reason.
   *
   * Of those that a list with the same filters has.
   *
   * Needs an API key with the scope read.
   */
  groupDeadLetters(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** At or after this time (RFC 3339) */
      since?: string | undefined;
      /** Before this time (RFC 3339) */
      until?: string | undefined;
      /** Only of this endpoint */
      endpoint?: string | undefined;
      /** Only events of this type */
      type?: string | undefined;
      status?: "terminal" | "exhausted" | undefined;
      /** Only with this reason */
      reason?: string | undefined;
      /** Also those that were replayed since */
      replayed?: boolean | undefined;
    } = {},
  ): Promise<DeadLetterGroups> {
    return this.json<DeadLetterGroups>({ method: "GET", path: `/v1/dead-letters/groups`, query: { "since": options.since, "until": options.until, "endpoint": options.endpoint, "type": options.type, "status": options.status, "reason": options.reason, "replayed": options.replayed }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Remove the dead letters that match.
   *
   * For good, with the copies of their events; newest first, up to limit in one request. To select all, say all: true. It runs as the command dead_letters.purge. The first answer tells in affects how many dead letters would go, and from which endpoints.
   *
   * It is done in two steps. The first request does nothing and is answered with 202, a command_id and a confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it gets the same answer.
   *
   * Needs an API key with the scope manage.
   */
  purgeDeadLetters(
    body: Purge,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** confirmation_token of the first answer: executes what that request asked for. Absent: nothing is done yet. */
      confirmation?: string | undefined;
      /** command_id of the first answer; goes with Godwit-Confirmation */
      command?: string | undefined;
      /** Where the first answer has a step_up_url: the step_up_token that another API key got there */
      stepUp?: string | undefined;
    } = {},
  ): Promise<Purged | Asked> {
    return this.json<Purged | Asked>({ method: "POST", path: `/v1/dead-letters/purge`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "Godwit-Confirmation": options.confirmation, "Godwit-Command": options.command, "Godwit-Step-Up": options.stepUp }, body, options });
  }

  /**
   * Replay the dead letters that match.
   *
   * Newest first, up to limit in one request; next_cursor continues where it ended. To select all, say all: true. It runs as the command dead_letters.replay, one for each thousand.
   *
   * Needs an API key with the scope manage.
   */
  replayDeadLetters(
    body: BulkReplay,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<BulkReplayed> {
    return this.json<BulkReplayed>({ method: "POST", path: `/v1/dead-letters/replay`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Get the open dead letter of a delivery.
   *
   * Needs an API key with the scope read.
   */
  getDeadLetter(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<DeadLetter> {
    return this.json<DeadLetter>({ method: "GET", path: `/v1/dead-letters/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Replay a dead letter.
   *
   * Starts a new run under the same idempotency key. The dead letter is marked as replayed and kept until it expires.
   *
   * Needs an API key with the scope manage.
   */
  replayDeadLetter(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Delivery> {
    return this.json<Delivery>({ method: "POST", path: `/v1/dead-letters/${encodeURIComponent(id)}/replay`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * List deliveries.
   *
   * With type, a request examines up to 5,000 deliveries: a page may have fewer items than limit, even none, and still have a next_cursor.
   *
   * Needs an API key with the scope read.
   */
  listDeliveries(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** At or after this time (RFC 3339) */
      since?: string | undefined;
      /** Before this time (RFC 3339) */
      until?: string | undefined;
      /** Only to this endpoint */
      endpoint?: string | undefined;
      /** Only of this event */
      event?: string | undefined;
      /** Only events of this type */
      type?: string | undefined;
      status?: "pending" | "accepted" | "terminal" | "exhausted" | "cancelled" | undefined;
    } = {},
  ): Promise<ListDelivery> {
    return this.json<ListDelivery>({ method: "GET", path: `/v1/deliveries`, query: { "limit": options.limit, "cursor": options.cursor, "since": options.since, "until": options.until, "endpoint": options.endpoint, "event": options.event, "type": options.type, "status": options.status }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Cancel the deliveries that match.
   *
   * Ends those that wait, newest first, up to limit in one request; next_cursor continues where it ended. One that is under way at this moment is left alone. With type, a request examines up to 5,000 deliveries of each status, and may change none and still have a next_cursor. To select all, say all: true. With dry_run, the answer says how many there are. The tenant's evidence records who did it, with the choice and the number.
   *
   * Needs an API key with the scope manage.
   */
  cancelDeliveries(
    body: BulkCancel,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<BulkChanged> {
    return this.json<BulkChanged>({ method: "POST", path: `/v1/deliveries/cancel`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Try the deliveries that match now.
   *
   * Newest first, up to limit in one request; next_cursor continues where it ended. Waiting ones are made due at once; those that ended start a new run under the same idempotency key. With type, a request examines up to 5,000 deliveries of each status, and may change none and still have a next_cursor. To select all, say all: true. With dry_run, the answer says how many there are. The tenant's evidence records who did it, with the choice and the number.
   *
   * Needs an API key with the scope manage.
   */
  retryDeliveries(
    body: BulkRetry,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<BulkChanged> {
    return this.json<BulkChanged>({ method: "POST", path: `/v1/deliveries/retry`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Get a delivery and its attempts.
   *
   * Needs an API key with the scope read.
   */
  getDelivery(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<DeliveryDetail> {
    return this.json<DeliveryDetail>({ method: "GET", path: `/v1/deliveries/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Cancel a delivery.
   *
   * Ends one that waits. Conflict when it is finished, or under way at this moment.
   *
   * Needs an API key with the scope manage.
   */
  cancelDelivery(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Delivery> {
    return this.json<Delivery>({ method: "POST", path: `/v1/deliveries/${encodeURIComponent(id)}/cancel`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * Try a delivery now.
   *
   * A waiting one is made due at once; a finished one starts a new run under the same idempotency key.
   *
   * Needs an API key with the scope manage.
   */
  retryDelivery(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Delivery> {
    return this.json<Delivery>({ method: "POST", path: `/v1/deliveries/${encodeURIComponent(id)}/retry`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * List endpoints.
   *
   * A request for an environment lists those of all its tenants.
   *
   * Needs an API key with the scope read.
   */
  listEndpoints(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** Only those with this status */
      status?: "active" | "paused" | "disabled" | undefined;
      /** Only endpoints whose URL, uid or description contains this text; ASCII letters match in either case */
      search?: string | undefined;
      /** Only active endpoints that do so, as GET /v1/stats/waiting counts them: open means that the circuit is open, failing that the last attempt failed or too many did in the last hour */
      health?: "healthy" | "failing" | "open" | undefined;
    } = {},
  ): Promise<ListEndpoint> {
    return this.json<ListEndpoint>({ method: "GET", path: `/v1/endpoints`, query: { "limit": options.limit, "cursor": options.cursor, "status": options.status, "search": options.search, "health": options.health }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Register an endpoint.
   *
   * The signing secret is in this answer and in no other, but for a repeat with the same Idempotency-Key. Creating an endpoint resolves no name and sends nothing.
   *
   * Needs an API key with the scope manage.
   */
  createEndpoint(
    body: NewEndpoint,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedEndpoint> {
    return this.json<IssuedEndpoint>({ method: "POST", path: `/v1/endpoints`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Delete an endpoint.
   *
   * What was waiting for it is cancelled. It runs as the command endpoint.delete; the request is its own confirmation.
   *
   * Needs an API key with the scope manage.
   */
  deleteEndpoint(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/endpoints/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch }, options });
  }

  /**
   * Get an endpoint.
   *
   * Needs an API key with the scope read.
   */
  getEndpoint(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Endpoint> {
    return this.json<Endpoint>({ method: "GET", path: `/v1/endpoints/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Change an endpoint.
   *
   * A JSON merge patch (RFC 7396): absent members stay, null clears, objects merge member by member. auth is replaced as a whole. The profile cannot change.
   *
   * Needs an API key with the scope manage.
   */
  updateEndpoint(
    id: string,
    body: EndpointPatch,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<Endpoint> {
    return this.json<Endpoint>({ method: "PATCH", path: `/v1/endpoints/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "If-Match": options.ifMatch }, body, options });
  }

  /**
   * Create or replace an endpoint.
   *
   * With a uid of your choice in the path. All settings are replaced: members that are absent get their defaults, and headers and auth that are not given are removed. algorithm, secret and paused have an effect only when the endpoint is created; the signing secret is in that answer and in no other. An endpoint that is as the request says stays as it is, with its version.
   *
   * Needs an API key with the scope manage.
   */
  putEndpoint(
    id: string,
    body: NewEndpoint,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
      /** * creates the object and replaces none: if it exists, the answer is 412. */
      ifNoneMatch?: string | undefined;
    } = {},
  ): Promise<WrittenEndpoint | WrittenEndpoint> {
    return this.json<WrittenEndpoint | WrittenEndpoint>({ method: "PUT", path: `/v1/endpoints/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch }, body, options });
  }

  /**
   * Explain whether an endpoint would get an event, and why.
   *
   * Judges an event by the endpoint's patterns, filter and content filter as they are now, and names the part that says no. Nothing is stored or sent.
   *
   * Needs an API key with the scope read.
   */
  explainEndpoint(
    id: string,
    body: ExplainRequest,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<EndpointExplanation> {
    return this.json<EndpointExplanation>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/explain`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Pause an endpoint.
   *
   * Its deliveries are held, none is dropped.
   *
   * Needs an API key with the scope manage.
   */
  pauseEndpoint(
    id: string,
    body: Pause | undefined,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Endpoint> {
    return this.json<Endpoint>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/pause`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Send a test event and wait for the answer.
   *
   * One attempt, whatever the endpoint's status and patterns. Nothing is stored or counted, and nothing is tried again. That the endpoint refuses is a result, not an error.
   *
   * Needs an API key with the scope manage.
   */
  probeEndpoint(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Probe> {
    return this.json<Probe>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/probe`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * Resume an endpoint.
   *
   * Also enables an endpoint that was disabled, and clears its failure counts, hold and circuit.
   *
   * Needs an API key with the scope manage.
   */
  resumeEndpoint(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Endpoint> {
    return this.json<Endpoint>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/resume`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * Rotate the signing secret.
   *
   * The new secret signs at once, beside the old ones until the overlap ends. Its value is in this answer and in no other, but for a repeat with the same Idempotency-Key. It runs as the command endpoint.rotate_secret.
   *
   * Needs an API key with the scope manage.
   */
  rotateSecret(
    id: string,
    body: Rotation | undefined,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedSecret> {
    return this.json<IssuedSecret>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/rotate-secret`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * List signing secrets, without their values.
   *
   * Where the environment signs, its keys are listed first; secrets of the endpoint's own then do not sign.
   *
   * Needs an API key with the scope read.
   */
  listSecrets(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<SecretList> {
    return this.json<SecretList>({ method: "GET", path: `/v1/endpoints/${encodeURIComponent(id)}/secrets`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Revoke a signing secret.
   *
   * It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate first. It runs as the command endpoint.revoke_secret.
   *
   * It is done in two steps. The first request does nothing and is answered with 202, a command_id and a confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it gets the same answer.
   *
   * Needs an API key with the scope manage.
   */
  revokeSecret(
    id: string,
    secret: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** confirmation_token of the first answer: executes what that request asked for. Absent: nothing is done yet. */
      confirmation?: string | undefined;
      /** command_id of the first answer; goes with Godwit-Confirmation */
      command?: string | undefined;
      /** Where the first answer has a step_up_url: the step_up_token that another API key got there */
      stepUp?: string | undefined;
    } = {},
  ): Promise<RevokedSecret | Asked> {
    return this.json<RevokedSecret | Asked>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/secrets/${encodeURIComponent(secret)}/revoke`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "Godwit-Confirmation": options.confirmation, "Godwit-Command": options.command, "Godwit-Step-Up": options.stepUp }, options });
  }

  /**
   * Health, backlog and policy of an endpoint.
   *
   * Needs an API key with the scope read.
   */
  getEndpointStats(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<EndpointStats> {
    return this.json<EndpointStats>({ method: "GET", path: `/v1/endpoints/${encodeURIComponent(id)}/stats`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Send a test event.
   *
   * An event of the type godwit.test goes to this endpoint alone, whatever its patterns. It is stored, tried again and recorded as any other.
   *
   * Needs an API key with the scope manage.
   */
  testEndpoint(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Accepted> {
    return this.json<Accepted>({ method: "POST", path: `/v1/endpoints/${encodeURIComponent(id)}/test`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * List environments.
   *
   * A key of an environment sees its own.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope read or manage.
   */
  listEnvironments(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListEnvironment> {
    return this.json<ListEnvironment>({ method: "GET", path: `/v1/environments`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Create an environment.
   *
   * An environment owns tenants and the event types that they share. Its keys act for any of its tenants.
   *
   * Needs an API key with the scope admin.
   */
  createEnvironment(
    body: NewEnvironment,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Environment> {
    return this.json<Environment>({ method: "POST", path: `/v1/environments`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Delete an environment.
   *
   * With its shared event types and its keys. Its tenants must have been deleted; the one that every server has cannot be.
   *
   * Needs an API key with the scope admin.
   */
  deleteEnvironment(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/environments/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch }, options });
  }

  /**
   * Get an environment.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope read or manage.
   */
  getEnvironment(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Environment> {
    return this.json<Environment>({ method: "GET", path: `/v1/environments/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Change an environment.
   *
   * Tenants that inherit a setting have the new one at once on this node, and within half a second on others.
   *
   * Needs an API key with the scope admin.
   */
  updateEnvironment(
    id: string,
    body: EnvironmentPatch,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<Environment> {
    return this.json<Environment>({ method: "PATCH", path: `/v1/environments/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "If-Match": options.ifMatch }, body, options });
  }

  /**
   * Create or replace an environment.
   *
   * With a uid of your choice in the path. All settings are replaced; those that are absent get their defaults. live cannot change.
   *
   * Needs an API key with the scope admin.
   */
  putEnvironment(
    id: string,
    body: EnvironmentDocument,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
      /** * creates the object and replaces none: if it exists, the answer is 412. */
      ifNoneMatch?: string | undefined;
    } = {},
  ): Promise<Environment | Environment> {
    return this.json<Environment | Environment>({ method: "PUT", path: `/v1/environments/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch }, body, options });
  }

  /**
   * List the signing keys of an environment.
   *
   * They sign deliveries to the endpoints of the environment whose signing is environment.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope read or manage.
   */
  listSigningKeys(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<SigningKeyList> {
    return this.json<SigningKeyList>({ method: "GET", path: `/v1/environments/${encodeURIComponent(id)}/signing-keys`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Add a signing key to an environment.
   *
   * The new key signs at once, beside the others until the overlap ends; all nodes follow within half a second. It runs as the command environment.rotate_keys, with its evidence in the environment's chain.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope manage.
   */
  rotateSigningKeys(
    id: string,
    body: KeyRotation | undefined,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedSigningKey> {
    return this.json<IssuedSigningKey>({ method: "POST", path: `/v1/environments/${encodeURIComponent(id)}/signing-keys`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Revoke a signing key of an environment.
   *
   * It no longer signs, at once: for one that leaked. The last one that is live cannot be revoked: rotate first. It runs as the command environment.revoke_key.
   *
   * It is done in two steps. The first request does nothing and is answered with 202, a command_id and a confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it gets the same answer.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope manage.
   */
  revokeSigningKey(
    id: string,
    key: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** confirmation_token of the first answer: executes what that request asked for. Absent: nothing is done yet. */
      confirmation?: string | undefined;
      /** command_id of the first answer; goes with Godwit-Confirmation */
      command?: string | undefined;
      /** Where the first answer has a step_up_url: the step_up_token that another API key got there */
      stepUp?: string | undefined;
    } = {},
  ): Promise<RevokedSigningKey | Asked> {
    return this.json<RevokedSigningKey | Asked>({ method: "POST", path: `/v1/environments/${encodeURIComponent(id)}/signing-keys/${encodeURIComponent(key)}/revoke`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "Godwit-Confirmation": options.confirmation, "Godwit-Command": options.command, "Godwit-Step-Up": options.stepUp }, options });
  }

  /**
   * List event types.
   *
   * By name: the tenant's own and those that its environment shares. The catalogue says what events mean and look like; whether they are held against it is the tenant's setting event_validation.
   *
   * Needs an API key with the scope read.
   */
  listEventTypes(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** Those that are built in from this standard, instead of the tenant's own */
      standard?: "ojs" | "cybercube" | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListEventType> {
    return this.json<ListEventType>({ method: "GET", path: `/v1/event-types`, query: { "standard": options.standard, "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Delete an event type.
   *
   * With all versions of its schema. Events stay.
   *
   * Needs an API key with the scope manage.
   */
  deleteEventType(
    name: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/event-types/${encodeURIComponent(name)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch }, options });
  }

  /**
   * Get an event type.
   *
   * The tenant's own, or the one that its environment shares, or else the one of a standard.
   *
   * Needs an API key with the scope read.
   */
  getEventType(
    name: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<EventTypeDetail> {
    return this.json<EventTypeDetail>({ method: "GET", path: `/v1/event-types/${encodeURIComponent(name)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Write an event type.
   *
   * Description, deprecated and example are replaced. A schema that differs from the one in force becomes the next version; earlier ones are kept. If the version in force declares a compatibility and the next does not keep to it, it is refused with the places, unless force is set. A request for an environment writes a type that all its tenants share.
   *
   * Needs an API key with the scope manage.
   */
  putEventType(
    name: string,
    body: EventTypeDraft,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** Store the schema although it is not compatible with the one in force */
      force?: boolean | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
      /** * creates the object and replaces none: if it exists, the answer is 412. */
      ifNoneMatch?: string | undefined;
    } = {},
  ): Promise<EventTypeDetail | EventTypeDetail> {
    return this.json<EventTypeDetail | EventTypeDetail>({ method: "PUT", path: `/v1/event-types/${encodeURIComponent(name)}`, query: { "force": options.force }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch }, body, options });
  }

  /**
   * List events.
   *
   * With type, a request examines up to 5,000 events: a page may have fewer items than limit, even none, and still have a next_cursor.
   *
   * Needs an API key with the scope read.
   */
  listEvents(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** At or after this time (RFC 3339) */
      since?: string | undefined;
      /** Before this time (RFC 3339) */
      until?: string | undefined;
      /** Only this type, or those under prefix.* */
      type?: string | undefined;
      /** Only the event with this idempotency key */
      key?: string | undefined;
    } = {},
  ): Promise<ListEvent> {
    return this.json<ListEvent>({ method: "GET", path: `/v1/events`, query: { "limit": options.limit, "cursor": options.cursor, "since": options.since, "until": options.until, "type": options.type, "key": options.key }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Post an event.
   *
   * Two forms. With type in the query (or in the header Godwit-Event-Type) the body is the payload, delivered byte for byte with its Content-Type. Without it the body is an envelope in JSON. A CloudEvent may come in either mode of its HTTP binding: structured (application/cloudevents+json) or binary (ce-* fields, which go with every attempt); its type is the event's, with / and : replaced by dots, and its id is not its key. In binary mode Content-Type may be absent; the event is then delivered as application/octet-stream. Types that begin with webhook. or godwit. are the server's own and are refused.
   *
   * The answer leaves after the event is on disk. The payload may have up to 1048576 bytes.
   *
   * A key of an environment, or one with the scope admin, may post for several tenants at once, a broadcast: Godwit-Tenant then has up to 500 ids or uids with a comma between them, or * for all tenants of the environment that have an endpoint for the event. Each gets an event of its own. The answer leaves after the broadcast and its list of tenants are on disk; it has the id of the broadcast, under which its progress can be read. For up to 100 tenants the answer also waits for their events and lists them.
   *
   * Needs an API key with the scope ingest.
   */
  postEvent(
    body: EventEnvelope | Payload,
    options: CallOptions & {
      /** Type of the event; the body is then its payload */
      type?: string | undefined;
      /** Value of the attribute NAME; repeat with other names. Only with type. */
      attr?: Record<string, string> | undefined;
      /** Type of the event, in place of the query */
      eventType?: string | undefined;
      /** Id or uid of the tenant to act for; or several, with a comma between them; or * for all tenants of the environment that have an endpoint for the event. Needs the scope admin, or a key of the tenants' environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Accepted> {
    return this.json<Accepted>({ method: "POST", path: `/v1/events`, query: { "type": options.type, "attr.NAME": options.attr }, headers: { "Godwit-Event-Type": options.eventType, "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Post a batch of events.
   *
   * Up to 1000 events in one transaction. All are checked first: if one is wrong, none is stored. An Idempotency-Key in the header stands for the whole batch, and each event then gets a key of its own; without it every event may bring its key, and repeats are told apart one by one. The body may have up to 16777216 bytes.
   *
   * Needs an API key with the scope ingest.
   */
  postEventBatch(
    body: EventBatch,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<BatchResult | BatchResult> {
    return this.json<BatchResult | BatchResult>({ method: "POST", path: `/v1/events/batch`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Search events, also by text in their payloads.
   *
   * Newest first, one JSON document a line, as soon as it is known: events, progress in between, and an end. A text is looked for in payloads and idempotency keys, byte for byte, whatever the case of ASCII letters; an event whose id it is comes first. There is no index of payloads: a search reads events. One search examines up to 250,000 events and 256 MiB of payload; the end then says how to go on. A search ends when its client disconnects. A tenant may have two under way.
   *
   * Needs an API key with the scope read.
   */
  searchEvents(
    options: CallOptions & {
      /** Text in the payload or in the idempotency key, or the id of an event */
      text?: string | undefined;
      /** Only this type, or those under prefix.* */
      type?: string | undefined;
      /** Only events with this idempotency key */
      key?: string | undefined;
      /** Only events that came by this source: its id or name */
      source?: string | undefined;
      /** Only events with this attribute: name:value, or a name for any value */
      attribute?: string | undefined;
      /** At or after this time (RFC 3339) */
      since?: string | undefined;
      /** Before this time (RFC 3339) */
      until?: string | undefined;
      /** How many events at most */
      limit?: number | undefined;
      /** next of the search before */
      cursor?: string | undefined;
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): AsyncGenerator<SearchLine> {
    return this.lines<SearchLine>({ method: "GET", path: `/v1/events/search`, query: { "text": options.text, "type": options.type, "key": options.key, "source": options.source, "attribute": options.attribute, "since": options.since, "until": options.until, "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get an event and its deliveries.
   *
   * Needs an API key with the scope read.
   */
  getEvent(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<EventDetail> {
    return this.json<EventDetail>({ method: "GET", path: `/v1/events/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get the payload of an event.
   *
   * Byte for byte as posted, with its Content-Type.
   *
   * Needs an API key with the scope read.
   */
  getEventBody(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Response> {
    return this.raw({ method: "GET", path: `/v1/events/${encodeURIComponent(id)}/body`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Explain which endpoints got an event, and why.
   *
   * For each endpoint of the tenant: whether the event went to it, by which pattern, or what kept it away. Deliveries tell what happened. The settings of the endpoint, as they are now, tell why; where they were changed since the event came, the answer says so. A page may have fewer items than limit, even none, and still have a next_cursor.
   *
   * Needs an API key with the scope read.
   */
  explainEvent(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** Only this endpoint */
      endpoint?: string | undefined;
    } = {},
  ): Promise<EventExplanation> {
    return this.json<EventExplanation>({ method: "GET", path: `/v1/events/${encodeURIComponent(id)}/explain`, query: { "limit": options.limit, "cursor": options.cursor, "endpoint": options.endpoint }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Deliver an event again.
   *
   * Every delivery starts a new run under the same idempotency key. An endpoint that the event has not gone to yet gets it now.
   *
   * Needs an API key with the scope manage.
   */
  replayEvent(
    id: string,
    body: EventReplay | undefined,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<DeliveryItems> {
    return this.json<DeliveryItems>({ method: "POST", path: `/v1/events/${encodeURIComponent(id)}/replay`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * List API keys.
   *
   * Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read or manage.
   */
  listKeys(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListKey> {
    return this.json<ListKey>({ method: "GET", path: `/v1/keys`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Create an API key.
   *
   * The token is in this answer and in no other, but for a repeat with the same Idempotency-Key.
   *
   * Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.
   */
  createKey(
    body: NewKey,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedKey> {
    return this.json<IssuedKey>({ method: "POST", path: `/v1/keys`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Revoke an API key.
   *
   * It is refused at once by this node and within seconds by all others. It stays in the list.
   *
   * Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.
   */
  revokeKey(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/keys/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get an API key.
   *
   * Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read or manage.
   */
  getKey(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Key> {
    return this.json<Key>({ method: "GET", path: `/v1/keys/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List nodes and shards.
   *
   * The nodes that share this server's database, which of them owns each shard of endpoints, and which versions they run. Every node gives the same answer.
   *
   * Needs an API key with the scope admin.
   */
  listNodes(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Nodes> {
    return this.json<Nodes>({ method: "GET", path: `/v1/nodes`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List notices.
   *
   * What a person should know or decide: an endpoint was disabled, has moved, refuses for legal reasons, resolves to a forbidden address.
   *
   * Needs an API key with the scope read.
   */
  listNotices(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** Only those that nobody has acknowledged */
      open?: boolean | undefined;
    } = {},
  ): Promise<ListNotice> {
    return this.json<ListNotice>({ method: "GET", path: `/v1/notices`, query: { "limit": options.limit, "cursor": options.cursor, "open": options.open }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Acknowledge a notice.
   *
   * Needs an API key with the scope manage.
   */
  acknowledgeNotice(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Notice> {
    return this.json<Notice>({ method: "POST", path: `/v1/notices/${encodeURIComponent(id)}/acknowledge`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * Get the look of the portal.
   *
   * The theme of the caller's environment, and the tenant that the request is made for.
   *
   * Needs an API key with the scope read.
   */
  getPortal(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Portal> {
    return this.json<Portal>({ method: "GET", path: `/v1/portal`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List portal links.
   *
   * Links are listed until a week after they have expired.
   *
   * Needs an API key with the scope read.
   */
  listPortalLinks(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListPortalLink> {
    return this.json<ListPortalLink>({ method: "GET", path: `/v1/portal-links`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Create a portal link.
   *
   * A URL that opens the portal of a tenant, once. The session that it makes can do what the capabilities say, for this tenant, and nothing else.
   *
   * Needs an API key with the scope manage.
   */
  createPortalLink(
    body: NewPortalLink,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedPortalLink> {
    return this.json<IssuedPortalLink>({ method: "POST", path: `/v1/portal-links`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Revoke a portal link.
   *
   * Ends the session that was made from it, too. DELETE /v1/sessions?tenant=…&kind=portal revokes all of a tenant.
   *
   * Needs an API key with the scope manage.
   */
  revokePortalLink(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/portal-links/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get a portal link.
   *
   * Needs an API key with the scope read.
   */
  getPortalLink(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<PortalLink> {
    return this.json<PortalLink>({ method: "GET", path: `/v1/portal-links/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * End all sessions of a tenant.
   *
   * Also removes portal links of the tenant that were not used, unless kind is dashboard. A caller without the scope admin leaves the sessions of those with it.
   *
   * Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.
   */
  endSessions(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** Id or uid of the tenant */
      tenantId?: string | undefined;
      /** Only sessions of this kind */
      kind?: "dashboard" | "portal" | undefined;
    } = {},
  ): Promise<EndedSessions> {
    return this.json<EndedSessions>({ method: "DELETE", path: `/v1/sessions`, query: { "tenant": options.tenantId, "kind": options.kind }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List sessions.
   *
   * Those of the tenant's keys and portals; for an environment, those of the environment's own keys.
   *
   * Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read or manage.
   */
  listSessions(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** Only sessions of this kind */
      kind?: "dashboard" | "portal" | undefined;
    } = {},
  ): Promise<ListSession> {
    return this.json<ListSession>({ method: "GET", path: `/v1/sessions`, query: { "limit": options.limit, "cursor": options.cursor, "kind": options.kind }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Sign in.
   *
   * Makes a session from an API key or from the code of a link, and sets its cookie. Pages of the portal send Godwit-Portal: 1, or frame if they are in a frame of another page, and Godwit-Environment with the id of their environment. Every sign-in makes a new token; a session that the browser had before at this place is ended.
   *
   * Needs no API key.
   */
  createSession(
    body: SignIn,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Session> {
    return this.json<Session>({ method: "POST", path: `/v1/sessions`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Sign out.
   *
   * Ends the session of this request and removes its cookie.
   *
   * Needs an API key with the scope ingest or read or manage or admin or audit.
   */
  endCurrentSession(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/sessions/current`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get the session of this request.
   *
   * Answers 404 to a request with an API key, which has no session.
   *
   * Needs an API key with the scope ingest or read or manage or admin or audit.
   */
  getCurrentSession(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Session> {
    return this.json<Session>({ method: "GET", path: `/v1/sessions/current`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * End a session.
   *
   * It is refused at once by this node and within half a second by all others.
   *
   * Needs an API key with the scope manage or admin, or a key of the environment with the scope manage.
   */
  endSession(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/sessions/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get a session.
   *
   * Needs an API key with the scope read or manage or admin, or a key of the environment with the scope read or manage.
   */
  getSession(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Session> {
    return this.json<Session>({ method: "GET", path: `/v1/sessions/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Get the configuration of the node that answers.
   *
   * Every setting with its value, its default and where the value came from; versions; bounds. Secrets are never shown.
   *
   * Needs an API key with the scope admin.
   */
  getSettings(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Settings> {
    return this.json<Settings>({ method: "GET", path: `/v1/settings`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Create a sign-in link.
   *
   * A URL that opens the dashboard with a session that acts like the API key of this request, within 5 minutes and once. A session cannot make one.
   *
   * Needs an API key with the scope ingest or read or manage or admin or audit.
   */
  createSignInLink(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<SignInLink> {
    return this.json<SignInLink>({ method: "POST", path: `/v1/sign-in-links`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * List the ways to sign in.
   *
   * The ways in which people can sign in to the dashboard of this server.
   *
   * Needs no API key.
   */
  listSignInMethods(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<SignInMethods> {
    return this.json<SignInMethods>({ method: "GET", path: `/v1/sign-in-methods`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List sources.
   *
   * A request for an environment lists those of all its tenants.
   *
   * Needs an API key with the scope read.
   */
  listSources(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListSource> {
    return this.json<ListSource>({ method: "GET", path: `/v1/sources`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Register an upstream.
   *
   * Its deliveries to path go on to the endpoints. A secret that is made here is in this answer and in no other, but for a repeat with the same Idempotency-Key.
   *
   * Needs an API key with the scope manage.
   */
  createSource(
    body: NewSource,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedSource> {
    return this.json<IssuedSource>({ method: "POST", path: `/v1/sources`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Delete a source.
   *
   * Upstreams find nothing there from now on. What was taken in is delivered.
   *
   * Needs an API key with the scope manage.
   */
  deleteSource(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<void> {
    return this.nothing({ method: "DELETE", path: `/v1/sources/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch }, options });
  }

  /**
   * Get a source, with the mode in force.
   *
   * Needs an API key with the scope read.
   */
  getSource(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Source> {
    return this.json<Source>({ method: "GET", path: `/v1/sources/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Change a source.
   *
   * A JSON merge patch (RFC 7396). The scheme cannot change; credentials change by rotate.
   *
   * Needs an API key with the scope manage.
   */
  updateSource(
    id: string,
    body: SourcePatch,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<Source> {
    return this.json<Source>({ method: "PATCH", path: `/v1/sources/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "If-Match": options.ifMatch }, body, options });
  }

  /**
   * Create or replace a source.
   *
   * With the name of the source in the path. All settings are replaced; those that are absent get their defaults. credentials have an effect only when the source is created; a secret that is made then is in that answer and in no other. A source that is as the request says stays as it is, with its version.
   *
   * Needs an API key with the scope manage.
   */
  putSource(
    id: string,
    body: SourceDraft,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
      /** * creates the object and replaces none: if it exists, the answer is 412. */
      ifNoneMatch?: string | undefined;
    } = {},
  ): Promise<IssuedSource | IssuedSource> {
    return this.json<IssuedSource | IssuedSource>({ method: "PUT", path: `/v1/sources/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch }, body, options });
  }

  /**
   * List acknowledgments of the service description.
   *
   * Needs an API key with the scope read.
   */
  listAcknowledgments(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListAcknowledgment> {
    return this.json<ListAcknowledgment>({ method: "GET", path: `/v1/sources/${encodeURIComponent(id)}/acknowledgments`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Record that the upstream acknowledged the service description.
   *
   * This is what lets deliveries be answered before they are delivered on (store-and-forward). It holds until a description promises less.
   *
   * Needs an API key with the scope manage.
   */
  acknowledgeDescription(
    id: string,
    body: NewAcknowledgment,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Acknowledgment> {
    return this.json<Acknowledgment>({ method: "POST", path: `/v1/sources/${encodeURIComponent(id)}/acknowledgments`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Pause a source.
   *
   * Upstreams are told to come again later (503).
   *
   * Needs an API key with the scope manage.
   */
  pauseSource(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Source> {
    return this.json<Source>({ method: "POST", path: `/v1/sources/${encodeURIComponent(id)}/pause`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * List what a source did not take in.
   *
   * The newest 200, for some days. Without payloads, credentials and header values.
   *
   * Needs an API key with the scope read.
   */
  listRejections(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
    } = {},
  ): Promise<ListRejection> {
    return this.json<ListRejection>({ method: "GET", path: `/v1/sources/${encodeURIComponent(id)}/rejections`, query: { "limit": options.limit, "cursor": options.cursor }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Resume a source.
   *
   * Needs an API key with the scope manage.
   */
  resumeSource(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Source> {
    return this.json<Source>({ method: "POST", path: `/v1/sources/${encodeURIComponent(id)}/resume`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, options });
  }

  /**
   * Add a credential and let the others run out.
   *
   * The new one is good at once. A secret that is made here is in this answer and in no other, but for a repeat with the same Idempotency-Key.
   *
   * Needs an API key with the scope manage.
   */
  rotateSourceCredential(
    id: string,
    body: SourceRotation | undefined,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<IssuedSource> {
    return this.json<IssuedSource>({ method: "POST", path: `/v1/sources/${encodeURIComponent(id)}/rotate`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Show the history.
   *
   * Counts and latencies, step by step. Each count is stored in the transaction that stores what it counts, at the time of that transaction: the numbers are exact, also after a crash and with several nodes. Minutes are kept for 2 days, hours for 31 days and days for 400 days, unless the server is set up otherwise. A request for a tenant shows that tenant; one for an environment shows all its tenants together; an administrator's request that names neither shows the whole server.
   *
   * Needs an API key with the scope read.
   */
  getStats(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** At or after this time (RFC 3339). Defaults to a day before until */
      since?: string | undefined;
      /** Before this time (RFC 3339). Defaults to now */
      until?: string | undefined;
      /** Only this endpoint; several ids, with commas between, if they are grouped. A request for several tenants names it by its id */
      endpoint?: string | undefined;
      /** Id or uid of the only tenant to show */
      tenantId?: string | undefined;
      /** Length of a point. Defaults to minute for up to 6 hours, hour for up to 7 days, and day above */
      step?: "minute" | "hour" | "day" | undefined;
      /** Show endpoints or tenants one by one as well */
      group?: "none" | "endpoint" | "tenant" | undefined;
      /** How many groups at most */
      limit?: number | undefined;
    } = {},
  ): Promise<Stats> {
    return this.json<Stats>({ method: "GET", path: `/v1/stats`, query: { "since": options.since, "until": options.until, "endpoint": options.endpoint, "tenant_id": options.tenantId, "step": options.step, "group": options.group, "limit": options.limit }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Show why attempts failed.
   *
   * Failed attempts by cause, with the endpoints that they concern and what to do about it. What a request may see is as with the history.
   *
   * Needs an API key with the scope read.
   */
  getFailures(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** At or after this time (RFC 3339). Defaults to a day before until */
      since?: string | undefined;
      /** Before this time (RFC 3339). Defaults to now */
      until?: string | undefined;
      /** Only this endpoint; several ids, with commas between, if they are grouped. A request for several tenants names it by its id */
      endpoint?: string | undefined;
      /** Id or uid of the only tenant to show */
      tenantId?: string | undefined;
    } = {},
  ): Promise<Failures> {
    return this.json<Failures>({ method: "GET", path: `/v1/stats/failures`, query: { "since": options.since, "until": options.until, "endpoint": options.endpoint, "tenant_id": options.tenantId }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Show what waits now.
   *
   * Waiting deliveries, and endpoints by their state. What a request may see is as with the history.
   *
   * Needs an API key with the scope read.
   */
  getWaiting(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** Id or uid of the only tenant to count */
      tenantId?: string | undefined;
    } = {},
  ): Promise<Waiting> {
    return this.json<Waiting>({ method: "GET", path: `/v1/stats/waiting`, query: { "tenant_id": options.tenantId }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * List tenants.
   *
   * Those of the environment that the request is made for. An administrator's request that names none lists those of all environments.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope read or manage.
   */
  listTenants(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** Only tenants whose name or uid contains this text; ASCII letters match in either case */
      search?: string | undefined;
      /** Also say how each does: its endpoints by state, what waits, when a delivery was last accepted */
      health?: boolean | undefined;
    } = {},
  ): Promise<ListTenant> {
    return this.json<ListTenant>({ method: "GET", path: `/v1/tenants`, query: { "limit": options.limit, "cursor": options.cursor, "search": options.search, "health": options.health }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Create a tenant.
   *
   * A tenant owns an event bus: its events reach its own endpoints alone. It belongs to the environment that the request is made for, and starts without API keys.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope manage.
   */
  createTenant(
    body: NewTenant,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
    } = {},
  ): Promise<Tenant> {
    return this.json<Tenant>({ method: "POST", path: `/v1/tenants`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey }, body, options });
  }

  /**
   * Delete a tenant.
   *
   * Revokes its API keys, deletes its endpoints and cancels what was waiting for them. It runs as the command tenant.delete, of the tenant that the API key belongs to, which cannot delete itself. A second admin key of that tenant has to approve: it posts to the step_up_url of the first answer, and the token it gets goes into Godwit-Step-Up. A key of an environment with the scope manage deletes the environment's tenants without that approval; it then runs as the command environment.delete_tenant, with its evidence in the environment's chain.
   *
   * It is done in two steps. The first request does nothing and is answered with 202, a command_id and a confirmation_token. The same request, with Godwit-Command and Godwit-Confirmation, executes; sent again it gets the same answer.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope manage.
   */
  deleteTenant(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
      /** confirmation_token of the first answer: executes what that request asked for. Absent: nothing is done yet. */
      confirmation?: string | undefined;
      /** command_id of the first answer; goes with Godwit-Confirmation */
      command?: string | undefined;
      /** Where the first answer has a step_up_url: the step_up_token that another API key got there */
      stepUp?: string | undefined;
    } = {},
  ): Promise<Asked | undefined> {
    return this.json<Asked | undefined>({ method: "DELETE", path: `/v1/tenants/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch, "Godwit-Confirmation": options.confirmation, "Godwit-Command": options.command, "Godwit-Step-Up": options.stepUp }, options });
  }

  /**
   * Get a tenant.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope read or manage.
   */
  getTenant(
    id: string,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
    } = {},
  ): Promise<Tenant> {
    return this.json<Tenant>({ method: "GET", path: `/v1/tenants/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Change a tenant.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope manage.
   */
  updateTenant(
    id: string,
    body: TenantPatch,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** A structured-field string of 16 to 255 characters, in double quotes. A repeat with the same key and payload gets the first answer again. See /docs/idempotency. */
      idempotencyKey?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
    } = {},
  ): Promise<Tenant> {
    return this.json<Tenant>({ method: "PATCH", path: `/v1/tenants/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "Idempotency-Key": options.idempotencyKey, "If-Match": options.ifMatch }, body, options });
  }

  /**
   * Create or replace a tenant.
   *
   * With a uid of your choice in the path, in the environment that the request is made for. All settings are replaced; those that are absent are the environment's. A tenant that is as the request says stays as it is, with its version.
   *
   * Needs an API key with the scope admin, or a key of the environment with the scope manage.
   */
  putTenant(
    id: string,
    body: NewTenant,
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412. */
      ifMatch?: string | undefined;
      /** * creates the object and replaces none: if it exists, the answer is 412. */
      ifNoneMatch?: string | undefined;
    } = {},
  ): Promise<Tenant | Tenant> {
    return this.json<Tenant | Tenant>({ method: "PUT", path: `/v1/tenants/${encodeURIComponent(id)}`, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment, "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch }, body, options });
  }

  /**
   * List usage.
   *
   * What tenants used, by day (UTC), kept for 13 months. Each count is stored in the transaction that stores what it counts: the numbers are exact. A request for a tenant shows that tenant; one for an environment shows the environment's tenants with usage, also deleted ones; an administrator's request that names neither shows those of all environments. A page is a number of tenants.
   *
   * Needs an API key with the scope read.
   */
  listUsage(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** How many items at most */
      limit?: number | undefined;
      /** next_cursor of the page before; empty or absent: the first page */
      cursor?: string | undefined;
      /** First day, UTC. Defaults to the day 29 days before the last */
      from?: string | undefined;
      /** Last day, UTC. Defaults to today */
      to?: string | undefined;
      /** Id or uid of the only tenant to show; the id, if it is deleted */
      tenantId?: string | undefined;
    } = {},
  ): Promise<ListTenantUsage> {
    return this.json<ListTenantUsage>({ method: "GET", path: `/v1/usage`, query: { "limit": options.limit, "cursor": options.cursor, "from": options.from, "to": options.to, "tenant_id": options.tenantId }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }

  /**
   * Show the usage of all tenants together.
   *
   * The sum over the tenants that the list of usage shows, by day.
   *
   * Needs an API key with the scope read.
   */
  getUsageTotal(
    options: CallOptions & {
      /** Id or uid of the tenant to act for; needs the scope admin, or a key of the tenant's environment. Absent: the API key's own. */
      tenant?: string | undefined;
      /** Id or uid of the environment to act for; needs the scope admin. Absent: the API key's own. */
      environment?: string | undefined;
      /** First day, UTC. Defaults to the day 29 days before the last */
      from?: string | undefined;
      /** Last day, UTC. Defaults to today */
      to?: string | undefined;
      /** Id or uid of the only tenant to show; the id, if it is deleted */
      tenantId?: string | undefined;
    } = {},
  ): Promise<UsageTotal> {
    return this.json<UsageTotal>({ method: "GET", path: `/v1/usage/total`, query: { "from": options.from, "to": options.to, "tenant_id": options.tenantId }, headers: { "Godwit-Tenant": options.tenant, "Godwit-Environment": options.environment }, options });
  }
}
