// Package store says what the engine and the APIs need of storage, in domain transitions: accept events, claim what is
// due, record results, move a delivery. Each transition is one transaction; no transaction handle and no SQL crosses this
// seam. Every backend passes the one suite in storetest.
//
// Ownership: endpoints hash onto godwit.Shards shards. A node that holds a shard's lease is the only one that claims,
// records and writes health for its endpoints. A claim marks a pending delivery as being in that node's memory, under the
// lease's epoch; claims of older epochs are orphans and are released when the shard changes hands.
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
	// ErrNotFound reports that the thing does not exist, or belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrConflict reports that the thing is not in a state that allows the transition, or changed under way.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable wraps every failure of the backend itself that may pass: disk full, connection lost, too busy. The
	// transaction had no effect, or its effect is unknown and repeating it is safe.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFenced reports that the caller no longer owns the shard.
	ErrFenced = errors.New("lease lost")
	// ErrDamaged reports that the database's own means found it damaged.
	ErrDamaged = errors.New("database is damaged")
	// ErrNewerSchema reports a database written by a newer release.
	ErrNewerSchema = errors.New("database schema is newer than this program")
)

// Passing reports a failure that says nothing against what was to be written: the store is away, or was too slow.
func Passing(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Store is a whole backend. Consumers declare the few methods they use.
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
	// Commit stores accepted events and finished attempts in one durable transaction: after it returns nil, they survive
	// a power failure. A batch whose first Commit failed with unknown effect may be committed again: accepts that are
	// there already count as stored, results as fenced.
	Commit(ctx context.Context, b *Batch) (*Committed, error)
	// ClaimDue takes up to Limit unclaimed pending deliveries of one endpoint that are due, earliest first, marks them
	// claimed and returns them with their events. It also tells when the next unclaimed one is due. ErrFenced when the
	// shard's lease has another epoch.
	ClaimDue(ctx context.Context, c Claim) (*Claimed, error)
	// Reclaim makes due again what is claimed under the epoch but not among held: rows whose claim was stored although the
	// answer was lost on the way. It returns how many.
	Reclaim(ctx context.Context, endpoint godwit.EndpointID, epoch int64, held []godwit.DeliveryID, now time.Time) (int, error)
	// EndpointsDue lists the endpoints of the shards which have unclaimed pending deliveries, each with the time of
	// its earliest. Its cost grows with the endpoints, not with the deliveries.
	EndpointsDue(ctx context.Context, shards []int) ([]EndpointDue, error)
	// BringBack corrects due times that were set while the clock was ahead, in one transaction, and returns how many. It
	// looks at the endpoints' unclaimed pending deliveries that are due after Lateness.After. One that was last changed
	// after now keeps the delay it was given, counted from now and at most until Lateness.Latest; one that is due after
	// Lateness.Latest is due now. No time of a run's first attempt stays after now.
	BringBack(ctx context.Context, now time.Time, endpoints []Lateness) (int, error)
	// Fanouts lists fan-outs that are not complete, oldest first, after the given one. Their Endpoints are left out: many
	// large lists may be open at once.
	Fanouts(ctx context.Context, after godwit.EventID, limit int) ([]Fanout, error)
	// Fanout returns one that is not complete, or ErrNotFound.
	Fanout(ctx context.Context, id godwit.EventID) (*Fanout, error)
}

// Lateness is how far ahead deliveries to an endpoint may be due.
type Lateness struct {
	EndpointID godwit.EndpointID
	After      time.Time // due times up to this one are left alone
	Latest     time.Time // no schedule of the endpoint leads beyond it
}

// A Batch is what one group commit carries.
type Batch struct {
	Now     time.Time
	Accepts []Accept
	Fanouts []Fanout        // of events among Accepts; one that is stored already is kept as it is
	Results []Result        // applied in order: one delivery may occur again after a result that kept its claim
	Health  []godwit.Health // latest state of each endpoint touched by Results; whole rows. Left out where the lease was lost
	Changes []EndpointChange
	Notices []godwit.Notice
	// Evidence is appended to the chains of its tenants. One of a result that was refused is left out.
	Evidence []NewEvidence
}

// NewEvidence is an entry for a tenant's chain.
type NewEvidence struct {
	TenantID godwit.TenantID
	Result   int // index of the Result that it tells of
	Entry    evidence.Entry
}

