package sqlite

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// effects applies the effects of commands on the connection of a write transaction.
type effects struct {
	*commands
	c   *conn
	now time.Time
}

var _ store.Applier = effects{}

func (a effects) ChangeEndpoint(ctx context.Context, e store.ChangeEndpoint) error {
	return updateEndpoint(ctx, a.c, e.Endpoint)
}

func (a effects) IssueSecret(ctx context.Context, e store.IssueSecret) error {
	return addSecret(ctx, a.c, e.TenantID, e.Secret, e.Others)
}

func (a effects) RevokeSecret(ctx context.Context, e store.RevokeSecret) error {
	return revokeSecret(ctx, a.c, &e)
}

func (a effects) RequeueDead(ctx context.Context, e store.RequeueDead) (*store.RequeuedDead, error) {
	return a.deadLetters.requeue(ctx, a.c, &e)
}

func (a effects) Requeue(ctx context.Context, e store.Requeue) ([]godwit.Delivery, error) {
	return a.deliveries.requeue(ctx, a.c, &e)
}

func (a effects) PurgeDead(_ context.Context, e store.PurgeDead) (*store.PurgedDead, error) {
	return purgeDead(a.c, &e)
}

func (a effects) RemoveTenant(ctx context.Context, e store.RemoveTenant) ([]godwit.EndpointID, error) {
	return deleteTenant(ctx, a.c, e.ID, false, micros(e.Now))
}

func (a effects) Publish(_ context.Context, events []store.NewEvent) error {
	return a.batches.publish(a.c, a.now, events)
}
