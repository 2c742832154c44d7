package godwit

import "time"

// A Broadcast is an event that was posted for many tenants of an environment. Each of them gets an event of its own.
type Broadcast struct {
	ID            BroadcastID
	EnvironmentID EnvironmentID
	Principal     KeyID // the API key that posted it
	Type          string
	ContentType   string
	All           bool // for all tenants that had an endpoint for it; otherwise the request named them
	Tenants       int  // number of tenants, fixed when it was accepted
	Accepted      int  // tenants whose event is stored
	Skipped       int  // tenants that get no event; see BroadcastItem
	Deliveries    int  // of the stored events
	CreatedAt     time.Time
	CompletedAt   time.Time // zero while tenants are left
}

// Open reports whether tenants are left.
func (b *Broadcast) Open() bool { return b.CompletedAt.IsZero() }

// A BroadcastItem is the result of a broadcast for one tenant: an event, or the reason why there is none.
type BroadcastItem struct {
	TenantID  TenantID
	TenantUID string  // empty if the tenant has none, or is gone
	EventID   EventID // zero if the tenant was skipped
	Reason    SkipReason
	Detail    string // what the reason alone does not tell
}

// A SkipReason says why a tenant gets no event of a broadcast.
type SkipReason string

// The reasons.
const (
	SkipInvalid SkipReason = "invalid"        // the tenant has a type of its own with this name, and the event does not match it
	SkipLimit   SkipReason = "limit"          // a limit of the tenant refuses the event
	SkipDeleted SkipReason = "tenant-deleted" // the tenant was deleted after the broadcast was accepted
)

// Limits of a broadcast.
const (
	MaxBroadcastNames   = 500     // tenants that a request may name; the header of a request is bounded too
	MaxBroadcastTenants = 100_000 // tenants of one broadcast
	MaxBroadcastBytes   = 1 << 30 // size of the payload times the number of tenants, since each event has its payload
	MaxOpenBroadcasts   = 16      // of an environment
)