// An Accept is one request's events: one, or a batch that came under one key.
type Accept struct {
	Events []NewEvent
	// Record, when not nil, is completed: the answer to be replayed. If a record with its ID exists that has not expired
	// at Batch.Now, nothing of this Accept is stored and that record is returned.
	Record *godwit.IdempotencyRecord
	// Part, when not nil, says that Events are stored already and gain deliveries of a fan-out. Nothing of this Accept is
	// stored when the fan-out does not stand at Part.From.
	Part *FanoutPart
}

// A Fanout is what is left to do for events whose deliveries are too many for one transaction: each of Events goes to each of
// Endpoints. It is stored in the transaction that stores the events, so that an acknowledged event has all of its receivers,
// and its deliveries are stored after that, in parts and in order: all of the first event, then all of the second. Several
// nodes may work on one at the same time: the part that comes second finds that the fan-out has moved on. An event that was not
// stored, since its key was known, or that was swept since, is passed over.
type Fanout struct {
	TenantID  godwit.TenantID
	Events    []godwit.EventID // the first is the fan-out's id: an event is in one fan-out only
	Endpoints []godwit.EndpointID
	Trigger   godwit.Trigger
	Done      int // deliveries that are stored or passed over
}

// ID is that of the first event.
func (f *Fanout) ID() godwit.EventID { return f.Events[0] }

// Total is how many deliveries there are in all.
func (f *Fanout) Total() int { return len(f.Events) * len(f.Endpoints) }

// A FanoutPart moves a fan-out on.
type FanoutPart struct {
	ID   godwit.EventID
	From int // where it must stand
	To   int
	Last bool // it is complete, and removed
}

// A NewEvent is an event with its fan-out. An event that is stored already is kept as it is and only gains the
// deliveries; a delivery that is stored already is kept too, so that repeating a Commit whose answer was lost is safe.
type NewEvent struct {
	Event      *godwit.Event
	Deliveries []NewDelivery
}

// A NewDelivery starts pending and due at once: it is created, updated and due at its event's CreatedAt.
type NewDelivery struct {
	ID         godwit.DeliveryID
	EndpointID godwit.EndpointID
	Trigger    godwit.Trigger
	// ClaimEpoch, when not 0, stores it as already claimed: the engine has kept a place for it in memory. It is stored
	// unclaimed if the shard's lease has another epoch by then; a result for it will be fenced.
	ClaimEpoch int64
}

// A Result is the new state of a claimed delivery after an attempt, or its return to the store without one.
type Result struct {
	Delivery godwit.Delivery // whole new state; while pending it waits unclaimed until DueAt
	Attempt  *godwit.Attempt // nil: the claim is given back, nothing happened
	Epoch    int64           // of the lease under which it was claimed
	// Event, when the delivery ended dead, is copied into the dead letter; nil takes it from the store.
	Event      *godwit.Event
	LastDetail string
	// KeepClaim leaves the delivery claimed although it is pending: the engine tries again at once.
	KeepClaim bool
}

// EndpointChange is what the engine itself changes about an endpoint.
type EndpointChange struct {
	EndpointID godwit.EndpointID
	Disable    string // reason; empty: no. An endpoint that is not active stays as it is.
	// ReenableAt goes with Disable: when the engine tries it again; zero never.
	ReenableAt time.Time
	// Enable makes a disabled endpoint active whose ReenableAt has come; one that a person has changed since stays as it is.
	// Its StatusAt is the batch's Now, its failure counts are cleared as by ResetHealth.
	Enable   bool
	MoveFrom string // with MoveTo: only if this is still its URL
	MoveTo   string // new URL after a permanent redirect; empty: no
}

// Committed tells what a Commit found.
type Committed struct {
	// Existing has one entry for each Accept: nil when it was stored, else the record that was there before.
	Existing []*godwit.IdempotencyRecord
	// Moved lists the indices of Accepts that were not stored because their fan-out stands elsewhere, or is complete.
	Moved []int
	// Fenced lists the indices of Results that were refused, because the shard's lease has another epoch or the delivery
	// is no longer claimed under it. Everything else of the batch was stored.
	Fenced []int
}

// A Claim asks for due deliveries of one endpoint.
type Claim struct {
	EndpointID godwit.EndpointID
	Epoch      int64
	Now        time.Time
	Limit      int
	MaxBytes   int // bound on the sum of event bodies, but at least one delivery is returned; 0: none
}

// Claimed is what a claim got.
type Claimed struct {
	Work    []godwit.Work
	NextDue time.Time // earliest due time among what stays unclaimed; zero when nothing does
}

