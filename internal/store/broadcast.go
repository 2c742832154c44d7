package store

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Broadcasts keeps events that were posted for many tenants. Like a Fanout, a broadcast is stored with the list of its receivers, and
// is then worked off in parts, each in a Commit that moves its cursor; see BroadcastPart. Several nodes may work on one broadcast at the
// same time: the store refuses the part that comes second.
type Broadcasts interface {
	// CreateBroadcast stores a broadcast and the record of its request. If an unexpired record with the same ID exists, it
	// stores nothing and returns that one. It fails with ErrLimit while n.MaxOpen broadcasts of the environment are open.
	CreateBroadcast(ctx context.Context, n *NewBroadcast) (*godwit.IdempotencyRecord, error)
	Broadcast(ctx context.Context, environment godwit.EnvironmentID, id godwit.BroadcastID) (*godwit.Broadcast, error)
	ListBroadcasts(ctx context.Context, environment godwit.EnvironmentID, p Page) ([]godwit.Broadcast, error)
	// ListBroadcastItems lists the tenants that have a result, by their ids, newest first.
	ListBroadcastItems(ctx context.Context, f BroadcastFilter, p Page) ([]godwit.BroadcastItem, error)
	// OpenBroadcasts lists incomplete broadcasts of all environments after the given one, oldest first.
	OpenBroadcasts(ctx context.Context, after godwit.BroadcastID, limit int) ([]OpenBroadcast, error)
	// BroadcastWork returns what is needed to go on with an incomplete broadcast, or ErrNotFound.
	BroadcastWork(ctx context.Context, id godwit.BroadcastID) (*BroadcastWork, error)
}

// A NewBroadcast is a broadcast to store.
type NewBroadcast struct {
	godwit.Broadcast                        // without CompletedAt, unless there are no tenants to work off
	Event            *godwit.Event          // as each tenant gets it, without ids, key and time
	Work             []godwit.TenantID      // tenants that get an event, in the order of the parts
	Skips            []godwit.BroadcastItem // tenants that do not
	Record           *godwit.IdempotencyRecord
	MaxOpen          int
}

// An OpenBroadcast says how far an incomplete broadcast is.
type OpenBroadcast struct {
	ID   godwit.BroadcastID
	Done int
}

// BroadcastWork is the remaining work of a broadcast.
type BroadcastWork struct {
	godwit.Broadcast
	Event *godwit.Event     // as each tenant gets it, without ids, key and time
	Work  []godwit.TenantID // in the order of the parts
	Done  int               // the cursor: tenants of Work that have a result
}

// A BroadcastPart moves a broadcast's cursor and holds the results of the tenants that it passes.
type BroadcastPart struct {
	ID    godwit.BroadcastID
	From  int // required position of the cursor
	To    int
	Last  bool // the broadcast is complete: the store keeps its results and removes its work
	Items []godwit.BroadcastItem
	// Deliveries is the number of deliveries of the part's events, those of fan-outs included.
	Deliveries int
}

// Accepted returns the number of tenants whose event is stored with the part.
func (p *BroadcastPart) Accepted() (n int) {
	for i := range p.Items {
		if !p.Items[i].EventID.IsZero() {
			n++
		}
	}
	return n
}

// Skipped returns the number of tenants that the part skips.
func (p *BroadcastPart) Skipped() int { return len(p.Items) - p.Accepted() }

// A BroadcastFilter selects results of one broadcast.
type BroadcastFilter struct {
	ID      godwit.BroadcastID
	Skipped bool // only tenants that were skipped
}
