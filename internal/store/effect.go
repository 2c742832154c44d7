package store

import (
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Commands keeps what was commanded, and the evidence of it. The effects its steps may carry are those of this file; each
// is applied in the transaction of the step and gives the result that stands beside it, or ErrNotFound or ErrConflict.
// Any other failure is the transaction's.
type Commands interface {
	command.Lister
}

// ChangeEndpoint is UpdateEndpoint. No result.
type ChangeEndpoint struct{ Endpoint *godwit.Endpoint }

// IssueSecret is AddSecret. No result; ErrNotFound when the endpoint is deleted.
type IssueSecret struct {
	TenantID godwit.TenantID
	Secret   *godwit.Secret
	Others   Expiry
}

// RevokeSecret ends a secret at once. No result; ErrNotFound when the endpoint has no such secret, ErrConflict when it has
// ended before or is the only one that is live at Now.
type RevokeSecret struct {
	TenantID   godwit.TenantID
	EndpointID godwit.EndpointID
	SecretID   godwit.SecretID
	Now        time.Time
}

// RequeueDead is Requeue of the open dead letters that a filter selects, newest first. Result: *RequeuedDead.
type RequeueDead struct {
	Filter DeadLetterFilter
	Page   Page // how far an earlier one came, and how many at most
	Actor  string
	Now    time.Time
}

// RequeuedDead is what RequeueDead did.
type RequeuedDead struct {
	Deliveries []godwit.Delivery // made due
	Seen       int               // dead letters looked at
	Last       godwit.DeliveryID // of these
	More       bool              // there may be more after Last
}

// PurgeDead removes dead letters that a filter selects, newest first, replayed ones with them where the filter says so. The
// deliveries stay as they are. Result: *PurgedDead.
type PurgeDead struct {
	Filter DeadLetterFilter
	Limit  int
}

// PurgedDead is what PurgeDead did.
type PurgedDead struct {
	Purged int
	More   bool // there may be more
}

// RemoveTenant is DeleteTenant. Result: []godwit.EndpointID, those deleted with it.
type RemoveTenant struct {
	ID  godwit.TenantID
	Now time.Time
}

// Publish stores events with their deliveries, all of them unclaimed: the outbox of a command (IDS-SHD-8). Events that are stored
// gain the deliveries. No result.
type Publish struct{ Events []NewEvent }

// Requeue is an effect as it is. Result: []godwit.Delivery, those made due.
var _ command.Effect = Requeue{}