// EndpointDue is an endpoint with waiting work.
type EndpointDue struct {
	EndpointID godwit.EndpointID
	NextDue    time.Time
}

// Leases is the ownership of shards.
type Leases interface {
	// Acquire takes every shard that is free, expired at now, or already owner's, up to limit in all; the epoch grows for
	// each one taken by this call, also for those it held: a node that starts again under its name does not know its old
	// claims. It releases the claims of older epochs in them. What the owner holds comes first.
	Acquire(ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int) ([]godwit.Lease, error)
	// Renew prolongs the leases and returns those that are still held.
	Renew(ctx context.Context, held []godwit.Lease, now time.Time, ttl time.Duration) ([]godwit.Lease, error)
	// Release gives them up at once, and the claims under them; the epoch grows, so that a late result is fenced.
	Release(ctx context.Context, held []godwit.Lease, now time.Time) error
}

// Nodes keeps which process runs under a node's name.
type Nodes interface {
	// ClaimNode makes n the process that runs under its name until the store is closed or the process ends. The leases of the
	// process that had the name before are free from then on. A *NodeTaken error reports that another process with the name
	// lives. Where that cannot be told at once, the call waits for a sign of life of the other, at most some seconds.
	ClaimNode(ctx context.Context, n godwit.Node) error
	// KeepNode is the sign of life. It is called every NodeBeat. ErrFenced reports that another process has the name now.
	KeepNode(ctx context.Context, n godwit.Node) error
}

const (
	// NodeBeat is how often a process shows that it lives.
	NodeBeat = 2 * time.Second
	// NodeSilence is after how long a process that does not show that it lives has lost its name.
	NodeSilence = 15 * time.Second
)

// NodeTaken reports that another process runs under a node's name.
type NodeTaken struct {
	Name, Holder string
}

func (e *NodeTaken) Error() string {
	return fmt.Sprintf("node name %q is in use by %s", e.Name, e.Holder)
}

// KeyChecks keeps by what keys outside the store are known to be the store's own.
type KeyChecks interface {
	// KeyCheck returns the value of that name, or ErrNotFound.
	KeyCheck(ctx context.Context, name string) ([]byte, error)
	// SetKeyCheck stores a value in place of old; nil: there must be none. ErrConflict when another one is there.
	SetKeyCheck(ctx context.Context, name string, old, value []byte) error
}

// Page selects a part of a list, newest first.
type Page struct {
	After [16]byte // id of the last item seen; zero for the first page
	Limit int
}

// Deliveries is what people ask about deliveries and do to them.
type Deliveries interface {
	// Delivery returns what a dead letter keeps of it when the delivery itself was swept.
	Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
	ListDeliveries(ctx context.Context, f DeliveryFilter, p Page) ([]godwit.Delivery, error)
	// Attempts lists a delivery's attempts, first to last; also of one that was swept while a dead letter of it is left.
	Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error)
	// ListAttempts lists an endpoint's attempts, latest first. It looks at its newest deliveries and at those that were
	// tried more than once, a bounded number of each: a log to look at, not a journal to page through to the end.
	ListAttempts(ctx context.Context, f AttemptFilter, limit int) ([]LoggedAttempt, error)
	// Requeue makes deliveries pending and due at once, in a new run. A pending unclaimed one is only made due; a claimed
	// one is left alone. Open dead letters of requeued deliveries are marked as replayed; an event that was swept is
	// restored from its dead letter, and kept from then on as if it were new. It returns those it made due; unknown ids and those of other
	// tenants are passed over.
	Requeue(ctx context.Context, r Requeue) ([]godwit.Delivery, error)
	// Cancel ends a pending delivery that is not claimed; ErrConflict when it is finished or claimed.
	Cancel(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID, now time.Time) (*godwit.Delivery, error)
	// CountPending counts an endpoint's pending deliveries.
	CountPending(ctx context.Context, id godwit.EndpointID) (int64, error)
}

// DeliveryFilter narrows a list of one tenant; other members that are zero do not.
type DeliveryFilter struct {
	TenantID   godwit.TenantID
	EventID    godwit.EventID
	EndpointID godwit.EndpointID
	Status     godwit.DeliveryStatus
	EventType  string    // exact
	Tried      *bool     // with attempts so far, or without any; nil does not ask
	Since      time.Time // created at or after
	Until      time.Time // created before
}

