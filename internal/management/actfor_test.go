package management_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// tenantReads counts how often tenants are looked up by their uid.
type tenantReads struct {
	management.Store
	n atomic.Int64
}

func (r *tenantReads) TenantByUID(ctx context.Context, e godwit.EnvironmentID, uid string) (*godwit.Tenant, error) {
	r.n.Add(1)
	return r.Store.TenantByUID(ctx, e, uid)
}

// A platform's key acts for a tenant without reads of the store, and changes of the tenant hold at once.
func TestActingForATenantReadsItOnce(t *testing.T) {
	var reads *tenantReads
	f := newFixture(t, func(c *management.Config) {
		reads = &tenantReads{Store: c.Store}
		c.Store = reads
	})
	home := godwit.HomeOf(godwit.DefaultEnvironment)
	key, token, err := f.management.Keys.Create(ctx, nil, home, management.KeySpec{Name: "platform", Scopes: []godwit.Scope{godwit.ScopeIngest}})
	must(t, err)
	customer, err := f.management.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{UID: "customer", Name: "before"})
	must(t, err)
	act := func() (*management.Caller, error) {
		c, err := f.management.Callers.Authenticate(ctx, token)
		if err != nil {
			return nil, err
		}
		return f.management.Callers.ActFor(ctx, c, "customer", false)
	}
	reads.n.Store(0)
	for range 100 {
		_, err := act()
		must(t, err)
		f.clock.Advance(5 * time.Second) // longer than a token is cached
	}
	if n := reads.n.Load(); n != 1 {
		t.Errorf("%d reads of the tenant for 100 requests within 9 minutes", n)
	}
	_, err = f.management.Tenants.Update(ctx, customer.ID, godwit.Match{}, func(s *management.TenantSpec) error { s.Name = "after"; return nil })
	must(t, err)
	if c, err := act(); err != nil || c.Tenant.Name != "after" {
		t.Errorf("after a change: %+v, %v", c, err)
	}
	must(t, f.store.RevokeKey(ctx, home, key.ID, f.clock.Now())) // by another process
	f.clock.Advance(3 * time.Second)
	if _, err := act(); !errors.Is(err, problem.Unauthorized) {
		t.Errorf("with a revoked key: %v", err)
	}
}
