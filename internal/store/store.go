// Package store declares the storage that the engine and the APIs need, in domain transitions: accept events, claim due
// deliveries, record results, move a delivery. Each transition is one transaction. No transaction handle and no SQL crosses
// this interface. Every backend passes the suite in storetest.
//
// Ownership: endpoints hash onto godwit.Shards shards. Only the node that holds a shard's lease claims deliveries, records
// results and writes health for its endpoints. A claim marks a pending delivery as held in that node's memory, under the
// lease's epoch. Claims of older epochs are orphans; the store releases them when the shard changes hands.
//
// Time is always an argument: a backend reads no clock.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
)

var (
	// ErrNotFound reports that the object does not exist, or belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrConflict reports that the object's state does not allow the transition, or that the object changed in the meantime.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable wraps every temporary failure of the backend itself: disk full, connection lost, too busy. The
	// transaction had no effect, or its effect is unknown and the caller may safely repeat it.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFenced reports that the caller no longer owns the shard.
	ErrFenced = errors.New("lease lost")
	// ErrDamaged reports that the database's own integrity check found damage.
	ErrDamaged = errors.New("database is damaged")
	// ErrNewerSchema reports a database written by a newer release.
	ErrNewerSchema = errors.New("database schema is newer than this program")
)

// Passing reports whether err is temporary and not caused by the data: the store was unreachable, or too slow.
func Passing(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Store is a complete backend. Consumers declare the few methods they use.
type Store interface {
	Pipeline
	Leases
	Nodes
	Deliveries
	DeadLetters
	Events
	Endpoints
	Tenants
	Keys
	Idempotency
	Notices
	EventTypes
	Sources
	Commands
	Upkeep
	KeyChecks
	io.Closer
}

// Pipeline is the hot path.
type Pipeline interface {
	// Commit stores accepted events and finished attempts in one durable transaction: after it returns nil, they survive a
	// power failure. If a Commit failed with unknown effect, the caller may commit the same batch again: accepts that are
	// already stored count as stored, results that are already stored count as fenced.
	Commit(ctx context.Context, b *Batch) (*Committed, error)
	// ClaimDue claims up to Limit due, unclaimed, pending deliveries of one endpoint, earliest first, and returns them with
	// their events. It also returns when the next unclaimed delivery is due. It fails with ErrFenced when the shard's lease
	// has another epoch.
	ClaimDue(ctx context.Context, c Claim) (*Claimed, error)
	// Reclaim makes deliveries due again that are claimed under the epoch but are not among held: the store kept their claim,
	// but its answer was lost. It returns their number.
	Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error)
	// EndpointsDue lists the endpoints of the shards that have unclaimed pending deliveries, each with its earliest due time.
	// Its cost grows with the number of endpoints, not of deliveries.
	EndpointsDue(ctx context.Context, shards []int) ([]EndpointDue, error)
	// BringBack corrects due times that were set while the clock was ahead, in one transaction, and returns how many it
	// changed. It examines the endpoints' unclaimed pending deliveries that are due after Lateness.After. A delivery last
	// changed after now keeps its delay, counted from now, but is due at Lateness.Latest at the latest. Any other delivery
	// that is due after Lateness.Latest becomes due now. A run's first attempt is never dated after now.
	BringBack(ctx context.Context, now time.Time, endpoints []Lateness) (int, error)
	// Fanouts lists incomplete fan-outs after the given one, oldest first. It leaves out Endpoints, since many large lists may
	// be open at once.
	Fanouts(ctx context.Context, after godwit.EventID, limit int) ([]Fanout, error)
	// Fanout returns an incomplete fan-out, or ErrNotFound.
	Fanout(ctx context.Context, id godwit.EventID) (*Fanout, error)
}

// Lateness bounds how far ahead deliveries to an endpoint may be due.
type Lateness struct {
	EndpointID godwit.EndpointID
	After      time.Time // due times up to this one do not change
	Latest     time.Time // the latest due time that the endpoint's schedule can set
}