// AttemptFilter narrows the log of one endpoint; members that are zero do not.
type AttemptFilter struct {
	TenantID   godwit.TenantID
	EndpointID godwit.EndpointID
	Since      time.Time // started at or after
	Until      time.Time // started at or before
	Outcomes   []godwit.Outcome
}

// A LoggedAttempt is an attempt with what people want to see beside it.
type LoggedAttempt struct {
	Attempt   godwit.Attempt
	EventType string                // empty when the event was swept
	Run       int                   // number of the attempt within its run, from 1
	Final     godwit.DeliveryStatus // state of the delivery if this is its last attempt; pending else
}

// Requeue names deliveries to send again. As the effect of a command it returns those that were made due.
type Requeue struct {
	command.EffectOf[[]godwit.Delivery]
	TenantID   godwit.TenantID
	Deliveries []godwit.DeliveryID
	Trigger    godwit.Trigger
	Actor      string
	Now        time.Time
	// Only, when not empty, leaves deliveries of other statuses as they are: what was read before may have ended since.
	Only []godwit.DeliveryStatus
}

// Takes reports whether a delivery of this status is meant.
func (r *Requeue) Takes(status godwit.DeliveryStatus) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, status)
}

// DeadLetters is the list of deliveries that ended without being accepted. A delivery has at most one that is open; those
// that were replayed stay until they expire.
type DeadLetters interface {
	// DeadLetter returns the open one of a delivery.
	DeadLetter(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.DeadLetter, error)
	// ListDeadLetters pages by delivery id, newest first. Bodies are included only when asked for. Those that were replayed
	// are left out unless asked for.
	ListDeadLetters(ctx context.Context, f DeadLetterFilter, p Page) ([]godwit.DeadLetter, error)
	// CountDeadLetters counts by endpoint the newest dead letters that a filter selects, at most limit of them: those that PurgeDead
	// would remove. The endpoint with the most comes first.
	CountDeadLetters(ctx context.Context, f DeadLetterFilter, limit int) ([]DeadLetterCount, error)
}

// A DeadLetterCount is how many dead letters an endpoint has.
type DeadLetterCount struct {
	EndpointID godwit.EndpointID
	Count      int
}

// DeadLetterFilter narrows a list of one tenant; other members that are zero do not.
type DeadLetterFilter struct {
	TenantID   godwit.TenantID
	EndpointID godwit.EndpointID
	EventType  string // exact
	Status     godwit.DeliveryStatus
	Reason     godwit.Reason
	Since      time.Time // dead at or after
	Until      time.Time // dead before
	WithBody   bool
	Replayed   bool // include those that were replayed; pages may then hold several of one delivery, the latest first, and be longer for it
}

// Events is what people ask about events.
type Events interface {
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	// ListEvents leaves bodies out.
	ListEvents(ctx context.Context, f EventFilter, p Page) ([]godwit.Event, error)
	// EventsAfter lists events in the order of their ids, oldest first, with their bodies.
	EventsAfter(ctx context.Context, r EventRange) ([]godwit.Event, error)
}

// EventRange selects events of one tenant, oldest first; members that are zero do not narrow it.
type EventRange struct {
	TenantID godwit.TenantID
	After    godwit.EventID // exclusive
	Before   godwit.EventID // exclusive
	Patterns []string       // any of these matches; none: all types
	// Since and Until bound godwit.Event.Time, both inclusive.
	Since, Until time.Time
	Limit        int
	MaxBytes     int // bound on the sum of bodies, but at least one event is returned; 0: none
}

// EventFilter narrows a list of one tenant; other members that are zero do not.
type EventFilter struct {
	TenantID godwit.TenantID
	Type     string // exact, or a pattern `prefix.*`
	Key      string // idempotency key
	Since    time.Time
	Until    time.Time
}

