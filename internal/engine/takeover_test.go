package engine_test

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/registry"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

// A node that waited for the shards knows the endpoints as they are when it gets them, not as they were when it was started:
// an event posted to it reaches those that were made since, and none that was deleted.
func TestNodeThatTakesOverKnowsTheEndpoints(t *testing.T) {
	ctx := t.Context()
	st, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	ring, err := keyring.Parse(keyring.Generate("k1"))
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	send, err := sender.New(sender.Config{Clock: clock.Real{}.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	must(t, err)
	node := func(name string) (*engine.Engine, func()) {
		e, err := engine.New(ctx, engine.Config{Store: st, Sender: send, Ring: ring, Clock: clock.Real{}, Log: log, Node: name})
		must(t, err)
		running, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(running) }()
		return e, func() { cancel(); must(t, <-ended) }
	}

	first, stopFirst := node("first")
	<-first.Started()
	reg, err := registry.New(registry.Config{Store: st, Engine: first, URLs: send, Ring: ring, Log: log, Now: clock.Real{}.Now, Limits: registry.NoLimits})
	must(t, err)
	tenant, err := reg.CreateTenant(ctx, registry.TenantSpec{Name: "acme"})
	must(t, err)
	endpoint := func(pattern string) godwit.EndpointID {
		e, _, err := reg.CreateEndpoint(ctx, tenant.ID, registry.NewEndpoint{EndpointSpec: registry.EndpointSpec{
			URL: "http://127.0.0.1:1/", Patterns: []string{pattern},
		}})
		must(t, err)
		return e.ID
	}
	deleted, changed := endpoint("deleted"), endpoint("before")

	second, stopSecond := node("second")
	defer stopSecond()
	endpoint("made")
	must(t, reg.DeleteEndpoint(ctx, tenant.ID, deleted))
	_, err = reg.UpdateEndpoint(ctx, tenant.ID, changed, func(s *registry.EndpointSpec) error {
		s.Patterns = []string{"after"}
		return nil
	})
	must(t, err)
	stopFirst()
	<-second.Started()

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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
