package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// A node that starts again accepts events before it has its shards, and delivers them when it has.
func TestEventsAreAcceptedBeforeShardsAreTaken(t *testing.T) {
	ctx := t.Context()
	sink := apptest.NewSink(t)
	c := newCluster(t, clock.Real{})
	first, stop := c.node(t, "only")
	<-first.Started()
	m := c.management(t, first)
	tenant, err := m.Tenants.Create(ctx, godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
	must(t, err)
	_, _, err = m.Endpoints.Create(ctx, tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: sink.URL("/"), Patterns: []string{"order.*"}}})
	must(t, err)
	stop()

	beats := make(chan struct{})
	held := &tampered{Store: c.store, beat: func(beat func() (*godwit.Cluster, error)) (*godwit.Cluster, error) { <-beats; return beat() }}
	e, err := engine.New(ctx, engine.Config{Store: held, Sender: c.send, Ring: c.ring, Clock: c.clock, Log: c.log, Node: godwit.Node{Name: "only"},
		LeaseTTL: 1000 * time.Hour})
	must(t, err)
	running, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	defer func() { cancel(); must(t, <-ended) }()
	<-e.Accepting()
	receipts, err := e.Submit(ctx, engine.Submission{
		TenantID: tenant.ID, Events: []engine.Publication{{Type: "order.paid", ContentType: "application/json", Body: []byte("{}")}},
	})
	must(t, err)
	if receipts[0].Fanout[0] != 1 {
		t.Errorf("the event goes to %d endpoints", receipts[0].Fanout[0])
	}
	select {
	case <-e.Started():
		t.Error("the node delivers before its first beat")
	default:
	}
	close(beats)
	sink.Wait(1)
}
