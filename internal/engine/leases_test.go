package engine_test

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

const ttl = 15 * time.Second

func leaseOf(d time.Duration) func(*engine.Config) { return func(c *engine.Config) { c.LeaseTTL = d } }

// rounds is a clock that signals when a lease renewal has finished and waits for the next round.
type rounds struct {
	*clock.Manual
	waiting chan struct{}
}

func (r rounds) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := r.Manual.AfterFunc(d, f)
	if d == ttl/3 {
		r.waiting <- struct{}{}
	}
	return timer
}

// If a renewal takes longer than the lease but no other node takes the shards, the node keeps its claims and sends them.
func TestSlowRenewalKeepsClaims(t *testing.T) {
	hands := clock.NewManual(start)
	round := rounds{hands, make(chan struct{}, 16)}
	slow := true
	s := &tampered{renew: func(renew func() ([]godwit.Lease, error)) ([]godwit.Lease, error) {
		if slow {
			slow = false
			hands.Advance(2 * ttl)
		}
		return renew()
	}}
	srv := boot(t, s, hands, func(c *engine.Config) { c.LeaseTTL, c.Clock = ttl, round })
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(200).Until(gate), apptest.Status(200))
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"concurrency": 1}))
	first := srv.Publish("order.paid", `{"n":1}`)
	sink.Wait(1)
	second := srv.Publish("order.paid", `{"n":2}`) // claimed, and waiting in memory
	await(t, "the first round", round.waiting)
	for range 2 { // a slow renewal, then a normal one
		srv.Advance(ttl / 3)
		await(t, "the end of a renewal", round.waiting)
	}
	close(gate)
	srv.WaitDelivery(first, ep, godwit.DeliveryAccepted)
	srv.WaitDelivery(second, ep, godwit.DeliveryAccepted)
	if n := len(sink.Requests("/")); n != 2 {
		t.Errorf("%d requests for two events", n)
	}
}

// The lease expires during its renewal, and an attempt ends at that moment. Lanes that found the lease expired must be woken
// when it is renewed.
func TestLeaseThatRanOutDuringRenewalWakesLanes(t *testing.T) {
	hands := clock.NewManual(start)
	gate, freed := make(chan struct{}), make(chan struct{})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(200).Until(gate), apptest.Status(200))
	var srv *apptest.Server
	var ep apptest.Endpoint
	var first godwit.EventID
	once := true
	s := &tampered{renew: func(renew func() ([]godwit.Lease, error)) ([]godwit.Lease, error) {
		if once {
			once = false
			hands.Advance(11 * time.Second) // the old lease has expired; the new one has not
			close(gate)
			srv.WaitDelivery(first, ep, godwit.DeliveryAccepted)
			defer close(freed)
		}
		return renew()
	}}
	srv = boot(t, s, hands, leaseOf(ttl))
	ep = srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"concurrency": 1}))
	first = srv.Publish("order.paid", `{"n":1}`)
	sink.Wait(1)
	second := srv.Publish("order.paid", `{"n":2}`)
	srv.Advance(ttl / 3)
	await(t, "the renewal", freed)
	srv.WaitDelivery(second, ep, godwit.DeliveryAccepted)
}