// A Batch is the content of one group commit.
type Batch struct {
	Now     time.Time
	Accepts []Accept
	Fanouts []Fanout        // of events among Accepts; a fan-out that is already stored does not change
	Results []Result        // applied in order; a delivery may occur again after a result with KeepClaim
	Health  []godwit.Health // complete latest health of each endpoint in Results; not stored if the shard's lease was lost
	Changes []EndpointChange
	Notices []godwit.Notice
	// Evidence is appended to the chains of its tenants. The store leaves out evidence whose result it refused.
	Evidence []NewEvidence
}

// NewEvidence is an entry for a tenant's chain.
type NewEvidence struct {
	TenantID godwit.TenantID
	Result   int // index of its Result
	Entry    evidence.Entry
}

// An Accept is the events of one request: one event, or a batch under one key.
type Accept struct {
	Events []NewEvent
	// Record, when not nil, is complete: it holds the answer to replay. If an unexpired record with its ID exists at
	// Batch.Now, the store stores nothing of this Accept and returns the existing record.
	Record *godwit.IdempotencyRecord
	// Part, when not nil, says that Events are already stored and gain deliveries of a fan-out. If the fan-out's cursor is not
	// at Part.From, the store stores nothing of this Accept.
	Part *FanoutPart
}

// A Fanout is the remaining work for events with too many deliveries for one transaction: each of Events goes to each of
// Endpoints. The transaction that stores the events also stores the fan-out, so an acknowledged event has all of its
// receivers. Later transactions store the deliveries in parts and in order: all deliveries of the first event, then all of the
// second. Several nodes may work on one fan-out at the same time; the store refuses the part that comes second, because the
// cursor has moved. Events that were not stored because their key was known, and events that were swept since, are skipped.
type Fanout struct {
	TenantID  godwit.TenantID
	Events    []godwit.EventID // the first is the fan-out's id: an event is in one fan-out only
	Endpoints []godwit.EndpointID
	Trigger   godwit.Trigger
	Done      int // deliveries stored or skipped
}

// ID returns the id of the first event.
func (f *Fanout) ID() godwit.EventID { return f.Events[0] }

// Total returns the number of deliveries of the complete fan-out.
func (f *Fanout) Total() int { return len(f.Events) * len(f.Endpoints) }

// A FanoutPart moves a fan-out's cursor.
type FanoutPart struct {
	ID   godwit.EventID
	From int // required position of the cursor
	To   int
	Last bool // the fan-out is complete, and is removed
}

// A NewEvent is an event with its deliveries. An event that is already stored does not change and only gains the deliveries. A
// delivery that is already stored does not change either, so the caller may repeat a Commit whose answer was lost.
type NewEvent struct {
	Event      *godwit.Event
	Deliveries []NewDelivery
}

// A NewDelivery is pending and due at once: it is created, updated and due at its event's CreatedAt.
type NewDelivery struct {
	ID         godwit.DeliveryID
	EndpointID godwit.EndpointID
	Trigger    godwit.Trigger
	// ClaimEpoch, when not 0, stores the delivery as already claimed: the engine has reserved room for it in memory. If the
	// shard's lease has another epoch by then, the store leaves the delivery unclaimed and fences results for it.
	ClaimEpoch int64
}

// A Result is the new state of a claimed delivery after an attempt, or the return of its claim without an attempt.
type Result struct {
	Delivery godwit.Delivery // complete new state; while pending, the delivery waits unclaimed until DueAt
	Attempt  *godwit.Attempt // nil: the claim is returned and no attempt was made
	Epoch    int64           // of the lease under which it was claimed
	// Event is copied into the dead letter when the delivery is dead; if nil, the store reads the event itself.
	Event      *godwit.Event
	LastDetail string
	// KeepClaim leaves a pending delivery claimed: the engine tries it again at once.
	KeepClaim bool
}