// Endpoints keeps subscribers and their secrets.
type Endpoints interface {
	// CreateEndpoint stores an endpoint with its first secret, which may be nil. ErrConflict when the id or the code, where
	// it has one, is taken.
	CreateEndpoint(ctx context.Context, e *godwit.Endpoint, s *godwit.Secret) error
	// UpdateEndpoint stores e if the stored version is e.Version-1; ErrConflict when it is not. ErrNotFound when it is
	// deleted. Tenant, code, profile and creation time stay as they were.
	UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error
	// Endpoint returns an endpoint that is not deleted.
	Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error)
	// EndpointByCode finds an endpoint that is not deleted by its code.
	EndpointByCode(ctx context.Context, tenant godwit.TenantID, code string) (*godwit.Endpoint, error)
	// ListEndpoints leaves deleted ones out.
	ListEndpoints(ctx context.Context, f EndpointFilter, p Page) ([]godwit.Endpoint, error)
	// LoadEndpoint returns one endpoint as the engine needs it, whatever its tenant or status.
	LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*LoadedEndpoint, error)
	// LoadEndpoints passes every endpoint that is not deleted to fn.
	LoadEndpoints(ctx context.Context, fn func(*LoadedEndpoint) error) error
	CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error)
	// Health of an endpoint without outcomes is empty but for its id.
	Health(ctx context.Context, id godwit.EndpointID) (*godwit.Health, error)
	// ResetHealth clears failure counts, hold and circuit when an operator enables an endpoint again. Totals, the last
	// times, the last hour's counts and an announced sunset stay.
	ResetHealth(ctx context.Context, id godwit.EndpointID, now time.Time) error

	// Secrets lists an endpoint's secrets, expired ones too, newest first.
	Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error)
	// PublicKeys lists secrets with a public key which are not expired at now, by id ascending after the given one. What
	// is sealed is left out.
	PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error)
	// PublicKey returns one of them, expired or not; ErrNotFound for a secret without a public key.
	PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error)
}

// Expiry is when an endpoint's older secrets end, unless they do so before.
type Expiry struct {
	At   time.Time // zero leaves them as they are
	Keep int       // only so many of the newest run until At, the rest end when the new one begins; 0: all run
}

// EndpointFilter narrows a list of one tenant; other members that are zero do not.
type EndpointFilter struct {
	TenantID godwit.TenantID
	Status   godwit.EndpointStatus
}

// LoadedEndpoint is all the engine knows of an endpoint.
type LoadedEndpoint struct {
	Endpoint godwit.Endpoint
	Secrets  []godwit.Secret
	Health   godwit.Health
	Account  string // code of its tenant
}

// Tenants keeps tenants.
type Tenants interface {
	// CreateTenant: ErrConflict when the id or the code, where it has one, is taken.
	CreateTenant(ctx context.Context, t *godwit.Tenant) error
	// UpdateTenant changes name and settings.
	UpdateTenant(ctx context.Context, t *godwit.Tenant) error
	// Tenant returns a tenant that is not deleted.
	Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error)
	// ListTenants leaves deleted ones out.
	ListTenants(ctx context.Context, p Page) ([]godwit.Tenant, error)
}

// Keys keeps API keys.
type Keys interface {
	// CreateKey: ErrConflict when the id or the hash is taken.
	CreateKey(ctx context.Context, k *godwit.APIKey) error
	Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error)
	// KeyByHash returns the key whether it is live or not; the caller decides by LiveAt.
	KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error)
	ListKeys(ctx context.Context, tenant godwit.TenantID, p Page) ([]godwit.APIKey, error)
	// RevokeKey keeps the first time when it is repeated.
	RevokeKey(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID, now time.Time) error
}

// Idempotency keeps the records of management requests, which run outside a Commit.
type Idempotency interface {
	// Reserve inserts r, which has no response yet, unless a record with its ID exists that has not expired at
	// r.CreatedAt; then it returns that one. It is one atomic step (IKH K-15).
	Reserve(ctx context.Context, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error)
	// Complete stores the response and the end of the window; ErrNotFound when there is no record.
	Complete(ctx context.Context, id [32]byte, resp *godwit.StoredResponse, expires time.Time) error
	// Forget frees the key; it is no error when there is none.
	Forget(ctx context.Context, id [32]byte) error
	// Recorded returns the record that has not expired at now, or ErrNotFound.
	Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error)
}

// Notices keeps what operators should look at.
type Notices interface {
	ListNotices(ctx context.Context, tenant godwit.TenantID, openOnly bool, p Page) ([]godwit.Notice, error)
	// AcknowledgeNotice keeps the first acknowledgement when it is repeated.
	AcknowledgeNotice(ctx context.Context, tenant godwit.TenantID, id godwit.NoticeID, by string, now time.Time) (*godwit.Notice, error)
}

