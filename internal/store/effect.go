package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Commands keeps the records of commands and their evidence. A step may carry the effects declared in this file, and Requeue.
type Commands interface {
	command.Lister
}

// An Applier applies effects within a transaction of a backend, one method for each kind. A method returns ErrNotFound or
// ErrConflict when it refuses the effect; any other error fails the transaction.
type Applier interface {
	ChangeEndpoint(context.Context, ChangeEndpoint) error
	IssueSecret(context.Context, IssueSecret) error
	RevokeSecret(context.Context, RevokeSecret) error
	RequeueDead(context.Context, RequeueDead) (*RequeuedDead, error)
	Requeue(context.Context, Requeue) ([]godwit.Delivery, error)
	PurgeDead(context.Context, PurgeDead) (*PurgedDead, error)
	RemoveTenant(context.Context, RemoveTenant) ([]godwit.EndpointID, error)
	// Publish stores the events of consecutive Publish effects.
	Publish(context.Context, []NewEvent) error
}

// ErrUnknownEffect reports an effect that this store cannot apply.
var ErrUnknownEffect = errors.New("this store cannot apply the effect")

// Refused reports whether the store refused an effect. The transaction can still be used then.
func Refused(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrUnknownEffect)
}

// Apply applies effects in order and stops at the first error. It stores consecutive Publish effects in bulk.
func Apply(ctx context.Context, a Applier, effects []command.Effect) (command.Results, error) {
	results := make(command.Results, 0, len(effects))
	for len(results) < len(effects) {
		published, err := publish(ctx, a, effects[len(results):])
		results = append(results, published...)
		if err == nil && len(results) < len(effects) {
			var r command.Returned
			r, err = apply(ctx, a, effects[len(results)])
			results = append(results, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// publish applies the Publish effects at the start of the list.
func publish(ctx context.Context, a Applier, effects []command.Effect) (command.Results, error) {
	var (
		results command.Results
		events  []NewEvent
	)
	for _, effect := range effects {
		e, ok := effect.(Publish)
		if !ok {
			break
		}
		results, events = append(results, e.Returns(command.Nothing{})), append(events, e.Events...)
	}
	if len(events) == 0 {
		return results, nil
	}
	return results, a.Publish(ctx, events)
}

func apply(ctx context.Context, a Applier, effect command.Effect) (command.Returned, error) {
	switch e := effect.(type) {
	case ChangeEndpoint:
		return e.Returns(command.Nothing{}), a.ChangeEndpoint(ctx, e)
	case IssueSecret:
		return e.Returns(command.Nothing{}), a.IssueSecret(ctx, e)
	case RevokeSecret:
		return e.Returns(command.Nothing{}), a.RevokeSecret(ctx, e)
	case RequeueDead:
		r, err := a.RequeueDead(ctx, e)
		return e.Returns(r), err
	case Requeue:
		r, err := a.Requeue(ctx, e)
		return e.Returns(r), err
	case PurgeDead:
		r, err := a.PurgeDead(ctx, e)
		return e.Returns(r), err
	case RemoveTenant:
		r, err := a.RemoveTenant(ctx, e)
		return e.Returns(r), err
	}
	return command.Returned{}, fmt.Errorf("%w: %T", ErrUnknownEffect, effect)
}

// ChangeEndpoint has the effect of UpdateEndpoint.
type ChangeEndpoint struct {
	command.EffectOf[command.Nothing]
	Endpoint *godwit.Endpoint
}

// IssueSecret stores a new secret of an endpoint, or a key of an environment (see godwit.KeysOf), and sets the expiry of its other secrets. It fails with ErrNotFound when the
// endpoint is deleted.
type IssueSecret struct {
	command.EffectOf[command.Nothing]
	TenantID godwit.TenantID
	Secret   *godwit.Secret
	Others   Expiry
}

// RevokeSecret ends a secret at once. It fails with ErrNotFound when the endpoint has no such secret, and with ErrConflict
// when the secret has ended already or is the only live one at Now.
type RevokeSecret struct {
	command.EffectOf[command.Nothing]
	TenantID   godwit.TenantID
	EndpointID godwit.EndpointID
	SecretID   godwit.SecretID
	Now        time.Time
}

// RequeueDead requeues the open dead letters that a filter selects, newest first.
type RequeueDead struct {
	command.EffectOf[*RequeuedDead]
	Filter DeadLetterFilter
	Page   Page // where the previous command stopped, and the largest number of dead letters
	Actor  string
	Now    time.Time
}

// RequeuedDead is the result of RequeueDead.
type RequeuedDead struct {
	Deliveries []godwit.Delivery // made due
	Seen       int               // dead letters examined
	Last       godwit.DeliveryID // the last one examined
	More       bool              // there may be more after Last
}

// PurgeDead removes the dead letters that a filter selects, newest first, including replayed ones if the filter says so. The
// deliveries do not change.
type PurgeDead struct {
	command.EffectOf[*PurgedDead]
	Filter DeadLetterFilter
	Limit  int
}

// PurgedDead is the result of PurgeDead.
type PurgedDead struct {
	Purged int
	More   bool // there may be more
}

// RemoveTenant marks a tenant as deleted, revokes its keys and deletes its endpoints. It returns those endpoints.
type RemoveTenant struct {
	command.EffectOf[[]godwit.EndpointID]
	ID  godwit.TenantID
	Now time.Time
}

// Publish stores events with their deliveries, all unclaimed, and their fan-outs: the outbox of a command (IDS-SHD-8). An event
// that is already stored gains the deliveries.
type Publish struct {
	command.EffectOf[command.Nothing]
	Events []NewEvent
}