// EndpointChange is a change that the engine itself makes to an endpoint.
type EndpointChange struct {
	EndpointID godwit.EndpointID
	Disable    string // reason; empty: do not disable. Only an active endpoint is disabled.
	// ReenableAt, with Disable, is when the engine enables the endpoint again; zero: never.
	ReenableAt time.Time
	// Enable makes a disabled endpoint active if its ReenableAt has passed. An endpoint that an operator has changed since
	// stays disabled. StatusAt becomes the batch's Now, and failure counts are cleared as by ResetHealth.
	Enable   bool
	MoveFrom string // with MoveTo: the URL changes only if it is still this one
	MoveTo   string // new URL after a permanent redirect; empty: no
}

// Committed is the result of a Commit.
type Committed struct {
	// Existing has one entry for each Accept: nil when it was stored, else the record that existed before.
	Existing []*godwit.IdempotencyRecord
	// Moved lists the indices of Accepts that were not stored because the cursor of their fan-out is elsewhere, or the fan-out
	// is complete.
	Moved []int
	// Fenced lists the indices of Results that were refused because the shard's lease has another epoch or the delivery is no
	// longer claimed under it. The store stored the rest of the batch.
	Fenced []int
}

// A Claim asks for due deliveries of one endpoint.
type Claim struct {
	EndpointID godwit.EndpointID
	Epoch      int64
	Now        time.Time
	Limit      int
	MaxBytes   int // bound on the sum of event bodies; at least one delivery is returned; 0: no bound
}

// Claimed is the result of a claim.
type Claimed struct {
	Work    []godwit.Work
	NextDue time.Time // earliest due time of the deliveries left unclaimed; zero: none are left
}

// EndpointDue is an endpoint with waiting deliveries.
type EndpointDue struct {
	EndpointID godwit.EndpointID
	NextDue    time.Time
}

// Leases keeps the ownership of shards.
type Leases interface {
	// Acquire takes every shard that is free, expired at now, or already the owner's, up to limit in all; the owner's own
	// shards come first. The epoch of each taken shard grows, also of those the owner held: a node that restarts under its
	// name does not know its old claims. Acquire releases claims of older epochs in these shards.
	Acquire(ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int) ([]godwit.Lease, error)
	// Renew extends the leases and returns those that are still held.
	Renew(ctx context.Context, held []godwit.Lease, now time.Time, ttl time.Duration) ([]godwit.Lease, error)
	// Release gives up the leases and the claims under them at once. The epoch grows, so that late results are fenced.
	Release(ctx context.Context, held []godwit.Lease, now time.Time) error
}

// Nodes records which process runs under each node name.
type Nodes interface {
	// ClaimNode makes n the process that runs under its name until the store is closed or the process ends. The leases of the
	// previous process of that name become free. A *NodeTaken error reports that another process with the name is alive. If
	// the store cannot tell at once, ClaimNode waits some seconds at most for a heartbeat of the other process.
	ClaimNode(ctx context.Context, n godwit.Node) error
	// KeepNode records a heartbeat. The process calls it every NodeBeat. ErrFenced reports that another process has the name
	// now.
	KeepNode(ctx context.Context, n godwit.Node) error
}

const (
	// NodeBeat is the interval between heartbeats of a process.
	NodeBeat = 2 * time.Second
	// NodeSilence is how long a process may go without a heartbeat before it loses its name.
	NodeSilence = 15 * time.Second
)

// NodeTaken reports that another process runs under a node's name.
type NodeTaken struct {
	Name, Holder string
}

func (e *NodeTaken) Error() string {
	return fmt.Sprintf("node name %q is in use by %s", e.Name, e.Holder)
}

// KeyChecks keeps values that prove that a key held outside the store belongs to this store.
type KeyChecks interface {
	// KeyCheck returns the value of that name, or ErrNotFound.
	KeyCheck(ctx context.Context, name string) ([]byte, error)
	// SetKeyCheck replaces the value old; nil: the name must have no value yet. It fails with ErrConflict when the stored
	// value differs.
	SetKeyCheck(ctx context.Context, name string, old, value []byte) error
}

