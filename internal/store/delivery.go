package store

import (
	"context"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
)

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
	// CancelMany ends those of the deliveries that are pending and unclaimed, in one transaction, and returns them. It skips the others, unknown ids
	// and those of other tenants.
	CancelMany(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, now time.Time) ([]godwit.Delivery, error)
	// CountDeliveries counts the deliveries that a filter selects, at most upTo. EventID and EventType must be empty: these are not counted without reading rows.
	CountDeliveries(ctx context.Context, f DeliveryFilter, upTo int) (int, error)
	// CountWaiting counts a tenant's pending deliveries, at most upTo.
	CountWaiting(ctx context.Context, tenant godwit.TenantID, upTo int) (int, error)
	// CountPending counts an endpoint's pending deliveries.
	CountPending(ctx context.Context, id godwit.EndpointID) (int64, error)
}

// DeliveryFilter narrows a list of one tenant's deliveries. Zero members do not narrow it.
type DeliveryFilter struct {
	TenantID   godwit.TenantID
	EventID    godwit.EventID
	EndpointID godwit.EndpointID
	Endpoints  []godwit.EndpointID // any of them; only beside EventID
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
	Exhausted  bool // only attempts with which a run used up its attempts; see godwit.Attempt.Exhausted
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
	// GroupDeadLetters counts, by endpoint and reason, the newest dead letters that a filter selects, limit at most. The largest
	// group comes first.
	GroupDeadLetters(ctx context.Context, f DeadLetterFilter, limit int) ([]DeadLetterGroup, error)
}

// A DeadLetterGroup is the dead letters of an endpoint that have one reason.
type DeadLetterGroup struct {
	EndpointID godwit.EndpointID
	Reason     godwit.Reason
	Count      int
	LastAt     time.Time // when the latest of them ended
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
