package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Apply applies one effect in a step of its own, without a record and without evidence, and returns its result. Tests use it
// for changes that only commands make.
func Apply[R any](ctx context.Context, s command.Store, now time.Time, effect command.EffectWith[R]) (result R, err error) {
	var o command.Outcome
	handle := command.Add(&o, effect)
	results, err := s.Advance(ctx, now, []*command.Step{{Tenant: "test", Effects: o.Effects, Settle: func(a command.Applied) (command.Change, error) {
		return command.Change{}, a.Err
	}}})
	switch {
	case err != nil:
		return result, err
	case len(results) != 1 || results[0].Err == nil && len(results[0].Applied) != 1:
		return result, fmt.Errorf("one step with one effect has the results %+v", results)
	case results[0].Err != nil:
		return result, results[0].Err
	}
	return handle.In(results[0].Applied), nil
}

// IssueSecret stores a secret as a rotation does.
func IssueSecret(ctx context.Context, s command.Store, secret *godwit.Secret, others store.Expiry) error {
	_, err := Apply(ctx, s, secret.CreatedAt, store.IssueSecret{TenantID: secret.TenantID, Secret: secret, Others: others})
	return err
}

// RemoveTenant deletes a tenant as its command does.
func RemoveTenant(ctx context.Context, s command.Store, id godwit.TenantID, now time.Time) ([]godwit.EndpointID, error) {
	return Apply(ctx, s, now, store.RemoveTenant{ID: id, Now: now})
}