// Page selects a part of a list, newest first.
type Page struct {
	After [16]byte // id of the last item seen; zero for the first page
	Limit int
}

// Deliveries reads deliveries and changes them on behalf of callers.
type Deliveries interface {
	// Delivery returns a delivery. If it was swept, the result holds the fields that its dead letter keeps.
	Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
	ListDeliveries(ctx context.Context, f DeliveryFilter, p Page) ([]godwit.Delivery, error)
	// Attempts lists a delivery's attempts, first to last. It also works for a swept delivery that still has a dead letter.
	Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error)
	// ListAttempts lists an endpoint's attempts, latest first. It reads a bounded number of the newest deliveries and of those
	// tried more than once. It is a log of recent attempts and cannot be paged to the end.
	ListAttempts(ctx context.Context, f AttemptFilter, limit int) ([]LoggedAttempt, error)
	// Requeue makes deliveries pending and due at once, in a new run. A pending unclaimed delivery only becomes due; a claimed
	// one does not change. Requeue marks open dead letters of requeued deliveries as replayed. It restores a swept event from
	// its dead letter and keeps it as long as a new one. It returns the deliveries that became due and skips unknown ids and
	// those of other tenants.
	Requeue(ctx context.Context, r Requeue) ([]godwit.Delivery, error)
	// Cancel ends a pending unclaimed delivery. It fails with ErrConflict when the delivery is finished or claimed.
	Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, now time.Time) (*godwit.Delivery, error)
	// CountPending counts an endpoint's pending deliveries.
	CountPending(ctx context.Context, id godwit.EndpointID) (int64, error)
}

// DeliveryFilter narrows a list of one tenant's deliveries. Zero members do not narrow it.
type DeliveryFilter struct {
	TenantID   godwit.TenantID
	EventID    godwit.EventID
	EndpointID godwit.EndpointID
	Status     godwit.DeliveryStatus
	EventType  string    // exact
	Tried      *bool     // true: with attempts; false: without any; nil: both
	Since      time.Time // created at or after
	Until      time.Time // created before
}

// AttemptFilter narrows the log of one endpoint. Zero members do not narrow it.
type AttemptFilter struct {
	TenantID   godwit.TenantID
	EndpointID godwit.EndpointID
	Since      time.Time // started at or after
	Until      time.Time // started at or before
	Outcomes   []godwit.Outcome
}

// A LoggedAttempt is an attempt with fields of its delivery that a log shows.
type LoggedAttempt struct {
	Attempt   godwit.Attempt
	EventType string                // empty when the event was swept
	Run       int                   // number of the attempt within its run, from 1
	Final     godwit.DeliveryStatus // state of the delivery if this is its last attempt; otherwise pending
}

// Requeue names deliveries to send again. As the effect of a command it returns the deliveries that became due.
type Requeue struct {
	command.EffectOf[[]godwit.Delivery]
	TenantID   godwit.TenantID
	Deliveries []godwit.DeliveryID
	Trigger    godwit.Trigger
	Actor      string
	Now        time.Time
	// Only, when not empty, excludes deliveries of other statuses: a delivery may have ended since the caller read it.
	Only []godwit.DeliveryStatus
}

// Takes reports whether Only allows the status.
func (r *Requeue) Takes(status godwit.DeliveryStatus) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, status)
}

// DeadLetters keeps the deliveries that ended without being accepted. A delivery has at most one open dead letter; replayed
// ones stay until they expire.
type DeadLetters interface {
	// DeadLetter returns a delivery's open dead letter.
	DeadLetter(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.DeadLetter, error)
	// ListDeadLetters pages by delivery id, newest first. It includes bodies and replayed dead letters only if the filter asks
	// for them.
	ListDeadLetters(ctx context.Context, f DeadLetterFilter, p Page) ([]godwit.DeadLetter, error)
	// CountDeadLetters counts, by endpoint, the newest dead letters that a filter selects, limit at most: those that PurgeDead
	// would remove. The endpoint with the largest count comes first.
	CountDeadLetters(ctx context.Context, f DeadLetterFilter, limit int) ([]DeadLetterCount, error)
}

