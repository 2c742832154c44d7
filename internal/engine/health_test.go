package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Requests in flight when the circuit opens may fail later. They do not delay the first probe.
func TestStragglersDoNotDelayTheProbe(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(503).Until(gate))
	const events = 8
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"circuit_after": 2, "concurrency": events}))
	var published []godwit.EventID
	for n := range events {
		published = append(published, srv.Publish("order.paid", fmt.Sprintf(`{"n":%d}`, n)))
	}
	sink.Wait(events)
	srv.Advance(time.Second)
	close(gate)
	for _, ev := range published {
		srv.WaitAttempts(ev, ep, 1)
	}
	h, _ := srv.App.Engine().Health(ep.ID)
	if want := hands.Now().Add(5 * time.Second); h.CircuitOpenAt.IsZero() || !h.ProbeAt.Equal(want) || h.Transient != events {
		t.Errorf("health %+v, want a probe at %s", h, want)
	}
}

// An endpoint that refuses a request is reachable: its circuit closes, and probes do not hold back waiting deliveries.
func TestRefusalClosesTheCircuit(t *testing.T) {
	hands := clock.NewManual(start)
	srv := boot(t, &tampered{}, hands, nil)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(503), apptest.Status(503), apptest.Status(422))
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"circuit_after": 2}))
	ev := srv.Publish("order.paid", `{}`)
	srv.WaitAttempts(ev, ep, 1)
	srv.Advance(time.Minute)
	srv.WaitAttempts(ev, ep, 2)
	if h, _ := srv.App.Engine().Health(ep.ID); h.CircuitOpenAt.IsZero() {
		t.Fatalf("two failures left the circuit closed: %+v", h)
	}
	srv.Advance(time.Minute)
	srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
	if h, _ := srv.App.Engine().Health(ep.ID); !h.CircuitOpenAt.IsZero() || !h.ProbeAt.IsZero() {
		t.Errorf("a refusal left the circuit open: %+v", h)
	}
}
