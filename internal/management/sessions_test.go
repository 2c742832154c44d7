package management_test

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// leavingStore ends the request's context once the key of a session has been read, as a browser does that breaks the request off.
type leavingStore struct {
	management.Store
	leave func()
}

func (s *leavingStore) Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error) {
	k, err := s.Store.Key(ctx, tenant, id)
	if s.leave != nil {
		s.leave()
	}
	return k, err
}

// The last use of a session is stored although the browser breaks the request off.
func TestSessionIsUsedByABrokenRequest(t *testing.T) {
	store := &leavingStore{}
	f := newFixture(t, func(c *management.Config) {
		store.Store = c.Store
		c.Store = store
	})
	_, key := f.mint(godwit.ScopeRead)
	_, token, err := f.management.Sessions.SignIn(ctx, key, management.Visitor{})
	must(t, err)
	f.clock.Advance(time.Hour)
	ctx, leave := context.WithCancel(ctx)
	store.leave = leave
	c, err := f.management.Callers.AuthenticateSession(ctx, godwit.DashboardSession, token)
	must(t, err)
	if ctx.Err() == nil {
		t.Fatal("the browser has not left")
	}
	s, err := f.management.Sessions.Get(context.Background(), f.tenant.ID, c.Session.ID)
	must(t, err)
	if !s.LastUsedAt.Equal(f.clock.Now()) {
		t.Errorf("last use is %v, want %v", s.LastUsedAt, f.clock.Now())
	}
}
