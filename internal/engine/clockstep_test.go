package engine_test

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

const day = 24 * time.Hour

// longLease outlasts every step of a manual clock.
func longLease(c *engine.Config) { c.LeaseTTL = 10000 * time.Hour }

// ahead makes a first attempt fail and hold its endpoint while the clock is a day ahead.
func ahead(t *testing.T, o *apptest.Options) (*apptest.Server, godwit.EventID, apptest.Endpoint) {
	t.Helper()
	hands := clock.NewManual(start)
	o.Clock, o.Tune = hands, longLease
	srv := apptest.Start(t, *o)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.RetryAfter(503, "60"), apptest.Status(200))
	ep := srv.Endpoint(sink.URL("/"), policy(nil))
	hands.Step(day)
	ev := srv.Publish("order.paid", `{}`)
	srv.WaitAttempts(ev, ep, 1)
	return srv, ev, ep
}

// triedAgain waits until the retry is due within its original delay, and then until the delivery ends.
func triedAgain(t *testing.T, srv *apptest.Server, ev godwit.EventID, ep apptest.Endpoint) {
	t.Helper()
	d := srv.Delivery(ev, ep)
	for d.DueAt.After(start.Add(day)) { // each iteration makes a request, so this is not a busy wait
		d = srv.Delivery(ev, ep)
	}
	now := srv.Clock.Now()
	if delay := d.DueAt.Sub(now); delay < time.Minute || delay > 2*time.Minute {
		t.Errorf("due %s after the clock was set back; the receiver asked for a minute", delay)
	}
	srv.Advance(d.DueAt.Sub(now) + time.Millisecond)
	if d := srv.WaitDelivery(ev, ep, godwit.DeliveryAccepted); d.Attempts != 2 {
		t.Errorf("delivery is %+v", d)
	}
}

// A retry that was scheduled while the clock was a day ahead does not wait for that day after the clock steps back.
func TestRetrySetByAClockThatWasAhead(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv, ev, ep := ahead(t, &o)
		srv.Clock.Step(-day)
		srv.Advance(10 * time.Second) // the poll interval
		triedAgain(t, srv, ev, ep)
	})
}

// The due time is also corrected if the clock steps back while no server runs.
func TestRetrySetByAClockThatWasAheadOfARestart(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		o.Data = t.TempDir()
		srv, ev, ep := ahead(t, &o)
		must(t, srv.Stop())
		o.Store, o.Postgres = srv.Config.Store, false
		o.Clock = clock.NewManual(start)
		triedAgain(t, apptest.Start(t, o), ev, ep)
	})
}

// advanceToAttempt moves the clock in small steps until the delivery has had n attempts. One large step could come before the server sets its
// timer for the attempt, which would then be later than the step.
func advanceToAttempt(srv *apptest.Server, ev godwit.EventID, ep apptest.Endpoint, n int) {
	for srv.Delivery(ev, ep).Attempts < n {
		srv.Advance(20 * time.Millisecond)
	}
}

// A clock that is set forward does not make a delivery old: it is retried, and neither swept nor exhausted.
func TestClockSetForwardExhaustsNothing(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		hands := clock.NewManual(start)
		o.Clock, o.Tune = hands, longLease
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		sink.Script("/", apptest.Status(503))
		ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"max_elapsed_seconds": 3600}))
		ev := srv.Publish("order.paid", `{}`)
		srv.WaitAttempts(ev, ep, 1)
		hands.Step(100 * day) // longer than events are kept
		advanceToAttempt(srv, ev, ep, 2)
		srv.Advance(5 * time.Minute) // a sweep
		advanceToAttempt(srv, ev, ep, 3)
		if d := srv.Delivery(ev, ep); d.Status != godwit.DeliveryPending {
			t.Fatalf("delivery is %+v", d)
		}
		sink.Script("/", apptest.Status(200))
		hands.Step(-100 * day)
		srv.Advance(10 * time.Second) // the poll interval
		d := srv.Delivery(ev, ep)
		for ; d.Status == godwit.DeliveryPending; d = srv.Delivery(ev, ep) {
			srv.Advance(time.Second)
		}
		if d.Status != godwit.DeliveryAccepted {
			t.Errorf("at %s the delivery is %+v", hands.Now(), d)
		}
	})
}

// The bound on a run counts time that passes after the clock was set forward.
func TestClockSetForwardDoesNotEndTheBound(t *testing.T) {
	hands := clock.NewManual(start)
	srv := apptest.Start(t, apptest.Options{Clock: hands, Tune: longLease})
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(503))
	ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"max_elapsed_seconds": 3600}))
	ev := srv.Publish("order.paid", `{}`)
	srv.WaitAttempts(ev, ep, 1)
	hands.Step(day)
	advanceToAttempt(srv, ev, ep, 2)
	d := srv.Delivery(ev, ep)
	for ; d.Status == godwit.DeliveryPending; d = srv.Delivery(ev, ep) { // each iteration reads the store
		srv.Advance(time.Minute)
	}
	if d.Status != godwit.DeliveryExhausted || hands.Now().Before(start.Add(day+time.Hour-time.Minute)) {
		t.Errorf("at %s the delivery is %+v", hands.Now(), d)
	}
}

// An endpoint that was disabled while the clock was ahead rests as long as its policy says after the clock stepped back.
func TestRestSetByAClockThatWasAhead(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		hands := clock.NewManual(start)
		o.Clock, o.Tune = hands, longLease
		srv := apptest.Start(t, o)
		sink := apptest.NewSink(t)
		sink.Script("/", apptest.Status(503), apptest.Status(200))
		ep := srv.Endpoint(sink.URL("/"), policy(apptest.Fields{"disable_after_failures": 1, "reenable_after_seconds": 60}))
		hands.Step(day)
		ev := srv.Publish("order.paid", `{}`)
		srv.WaitAttempts(ev, ep, 1)
		hands.Step(-day)
		srv.Advance(10 * time.Second) // the poll interval
		for endpoint(t, srv, ep).ReenableAt.After(start.Add(time.Hour)) {
			continue // each iteration reads the store, so this is not a busy wait
		}
		// The server may read the time for its next look before the clock moves, and set the timer after that.
		for srv.Delivery(ev, ep).Status != godwit.DeliveryAccepted {
			srv.Advance(61 * time.Second)
		}
	})
}
