package management_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
	"github.com/godwit-hq/godwit/internal/store/storetest"
	"github.com/godwit-hq/godwit/internal/trace"
)

var (
	ctx      = context.Background()
	ringText = keyring.Generate("k1")
)

// watched counts reads of keys, and lets a test act between a read and a write.
type watched struct {
	*sqlite.Store
	keyReads atomic.Int64
	keyErr   atomic.Pointer[error]
	onRead   func() // while a key is being read
	onUpdate func() // before an endpoint is updated
}

func (w *watched) KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error) {
	w.keyReads.Add(1)
	k, err := w.Store.KeyByHash(ctx, hash)
	if w.onRead != nil {
		w.onRead()
	}
	if e := w.keyErr.Load(); e != nil {
		return nil, *e
	}
	return k, err
}

func (w *watched) UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error {
	if f := w.onUpdate; f != nil {
		w.onUpdate = nil
		f()
	}
	return w.Store.UpdateEndpoint(ctx, e)
}

// told records the endpoints that the engine was told of.
type told struct {
	mu   sync.Mutex
	ids  []godwit.EndpointID
	news []profile.Announcement
	said []string // both kinds of calls, in order
	err  error
	mute error // error of Announce
}

func (c *told) Announce(ctx context.Context, a profile.Announcement) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(ctx.Err(), c.mute); err != nil {
		return err
	}
	c.news = append(c.news, a)
	c.said = append(c.said, a.Type)
	return nil
}

func (c *told) KeysChanged(context.Context, godwit.EnvironmentID) error { return nil }

