package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Pipeline is the hot path.
type Pipeline interface {
	// Commit stores accepted events and finished attempts in one durable transaction: after it returns nil, they survive a
	// power failure. If a Commit failed with unknown effect, the caller may commit the same batch again: accepts that are
	// already stored count as stored, results that are already stored count as fenced.
	Commit(ctx context.Context, b *Batch) (*Committed, error)
	// ClaimDue claims due, unclaimed, pending deliveries of several endpoints in one transaction: for each up to its Limit,
	// earliest first. It returns an entry for each claim, with the events of the deliveries and the time when the next unclaimed
	// delivery is due. The endpoints of the claims differ. If one claim cannot be made, its entry says so, and the others are made.
	ClaimDue(ctx context.Context, claims []Claim) ([]Claimed, error)
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
	// ConfigVersion, when not 0, is the config version by which the receivers of Accepts were chosen. If the store has another
	// one, it stores nothing and reports Committed.Behind.
	ConfigVersion int64
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
	// Broadcast, when not nil, says that Events are those of a broadcast for some of its tenants. If the broadcast's cursor is not
	// at Broadcast.From, the store stores nothing of this Accept. There is no Record, and the events' Later are stored as fan-outs.
	Broadcast *BroadcastPart
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
	// Later are endpoints whose deliveries the event's fan-out stores after this transaction, because they are too many for it.
	// Only Publish and the parts of broadcasts read it; other accepts have the fan-outs of their batch.
	Later []godwit.EndpointID
}

// Receivers returns the number of deliveries, stored now or later.
func (n *NewEvent) Receivers() int { return len(n.Deliveries) + len(n.Later) }

// Fanout returns the fan-out that stores the deliveries to the endpoints in Later.
func (n *NewEvent) Fanout() Fanout {
	return Fanout{TenantID: n.Event.TenantID, Events: []godwit.EventID{n.Event.ID}, Endpoints: n.Later, Trigger: godwit.TriggerAccept}
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
	BytesSent  int64 // body of the attempt's request; counted as usage
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
	Enable bool
	// RestUntil, when not zero, is the earlier ReenableAt of a disabled endpoint that has a later one.
	RestUntil time.Time
	MoveFrom  string // with MoveTo: the URL changes only if it is still this one
	MoveTo    string // new URL after a permanent redirect; empty: no
}

// Committed is the result of a Commit.
type Committed struct {
	// Existing has one entry for each Accept: nil when it was stored, else the record that existed before.
	Existing []*godwit.IdempotencyRecord
	// Moved lists the indices of Accepts that were not stored because the cursor of their fan-out or broadcast is elsewhere, or it
	// is complete.
	Moved []int
	// Fenced lists the indices of Results that were refused because the shard's lease has another epoch or the delivery is no
	// longer claimed under it. The store stored the rest of the batch.
	Fenced []int
	// Behind says that nothing was stored, because the store's config version is not Batch.ConfigVersion.
	Behind bool
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
	// Err, when not nil, says that this claim failed. ErrFenced: the shard's lease has another epoch, and nothing was claimed.
	// Any other error: deliveries may have been claimed that Work does not hold.
	Err     error
	Work    []godwit.Work
	NextDue time.Time // earliest due time of the deliveries left unclaimed; zero: none are left
	// ConfigVersion is a config version that includes every change that was committed before any of the deliveries was. It is 0
	// if the store has no versions.
	ConfigVersion int64
}

// EndpointDue is an endpoint with waiting deliveries.
type EndpointDue struct {
	EndpointID godwit.EndpointID
	NextDue    time.Time
}
