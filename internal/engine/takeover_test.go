package engine_test

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// A cluster is the store, keys and clock that nodes share.
type cluster struct {
	store *sqlite.Store
	send  *sender.Sender
	ring  *keyring.Ring
	clock clock.Clock
	log   *slog.Logger
}

func newCluster(t *testing.T, c clock.Clock) *cluster {
	t.Helper()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Time: c.Now})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	ring, err := keyring.Parse(keyring.Generate("k1"))
	must(t, err)
	send, err := sender.New(sender.Config{Clock: c.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	must(t, err)
	return &cluster{st, send, ring, c, slog.New(slog.DiscardHandler)}
}

// node starts an engine and returns a function that stops it.
func (c *cluster) node(t *testing.T, name string) (*engine.Engine, func()) {
	t.Helper()
	e, err := engine.New(t.Context(), engine.Config{Store: c.store, Sender: c.send, Ring: c.ring, Clock: c.clock, Log: c.log, Node: godwit.Node{Name: name},
		LeaseTTL: 1000 * time.Hour}) // outlasts every step of a manual clock
	must(t, err)
	running, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	return e, func() { cancel(); must(t, <-ended) }
}

func (c *cluster) management(t *testing.T, e *engine.Engine) *management.Service {
	t.Helper()
	m, err := management.New(management.Config{Store: c.store, Engine: e, URLs: c.send, Ring: c.ring, Log: c.log, Now: c.clock.Now, Limits: management.NoLimits})
	must(t, err)
	return m
}

// A node that gets shards reads their endpoints again: an event posted to it reaches those created
// since it started, and none that was deleted.
func TestNodeThatTakesOverKnowsTheEndpoints(t *testing.T) {
	ctx := t.Context()
	c := newCluster(t, clock.Real{})
	first, stopFirst := c.node(t, "first")
	<-first.Started()
	m := c.management(t, first)
	tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	must(t, err)
	endpoint := func(pattern string) godwit.EndpointID {
		e, _, err := m.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
			URL: "http://127.0.0.1:1/", Patterns: []string{pattern},
		}})
		must(t, err)
		return e.ID
	}
	deleted, changed := endpoint("deleted"), endpoint("before")

	second, stopSecond := c.node(t, "second")
	defer stopSecond()
	endpoint("made")
	must(t, deleteEndpoint(m, c.store, tenant.ID, deleted))
	_, err = m.Endpoints.Update(ctx, tenant.ID, changed, godwit.Match{}, func(s *management.EndpointSpec) error {
		s.Patterns = []string{"after"}
		return nil
	})
	must(t, err)
	stopFirst()
	for second.Stats().Shards < godwit.Shards {
		runtime.Gosched()
	}

	for eventType, want := range map[string]int{"made": 1, "after": 1, "before": 0, "deleted": 0} {
		receipts, err := second.Submit(ctx, engine.Submission{
			TenantID: tenant.ID, Events: []engine.Publication{{Type: eventType, ContentType: "application/json", Body: []byte("{}")}},
		})
		must(t, err)
		if got := receipts[0].Fanout[0]; got != want {
			t.Errorf("%q goes to %d endpoints, want %d", eventType, got, want)
		}
	}
}

// Requests that the previous node sent count against the limits of a node that takes over within the minute.
func TestNodeThatTakesOverKeepsToTheLimits(t *testing.T) {
	ctx := t.Context()
	hands := clock.NewManual(start)
	c := newCluster(t, hands)
	first, stopFirst := c.node(t, "first")
	<-first.Started()
	m := c.management(t, first)
	tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	must(t, err)
	sink := apptest.NewSink(t)
	two := 2
	_, _, err = m.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
		URL: sink.URL("/"), Profile: "cybercube", Patterns: []string{"project.*"}, Policy: godwit.PolicyOverrides{PerMinute: &two},
	}})
	must(t, err)
	second, stopSecond := c.node(t, "second")
	defer stopSecond()
	publication := engine.Publication{Type: "project.created", ContentType: "application/json", Body: []byte("{}")}
	_, err = first.Submit(ctx, engine.Submission{TenantID: tenant.ID, Events: []engine.Publication{publication, publication, publication}})
	must(t, err)
	sink.Wait(2)
	stopFirst()
	for second.Stats().Shards < godwit.Shards { // the node checks once a second whether shards are free
		// The clock must not run away while the node is at it: the limit is one for a minute.
		if at, ok := hands.NextTimer(); ok && !at.After(hands.Now().Add(time.Second)) && hands.Now().Before(start.Add(20*time.Second)) {
			hands.Advance(at.Sub(hands.Now()))
		}
		runtime.Gosched()
	}
	for second.Stats().Held == 0 && len(sink.Requests("/")) == 2 {
		runtime.Gosched()
	}
	if n := len(sink.Requests("/")); n != 2 || second.Stats().InFlight != 0 {
		t.Errorf("%d requests within a minute, %d more on their way", n, second.Stats().InFlight)
	}
	hands.Advance(time.Minute)
	sink.Wait(3)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