func (c *told) Changed(ctx context.Context, id godwit.EndpointID) error {
	if err := ctx.Err(); err != nil {
		return err // an engine that cannot read the store learns nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
	c.said = append(c.said, "changed")
	return c.err
}

type fixture struct {
	t          *testing.T
	store      *watched
	engine     *told
	clock      *clock.Manual
	ring       *keyring.Ring
	management *management.Service
	tenant     *godwit.Tenant
}

func newFixture(t *testing.T, tune func(*management.Config)) *fixture {
	t.Helper()
	s, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	f := &fixture{t: t, store: &watched{Store: s}, engine: &told{}, clock: clock.NewManual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	f.ring, err = keyring.Parse(ringText)
	must(t, err)
	send, err := sender.New(sender.Config{Clock: f.clock.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	must(t, err)
	cfg := management.Config{
		Store: f.store, Engine: f.engine, URLs: send, Ring: f.ring, Log: slog.New(slog.DiscardHandler), Now: f.clock.Now, Limits: management.NoLimits,
	}
	if tune != nil {
		tune(&cfg)
	}
	f.management, err = management.New(cfg)
	must(t, err)
	f.tenant, err = f.management.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	must(t, err)
	return f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) mint(scopes ...godwit.Scope) (*godwit.APIKey, string) {
	f.t.Helper()
	k, token, err := f.management.Keys.Create(ctx, nil, f.tenant.ID, management.KeySpec{Name: "k", Scopes: scopes})
	must(f.t, err)
	return k, token
}

func (f *fixture) endpoint() (*godwit.Endpoint, *management.IssuedSecret) {
	f.t.Helper()
	e, s, err := f.management.Endpoints.Create(ctx, f.tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
		URL: "https://a.example/", Headers: map[string]string{"X-A": "one"}, Auth: &godwit.Auth{Kind: "bearer", Token: "tok"},
	}})
	must(f.t, err)
	return e, s
}

// rotate and delete act like the commands: plan, store the effect, and notify the service.
func (f *fixture) rotate(id godwit.EndpointID, rot management.Rotation) {
	f.t.Helper()
	plan, err := f.management.Secrets.PlanRotation(ctx, f.tenant.ID, id, rot)
	must(f.t, err)
	issued, err := plan.Issue()
	must(f.t, err)
	must(f.t, storetest.IssueSecret(ctx, f.store, &issued.Secret, plan.Others))
	f.management.Endpoints.Changed(ctx, id)
}

func (f *fixture) delete(id godwit.EndpointID) {
	f.t.Helper()
	next, err := f.management.Endpoints.PlanDelete(ctx, f.tenant.ID, id, godwit.Match{})
	must(f.t, err)
	_, err = storetest.Apply(ctx, f.store, f.clock.Now(), store.ChangeEndpoint{Endpoint: next})
	must(f.t, err)
	f.management.Endpoints.Deleted(ctx, next)
}

func TestAuthenticationIsCached(t *testing.T) {
	f := newFixture(t, nil)
	_, token := f.mint(godwit.ScopeRead)
	for range 1000 {
		c, err := f.management.Callers.Authenticate(ctx, token)
		if err != nil || c.Tenant.ID != f.tenant.ID || c.Need(godwit.ScopeRead) != nil || c.Need(godwit.ScopeManage) == nil {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	if n := f.store.keyReads.Load(); n != 1 {
		t.Errorf("%d reads for a thousand requests", n)
	}
	f.clock.Advance(3 * time.Second)
	f.management.Callers.Authenticate(ctx, token)
	if n := f.store.keyReads.Load(); n != 2 {
		t.Errorf("%d reads after the time to live", n)
	}
}

func TestRevocationTakesEffect(t *testing.T) {
	f := newFixture(t, nil)
	k, token := f.mint(godwit.ScopeRead)
	_, err := f.management.Callers.Authenticate(ctx, token)
	must(t, err)
	must(t, f.management.Keys.Revoke(ctx, nil, f.tenant.ID, k.ID))
	if _, err := f.management.Callers.Authenticate(ctx, token); !errors.Is(err, problem.Unauthorized) {
		t.Errorf("on this node: %v", err)
	}
	// Another node revokes the key: it takes effect within the time to live.
	k, token = f.mint(godwit.ScopeRead)
	_, err = f.management.Callers.Authenticate(ctx, token)
	must(t, err)
	must(t, f.store.RevokeKey(ctx, f.tenant.ID, k.ID, f.clock.Now()))
	f.clock.Advance(3 * time.Second)
	if _, err := f.management.Callers.Authenticate(ctx, token); !errors.Is(err, problem.Unauthorized) {
		t.Errorf("on another node: %v", err)
	}
}

// TestRevocationDuringARead: a key that was read before its revocation is not cached after it.
func TestRevocationDuringARead(t *testing.T) {
	f := newFixture(t, nil)
	k, token := f.mint(godwit.ScopeRead)
	f.store.onRead = func() {
		f.store.onRead = nil
		must(t, f.management.Keys.Revoke(ctx, nil, f.tenant.ID, k.ID))
	}
	f.management.Callers.Authenticate(ctx, token)
	if _, err := f.management.Callers.Authenticate(ctx, token); !errors.Is(err, problem.Unauthorized) {
		t.Errorf("a revoked key is remembered: %v", err)
	}
}

func TestAuthenticationWhileTheStoreIsDown(t *testing.T) {
	f := newFixture(t, nil)
	_, token := f.mint(godwit.ScopeRead)
	_, err := f.management.Callers.Authenticate(ctx, token)
	must(t, err)
	down := fmt.Errorf("read: %w", store.ErrUnavailable)
	f.store.keyErr.Store(&down)
	if _, err := f.management.Callers.Authenticate(ctx, token); err != nil {
		t.Errorf("a fresh entry: %v", err)
	}
	f.clock.Advance(time.Hour)
	if _, err := f.management.Callers.Authenticate(ctx, token); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a stale entry: %v", err)
	}
	f.store.keyErr.Store(nil)
	if _, err := f.management.Callers.Authenticate(ctx, token); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestNobodyWaitsForARefresh(t *testing.T) {
	f := newFixture(t, nil)
	_, token := f.mint(godwit.ScopeRead)
	_, err := f.management.Callers.Authenticate(ctx, token)
	must(t, err)
	f.clock.Advance(3 * time.Second)
	reading, release := make(chan struct{}), make(chan struct{})
	f.store.onRead = func() { close(reading); <-release }
	refreshed := make(chan error, 1)
	go func() { _, err := f.management.Callers.Authenticate(ctx, token); refreshed <- err }()
	<-reading
	if _, err := f.management.Callers.Authenticate(ctx, token); err != nil { // would not return if it waited
		t.Error(err)
	}
	close(release)
	must(t, <-refreshed)
}

func TestBadTokens(t *testing.T) {
	f := newFixture(t, func(c *management.Config) { c.CacheSize = 4 })
	_, token := f.mint(godwit.ScopeRead)
	_, err := f.management.Callers.Authenticate(ctx, token)
	must(t, err)
	for i := range 100 {
		if _, err := f.management.Callers.Authenticate(ctx, fmt.Sprintf("gdw_%043d", i)); !errors.Is(err, problem.Unauthorized) {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "x", token + "x", strings.ToUpper(token), strings.Repeat("x", 1<<16)} {
		if _, err := f.management.Callers.Authenticate(ctx, bad); !errors.Is(err, problem.Unauthorized) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
	reads := f.store.keyReads.Load()
	f.management.Callers.Authenticate(ctx, token)
	if f.store.keyReads.Load() != reads {
		t.Error("made-up tokens pushed a live one out")
	}
	for range 10 { // more live keys than the cache holds
		_, other := f.mint(godwit.ScopeRead)
		if _, err := f.management.Callers.Authenticate(ctx, other); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.management.Callers.Authenticate(ctx, token); err != nil {
		t.Error(err)
	}
}

func TestEveryChangeIsTold(t *testing.T) {
	f := newFixture(t, nil)
	e, _ := f.endpoint()
	_, err := f.management.Endpoints.Update(ctx, f.tenant.ID, e.ID, godwit.Match{}, func(s *management.EndpointSpec) error { s.Description = "x"; return nil })
	must(t, err)
	_, err = f.management.Endpoints.Pause(ctx, f.tenant.ID, e.ID, "")
	must(t, err)
	_, err = f.management.Endpoints.Resume(ctx, f.tenant.ID, e.ID)
	must(t, err)
	f.rotate(e.ID, management.Rotation{})
	f.delete(e.ID)
	if len(f.engine.ids) != 6 {
		t.Errorf("told %d times, want 6", len(f.engine.ids))
	}
	other, _ := f.endpoint()
	endpoints, err := storetest.RemoveTenant(ctx, f.store, f.tenant.ID, f.clock.Now())
	must(t, err)
	f.management.Tenants.Deleted(ctx, f.tenant.ID, endpoints)
	if last := f.engine.ids[len(f.engine.ids)-1]; last != other.ID {
		t.Error("the end of a tenant was not told")
	}
}

// TestCreationIsUndone: a creation that is answered with an error leaves no endpoint.
func TestCreationIsUndone(t *testing.T) {
	f := newFixture(t, nil)
	f.engine.err = store.ErrUnavailable
	_, _, err := f.management.Endpoints.Create(ctx, f.tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: "https://a.example/"}})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	if n, err := f.store.CountEndpoints(ctx, f.tenant.ID); err != nil || n != 0 {
		t.Errorf("%d endpoints, %v", n, err)
	}
}

func TestChangesThatMeet(t *testing.T) {
	f := newFixture(t, nil)
	e, _ := f.endpoint()
	f.store.onUpdate = func() { // the engine disables the endpoint at this moment
		stored, err := f.store.Endpoint(ctx, f.tenant.ID, e.ID)
		must(t, err)
		stored.Status, stored.StatusReason = godwit.EndpointDisabled, "endpoint-gone"
		stored.Version++
		must(t, f.store.Store.UpdateEndpoint(ctx, stored))
	}
	got, err := f.management.Endpoints.Update(ctx, f.tenant.ID, e.ID, godwit.Match{}, func(s *management.EndpointSpec) error { s.Description = "x"; return nil })
	must(t, err)
	if got.Description != "x" || got.Status != godwit.EndpointDisabled {
		t.Errorf("one change was lost: %+v", got)
	}
}

func TestNoEndpointWithoutASecret(t *testing.T) {
	trace.Covers(t, "EDS-KEY-7")
	f := newFixture(t, nil)
	e, issued := f.endpoint()
	live := func() (n int) {
		secrets, err := f.management.Secrets.List(ctx, f.tenant.ID, e.ID)
		must(t, err)
		for i := range secrets {
			if secrets[i].LiveAt(f.clock.Now()) {
				n++
			}
		}
		return n
	}
	if live() != 1 || len(issued.Secret.Sealed) == 0 {
		t.Error("a new endpoint has no live secret")
	}
	none := time.Duration(0)
	for range 3 {
		f.rotate(e.ID, management.Rotation{Overlap: &none})
		if live() != 1 {
			t.Errorf("%d live secrets after a rotation without overlap", live())
		}
	}
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	if live() != 1 {
		t.Errorf("%d live secrets after ten years", live())
	}
	if _, _, err := f.management.Endpoints.Create(ctx, f.tenant, management.NewEndpoint{Algorithm: "none", EndpointSpec: management.EndpointSpec{URL: "https://a.example/"}}); err == nil {
		t.Error("an endpoint without signatures was created")
	}
}

func TestSealedValuesOpenInTheirPlace(t *testing.T) {
	f := newFixture(t, nil)
	e, issued := f.endpoint()
	plain, err := f.ring.Open(e.Sealed, "endpoint:"+e.ID.String())
	must(t, err)
	var secrets godwit.EndpointSecrets
	must(t, json.Unmarshal(plain, &secrets))
	if secrets.Headers["X-A"] != "one" || secrets.Auth.Token != "tok" {
		t.Errorf("sealed: %+v", secrets)
	}
	if _, err := f.ring.Open(issued.Secret.Sealed, "secret:"+issued.Secret.ID.String()); err != nil {
		t.Error(err)
	}
	if _, err := f.ring.Open(e.Sealed, "endpoint:"+godwit.NewEndpointID(f.clock.Now()).String()); err == nil {
		t.Error("it opens in another place")
	}
}

func TestReencrypt(t *testing.T) {
	f := newFixture(t, nil)
	for range 250 { // more than a page of secrets, and as many endpoints
		f.endpoint()
	}
	e, issued := f.endpoint()
	old := f.ring
	newKey := keyring.Generate("k2")
	both, err := keyring.Parse(newKey + "\n" + ringText)
	must(t, err)
	calls := 0
	done, err := management.Reencrypt(ctx, f.store, both, func(management.Reencryption) { calls++ })
	must(t, err)
	if done.Seen != 502 || done.Resealed != 502 || calls < 3 {
		t.Errorf("%+v in %d steps", done, calls)
	}
	// The old key is not needed any more.
	alone, err := keyring.Parse(newKey)
	must(t, err)
	stored, err := f.store.Endpoint(ctx, f.tenant.ID, e.ID)
	must(t, err)
	if _, err := alone.Open(stored.Sealed, "endpoint:"+e.ID.String()); err != nil {
		t.Error(err)
	}
	secrets, err := f.store.Secrets(ctx, f.tenant.ID, e.ID)
	must(t, err)
	now, err := alone.Open(secrets[0].Sealed, "secret:"+issued.Secret.ID.String())
	must(t, err)
	before, err := old.Open(issued.Secret.Sealed, "secret:"+issued.Secret.ID.String())
	must(t, err)
	if !bytes.Equal(now, before) {
		t.Error("a secret was changed")
	}
	if done, err = management.Reencrypt(ctx, f.store, alone, nil); err != nil || done.Resealed != 0 || done.Seen != 502 {
		t.Errorf("again: %+v, %v", done, err)
	}
	other, err := keyring.Parse(keyring.Generate("k3"))
	must(t, err)
	if _, err := management.Reencrypt(ctx, f.store, other, nil); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("without the key: %v", err)
	}
}

func TestLimitsDefault(t *testing.T) {
	f := newFixture(t, func(c *management.Config) { c.Limits = management.Limits{} })
	spec := management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: "https://a.example/"}}
	for i := range 60 {
		if _, _, err := f.management.Endpoints.Create(ctx, f.tenant, spec); err != nil {
			t.Fatalf("endpoint %d: %v", i, err)
		}
	}
	if _, _, err := f.management.Endpoints.Create(ctx, f.tenant, spec); !errors.Is(err, problem.TooManyRequests) {
		t.Errorf("the 61st within a minute: %v", err)
	}
	f.clock.Advance(time.Minute)
	if _, _, err := f.management.Endpoints.Create(ctx, f.tenant, spec); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	s, err := sqlite.Open(ctx, b.TempDir(), sqlite.Options{})
	must(b, err)
	defer s.Close()
	ring, err := keyring.Parse(keyring.Generate("k1"))
	must(b, err)
	send, err := sender.New(sender.Config{Clock: clock.Real{}.Now})
	must(b, err)
	m, err := management.New(management.Config{Store: s, Engine: &told{}, URLs: send, Ring: ring, Log: slog.New(slog.DiscardHandler), Now: clock.Real{}.Now})
	must(b, err)
	tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "t"})
	must(b, err)
	_, token, err := m.Keys.Create(ctx, nil, tenant.ID, management.KeySpec{Name: "k", Scopes: godwit.AllScopes})
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Callers.Authenticate(ctx, token); err != nil {
			b.Fatal(err)
		}
	}
}