// EventTypes keeps the catalogue of what events a tenant has.
type EventTypes interface {
	// PutEventType stores an entry, in place of the one of its name if there is one; CreatedAt stays that of the first.
	PutEventType(ctx context.Context, t *godwit.EventType) error
	EventType(ctx context.Context, tenant godwit.TenantID, name string) (*godwit.EventType, error)
	// ListEventTypes lists entries by name, after the given one.
	ListEventTypes(ctx context.Context, tenant godwit.TenantID, after string, limit int) ([]godwit.EventType, error)
	// DeleteEventType: ErrNotFound when there is no such entry.
	DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string) error
}

// Sources keeps where upstreams deliver to us, what they agreed to, and what was not taken in.
type Sources interface {
	// CreateSource: ErrConflict when the id is taken, or the name by another source of the tenant that is not deleted.
	CreateSource(ctx context.Context, s *godwit.Source) error
	// UpdateSource stores s if the stored version is s.Version-1; ErrConflict when it is not, or when the name is taken.
	// ErrNotFound when it is deleted. Tenant, scheme and creation time stay as they were.
	UpdateSource(ctx context.Context, s *godwit.Source) error
	// Source returns a source that is not deleted.
	Source(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error)
	// SourceAt finds a source that is not deleted, of a tenant that is not either, for whoever comes from outside.
	SourceAt(ctx context.Context, id godwit.SourceID) (*godwit.Source, error)
	// SourceNamed finds such a source by the code of its tenant and its name.
	SourceNamed(ctx context.Context, account, name string) (*godwit.Source, error)
	// ListSources leaves deleted ones out.
	ListSources(ctx context.Context, tenant godwit.TenantID, p Page) ([]godwit.Source, error)
	CountSources(ctx context.Context, tenant godwit.TenantID) (int, error)
	// AddAcknowledgment: ErrConflict when the id is taken.
	AddAcknowledgment(ctx context.Context, a *godwit.Acknowledgment) error
	ListAcknowledgments(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p Page) ([]godwit.Acknowledgment, error)
	// AddRejection keeps no more of a source than the newest keep.
	AddRejection(ctx context.Context, r *godwit.Rejection, keep int) error
	ListRejections(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p Page) ([]godwit.Rejection, error)
}

// Upkeep is housekeeping.
type Upkeep interface {
	// Sweep removes a bounded amount of what is past its time, and says whether there may be more. It is called again and
	// again with pauses, so that it never holds up delivery.
	Sweep(ctx context.Context, s Sweep) (*Swept, error)
	// SealedRows pages through everything that is encrypted at rest, for re-encryption.
	SealedRows(ctx context.Context, after string, limit int) ([]SealedRow, error)
	// ReplaceSealed writes a row back if it still holds row.Sealed; ErrConflict when it does not. The version of an endpoint
	// or source grows, so that an update that was under way does not bring the old value back.
	ReplaceSealed(ctx context.Context, row SealedRow, sealed []byte) error
	// Ping reports whether the store can take writes.
	Ping(ctx context.Context) error
	// Verify reads the whole database and looks for damage, with the means of the database itself. It returns what was
	// looked at; an ErrDamaged error says what was found. It may take minutes.
	Verify(ctx context.Context) (looked string, err error)
	// Describe tells an operator what this store is, without credentials: for logs and doctor.
	Describe(ctx context.Context) (Description, error)
}

// Sweep says what is past its time.
type Sweep struct {
	Now time.Time
	// EventsBefore removes events created before, with their deliveries. Pending ones end exhausted with reason
	// retention-limit and leave a dead letter; an event with a claimed one is left for a later sweep.
	EventsBefore      time.Time
	AttemptsBefore    time.Time
	DeadLettersBefore time.Time // dead before
	NoticesBefore     time.Time // acknowledged or not
	RejectionsBefore  time.Time
	Limit             int // rows a call, roughly
}

// Swept counts what a sweep did: rows removed, pending deliveries that ended exhausted (Expired) by their age, and those
// that ended Cancelled because their endpoint is deleted.
type Swept struct {
	Events, Deliveries, Attempts, DeadLetters, Records, Notices, Rejections, Expired, Cancelled int64
	More                                                                                        bool
}

// SealedRow is an encrypted value somewhere in the store.
type SealedRow struct {
	Ref    string // opaque; pages sort by it
	Sealed []byte
	Bound  string // additional authenticated data it was sealed with: the text form of the id of the endpoint, secret or source
}

// Description is what a store says of itself.
type Description struct {
	Backend       string // sqlite | postgres
	Version       string
	SchemaVersion int
	Location      string // path or host/database, never a password
	Durability    string // one line: what an acknowledgement means
}
