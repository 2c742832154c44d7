package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

const ttl = 15 * time.Second

func leaseOf(d time.Duration) func(*engine.Config) { return func(c *engine.Config) { c.LeaseTTL = d } }

// If a beat takes longer than the lease but no other node takes the shards, the node keeps its claims and sends them.
func TestSlowBeatKeepsClaims(t *testing.T) {
	hands := clock.NewManual(start)
	var slow atomic.Bool
	beats := make(chan struct{}, 1000)
	s := &tampered{beat: func(beat func() (*godwit.Cluster, error)) (*godwit.Cluster, error) {
		if slow.CompareAndSwap(true, false) {
			hands.Advance(2 * ttl)
		}
		defer func() { beats <- struct{}{} }()
		return beat()
	}}
	srv := boot(t, s, hands, leaseOf(ttl))
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(200).Until(gate), apptest.Status(200))
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"concurrency": 1}))
	first := srv.Publish("order.paid", `{"n":1}`)
	sink.Wait(1)
	second := srv.Publish("order.paid", `{"n":2}`) // claimed, and waiting in memory
	await(t, "the first beat", beats)
	slow.Store(true)
	for range 3 { // a slow beat, and others; the node has used the answer to one when it sends the next
		for more := true; more; {
			srv.Advance(time.Second)
			select {
			case <-beats:
				more = false
			case <-time.After(time.Millisecond): // the beat may not have been waiting yet
			}
		}
	}
	close(gate)
	srv.WaitDelivery(first, ep, godwit.DeliveryAccepted)
	srv.WaitDelivery(second, ep, godwit.DeliveryAccepted)
	if n := len(sink.Requests("/")); n != 2 {
		t.Errorf("%d requests for two events", n)
	}
}

// The lease expires during a beat, and an attempt ends at that moment. Lanes that found the lease expired must be woken when it
// is extended.
func TestLeaseThatExpiredDuringABeatWakesLanes(t *testing.T) {
	hands := clock.NewManual(start)
	gate, freed := make(chan struct{}), make(chan struct{})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(200).Until(gate), apptest.Status(200))
	var srv *apptest.Server
	var ep apptest.Endpoint
	var first godwit.EventID
	var once atomic.Bool
	s := &tampered{beat: func(beat func() (*godwit.Cluster, error)) (*godwit.Cluster, error) {
		if once.CompareAndSwap(true, false) {
			hands.Advance(11 * time.Second) // the old lease has expired; the new one has not
			close(gate)
			srv.WaitDelivery(first, ep, godwit.DeliveryAccepted)
			defer close(freed)
		}
		return beat()
	}}
	srv = boot(t, s, hands, leaseOf(ttl))
	ep = srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"concurrency": 1}))
	first = srv.Publish("order.paid", `{"n":1}`)
	sink.Wait(1)
	second := srv.Publish("order.paid", `{"n":2}`)
	once.Store(true)
	srv.Advance(5 * time.Second)
	await(t, "the beat", freed)
	srv.WaitDelivery(second, ep, godwit.DeliveryAccepted)
}
