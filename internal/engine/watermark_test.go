package engine_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// The watermark does not pass the time of an event that is still being stored, so readers in id order miss no event.
func TestSettled(t *testing.T) {
	hands := clock.NewManual(start)
	held, gate := make(chan struct{}), make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if len(b.Accepts) > 0 {
			close(held)
			<-gate
		}
		return commit()
	}}
	srv := boot(t, s, hands, nil)
	e := srv.App.Engine()
	began := hands.Now()
	done := make(chan error, 1)
	go func() {
		_, err := e.Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: []engine.Publication{
			{Type: "order.paid", ContentType: "application/json", Body: []byte(`{}`)},
			{Type: "order.paid", ContentType: "application/json", Body: []byte(`{}`)},
		}})
		done <- err
	}()
	await(t, "the commit", held)
	hands.Advance(time.Hour)
	if at := e.Watermark(); at.After(began) {
		t.Errorf("settled until %s, but an event of %s is under way", at, began)
	}
	close(gate)
	must(t, <-done)
	if at := e.Watermark(); !at.After(start.Add(59*time.Minute)) || at.After(hands.Now()) {
		t.Errorf("settled until %s at %s", at, hands.Now())
	}
}

// Server events about a result hold the watermark until they are stored.
func TestNewsAreSettled(t *testing.T) {
	hands := clock.NewManual(start)
	held, gate := make(chan struct{}), make(chan struct{})
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if len(b.Results) > 0 && len(b.Accepts) > 0 {
			close(held)
			<-gate
		}
		return commit()
	}}
	srv := boot(t, s, hands, nil)
	sink := apptest.NewSink(t)
	sink.Script("/", apptest.Status(404))
	ep := srv.Endpoint(sink.URL("/"), dialect("ojs", "job.*"))
	ev := srv.Publish("job.done", `{}`)
	await(t, "the commit", held)
	hands.Advance(time.Hour)
	if at := srv.App.Engine().Watermark(); at.After(start) {
		t.Errorf("settled until %s", at)
	}
	close(gate)
	srv.WaitDelivery(ev, ep, godwit.DeliveryTerminal)
	must(t, srv.Stop()) // the results have been reported by then
	if at := srv.App.Engine().Watermark(); at.Before(start.Add(59 * time.Minute)) {
		t.Errorf("settled until %s", at)
	}
}

// The watermark never goes back: an event that a reader was shown does not vanish when another event of the same moment is
// stored, and later ids are not before it.
func TestSettledNeverGoesBack(t *testing.T) {
	hands := clock.NewManual(start.Add(50 * time.Millisecond))
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	var block atomic.Bool
	s := &tampered{commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
		if len(b.Accepts) > 0 && block.Load() {
			select {
			case entered <- struct{}{}:
			default: // the third commit
			}
			<-gate
		}
		return commit()
	}}
	srv := boot(t, s, hands, nil)
	e := srv.App.Engine()
	publish := func() (godwit.EventID, error) {
		receipts, err := e.Submit(context.Background(), engine.Submission{TenantID: srv.Tenant, Events: []engine.Publication{
			{Type: "order.paid", ContentType: "application/json", Body: []byte(`{}`)},
		}})
		if err != nil {
			return godwit.EventID{}, err
		}
		return receipts[0].Events[0].ID, nil
	}
	shown, err := publish()
	must(t, err)
	hands.Advance(2 * time.Millisecond)
	before := e.Watermark()
	var bound func(time.Time) godwit.EventID = godwit.FirstIDAt
	visible := func(id godwit.EventID) bool {
		b := bound(e.Watermark())
		return bytes.Compare(id[:], b[:]) < 0
	}
	if !visible(shown) {
		t.Fatalf("settled until %s, which does not show the event of %s", before, start)
	}
	block.Store(true)
	var second godwit.EventID
	done := make(chan error, 1)
	go func() {
		var err error
		second, err = publish()
		done <- err
	}()
	await(t, "the second commit", entered)
	if at := e.Watermark(); at.Before(before) || !visible(shown) {
		t.Errorf("settled until %s, after it was %s", at, before)
	}
	close(gate)
	must(t, <-done)
	if b := bound(before); bytes.Compare(second[:], b[:]) < 0 {
		t.Error("an id was made in a time that was told to be over")
	}
	hands.Step(-time.Second)
	third, err := publish()
	must(t, err)
	if b := bound(before); bytes.Compare(third[:], b[:]) < 0 || !visible(shown) {
		t.Error("a clock that was set back mints ids in a time that was told to be over, or hides what was shown")
	}
}