// A DeadLetterCount is the number of dead letters of an endpoint.
type DeadLetterCount struct {
	EndpointID godwit.EndpointID
	Count      int
}

// DeadLetterFilter narrows a list of one tenant's dead letters. Zero members do not narrow it.
type DeadLetterFilter struct {
	TenantID   godwit.TenantID
	EndpointID godwit.EndpointID
	EventType  string // exact
	Status     godwit.DeliveryStatus
	Reason     godwit.Reason
	Since      time.Time // dead at or after
	Until      time.Time // dead before
	WithBody   bool
	Replayed   bool // include replayed ones; a page may then hold several of one delivery, latest first, and exceed its limit
}

// Events reads stored events.
type Events interface {
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	// ListEvents returns events without their bodies.
	ListEvents(ctx context.Context, f EventFilter, p Page) ([]godwit.Event, error)
	// EventsAfter lists events with their bodies by id, oldest first.
	EventsAfter(ctx context.Context, r EventRange) ([]godwit.Event, error)
}

// EventRange selects events of one tenant, oldest first. Zero members do not narrow it.
type EventRange struct {
	TenantID godwit.TenantID
	After    godwit.EventID // exclusive
	Before   godwit.EventID // exclusive
	Patterns []string       // any of them matches; empty: all types
	// Since and Until bound godwit.Event.Time, both inclusive.
	Since, Until time.Time
	Limit        int
	MaxBytes     int // bound on the sum of bodies; at least one event is returned; 0: no bound
}

// EventFilter narrows a list of one tenant's events. Zero members do not narrow it.
type EventFilter struct {
	TenantID godwit.TenantID
	Type     string // exact, or a pattern `prefix.*`
	Key      string // idempotency key
	Since    time.Time
	Until    time.Time
}

// Endpoints keeps endpoints and their secrets.
type Endpoints interface {
	// CreateEndpoint stores an endpoint with its first secret, which may be nil. It fails with ErrConflict when the id or a
	// non-empty code is taken.
	CreateEndpoint(ctx context.Context, e *godwit.Endpoint, s *godwit.Secret) error
	// UpdateEndpoint stores e if the stored version is e.Version-1, and fails with ErrConflict otherwise. It fails with
	// ErrNotFound when the endpoint is deleted. Tenant, code, profile and creation time do not change.
	UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error
	// Endpoint returns an endpoint that is not deleted.
	Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	// EndpointByCode returns the endpoint with the code, unless it is deleted.
	EndpointByCode(ctx context.Context, tenant godwit.TenantID, code string) (*godwit.Endpoint, error)
	// ListEndpoints leaves out deleted endpoints.
	ListEndpoints(ctx context.Context, f EndpointFilter, p Page) ([]godwit.Endpoint, error)
	// LoadEndpoint returns one endpoint as the engine needs it, of any tenant and in any status.
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*LoadedEndpoint, error)
	// LoadEndpoints passes every endpoint that is not deleted to fn.
	LoadEndpoints(ctx context.Context, fn func(*LoadedEndpoint) error) error
	CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error)
	// Health returns an endpoint's health. It holds only the id if the endpoint has no outcomes yet.
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
	// ResetHealth clears failure counts, hold and circuit when an operator enables an endpoint again. Totals, the times of the
	// last outcomes, the last hour's counts and an announced sunset do not change.
	ResetHealth(ctx context.Context, id godwit.EndpointID, now time.Time) error

	// Secrets lists an endpoint's secrets, newest first, including expired ones.
	Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error)
	// PublicKeys lists secrets with a public key that have not expired at now, by ascending id after the given one. It leaves
	// out sealed values.
	PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error)
	// PublicKey returns one such secret, expired or not. It fails with ErrNotFound for a secret without a public key.
	PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error)
}

// Expiry says when an endpoint's older secrets end. A secret that ends earlier keeps its own end.
type Expiry struct {
	At   time.Time // zero: the older secrets do not change
	Keep int       // the newest Keep older secrets end at At, the others when the new one begins; 0: all end at At
}

// EndpointFilter narrows a list of one tenant's endpoints. Zero members do not narrow it.
type EndpointFilter struct {
	TenantID godwit.TenantID
	Status   godwit.EndpointStatus
}

// LoadedEndpoint is everything the engine knows about an endpoint.
type LoadedEndpoint struct {
	Endpoint godwit.Endpoint
	Secrets  []godwit.Secret
	Health   godwit.Health
	Account  string // code of its tenant
}

// Tenants keeps tenants.
type Tenants interface {
	// CreateTenant fails with ErrConflict when the id or a non-empty code is taken.
	CreateTenant(ctx context.Context, t *godwit.Tenant) error
	// UpdateTenant changes name and settings.
	UpdateTenant(ctx context.Context, t *godwit.Tenant) error
	// Tenant returns a tenant that is not deleted.
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	// ListTenants leaves out deleted tenants.
	ListTenants(ctx context.Context, p Page) ([]godwit.Tenant, error)
}

// Keys keeps API keys.
type Keys interface {
	// CreateKey fails with ErrConflict when the id or the hash is taken.
	CreateKey(ctx context.Context, k *godwit.APIKey) error
	Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error)
	// KeyByHash returns the key, live or not; the caller checks LiveAt.
	KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error)
	ListKeys(ctx context.Context, tenant godwit.TenantID, p Page) ([]godwit.APIKey, error)
	// RevokeKey keeps the first revocation time when it is repeated.
	RevokeKey(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID, now time.Time) error
}

// Idempotency keeps the records of management requests, which run outside a Commit.
type Idempotency interface {
	// Reserve inserts r, which has no response yet, in one atomic step (IKH K-15). If a record with its ID exists that has not
	// expired at r.CreatedAt, Reserve returns that record instead.
	Reserve(ctx context.Context, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error)
	// Complete stores the response and the end of the window. It fails with ErrNotFound when there is no record.
	Complete(ctx context.Context, id [32]byte, resp *godwit.StoredResponse, expires time.Time) error
	// Forget frees the key. A missing record is not an error.
	Forget(ctx context.Context, id [32]byte) error
	// Recorded returns the record that has not expired at now, or ErrNotFound.
	Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error)
}

// Notices keeps messages for operators.
type Notices interface {
	ListNotices(ctx context.Context, tenant godwit.TenantID, openOnly bool, p Page) ([]godwit.Notice, error)
	// AcknowledgeNotice keeps the first acknowledgement when it is repeated.
	AcknowledgeNotice(ctx context.Context, tenant godwit.TenantID, id godwit.NoticeID, by string, now time.Time) (*godwit.Notice, error)
}

// EventTypes keeps each tenant's catalogue of event types.
type EventTypes interface {
	// PutEventType stores an entry and replaces one of the same name; CreatedAt does not change.
	PutEventType(ctx context.Context, t *godwit.EventType) error
	EventType(ctx context.Context, tenant godwit.TenantID, name string) (*godwit.EventType, error)
	// ListEventTypes lists entries by name, after the given name.
	ListEventTypes(ctx context.Context, tenant godwit.TenantID, after string, limit int) ([]godwit.EventType, error)
	// DeleteEventType fails with ErrNotFound when there is no such entry.
	DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string) error
}

// Sources keeps inbound sources, their acknowledgments and their rejected requests.
type Sources interface {
	// CreateSource fails with ErrConflict when the id is taken, or when another live source of the tenant has the name.
	CreateSource(ctx context.Context, s *godwit.Source) error
	// UpdateSource stores s if the stored version is s.Version-1. It fails with ErrConflict when the version differs or the
	// name is taken, and with ErrNotFound when the source is deleted. Tenant, scheme and creation time do not change.
	UpdateSource(ctx context.Context, s *godwit.Source) error
	// Source returns a source that is not deleted.
	Source(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error)
	// SourceAt returns a source by id for an inbound request. Neither the source nor its tenant may be deleted.
	SourceAt(ctx context.Context, id godwit.SourceID) (*godwit.Source, error)
	// SourceNamed does the same by the code of the tenant and the name of the source.
	SourceNamed(ctx context.Context, account, name string) (*godwit.Source, error)
	// ListSources leaves out deleted sources.
	ListSources(ctx context.Context, tenant godwit.TenantID, p Page) ([]godwit.Source, error)
	CountSources(ctx context.Context, tenant godwit.TenantID) (int, error)
	// AddAcknowledgment fails with ErrConflict when the id is taken.
	AddAcknowledgment(ctx context.Context, a *godwit.Acknowledgment) error
	ListAcknowledgments(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p Page) ([]godwit.Acknowledgment, error)
	// AddRejection stores a rejection and keeps only the newest keep rejections of its source.
	AddRejection(ctx context.Context, r *godwit.Rejection, keep int) error
	ListRejections(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p Page) ([]godwit.Rejection, error)
}

// Upkeep is housekeeping.
type Upkeep interface {
	// Sweep removes a bounded number of expired rows and reports whether more may be left. The engine calls it repeatedly with
	// pauses, so that it does not delay deliveries.
	Sweep(ctx context.Context, s Sweep) (*Swept, error)
	// SealedRows pages through all values that are encrypted at rest, for re-encryption.
	SealedRows(ctx context.Context, after string, limit int) ([]SealedRow, error)
	// ReplaceSealed replaces a row's value if it is still row.Sealed, and fails with ErrConflict otherwise. It increments the
	// version of an endpoint or source, so that a concurrent update cannot restore the old value.
	ReplaceSealed(ctx context.Context, row SealedRow, sealed []byte) error
	// Ping reports whether the store can take writes.
	Ping(ctx context.Context) error
	// Verify reads the whole database and checks it for damage with the database's own means. It returns a description of the
	// check; an ErrDamaged error describes the damage. It may take minutes.
	Verify(ctx context.Context) (looked string, err error)
	// Describe describes this store for logs and for the doctor command, without credentials.
	Describe(ctx context.Context) (Description, error)
}

// Sweep says which rows have expired.
type Sweep struct {
	Now time.Time
	// EventsBefore removes events created before this time, with their deliveries. Pending deliveries end as exhausted with
	// reason retention-limit and leave a dead letter. An event with a claimed delivery is left for a later sweep.
	EventsBefore      time.Time
	AttemptsBefore    time.Time
	DeadLettersBefore time.Time // dead before
	NoticesBefore     time.Time // acknowledged or not
	RejectionsBefore  time.Time
	Limit             int // approximate number of rows per call
}

// Swept counts the work of one sweep: rows removed, pending deliveries that ended as exhausted because of their age (Expired),
// and those that were Cancelled because their endpoint is deleted.
type Swept struct {
	Events, Deliveries, Attempts, DeadLetters, Records, Notices, Rejections, Expired, Cancelled int64
	More                                                                                        bool
}

// SealedRow is an encrypted value in the store.
type SealedRow struct {
	Ref    string // opaque; pages sort by it
	Sealed []byte
	Bound  string // additional authenticated data of the seal: the text form of the endpoint's, secret's or source's id
}

// Description describes a store.
type Description struct {
	Backend       string // sqlite | postgres
	Version       string
	SchemaVersion int
	Location      string // path or host/database, never a password
	Durability    string // one line: what an acknowledgement guarantees
}
