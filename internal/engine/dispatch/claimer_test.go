package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A claimStore answers claims by a function.
type claimStore struct {
	Store
	claim func(claims []store.Claim) ([]store.Claimed, error)
}

func (s *claimStore) ClaimDue(_ context.Context, claims []store.Claim) ([]store.Claimed, error) {
	return s.claim(claims)
}

// A silent observer.
type silent struct{ Observer }

func (silent) Claimed(int, int, time.Duration, error) {}
func (silent) Recorded(*commit.Record)                {}
func (silent) Refused(*commit.Record)                 {}

// newClaiming makes a dispatcher that has all shards under epoch 1, and whose claims go to a function.
func newClaiming(claim func([]store.Claim) ([]store.Claimed, error)) *Dispatcher {
	hands := clock.NewManual(time.Unix(1000, 0))
	d := newIdle(hands)
	d.cfg.Store, d.cfg.Observer = &claimStore{claim: claim}, silent{}
	var all []godwit.Lease
	for i := range godwit.Shards {
		all = append(all, godwit.Lease{Shard: i, Epoch: 1})
	}
	d.cfg.Shards.Serve(all, hands.Steady()+time.Hour)
	return d
}

// order makes an order of a new lane, as refill does.
func (d *Dispatcher) order(limit int) claimOrder {
	l := d.bareLane(godwit.Policy{Concurrency: 1}, 0)
	l.alarm.lane = l
	l.backlog.claiming = true
	l.window.shard.add(1)
	return claimOrder{&l.backlog, 1, limit}
}

// One delivery for each claim.
func answer(claims []store.Claim) []store.Claimed {
	list := make([]store.Claimed, len(claims))
	for i, c := range claims {
		list[i].Work = []godwit.Work{{Event: &godwit.Event{}, Delivery: godwit.Delivery{ID: godwit.NewDeliveryID(c.Now), EndpointID: c.EndpointID}}}
	}
	return list
}

// Orders that come while transactions are under way share the next ones, within the bounds of one.
func TestClaimsShareTransactions(t *testing.T) {
	calls, gate := make(chan []store.Claim, 100), make(chan struct{})
	d := newClaiming(func(claims []store.Claim) ([]store.Claimed, error) {
		calls <- claims
		<-gate
		return answer(claims), nil
	})
	var orders []claimOrder
	add := func() {
		o := d.order(1024)
		orders = append(orders, o)
		d.claims.claim(o)
	}
	pace := d.cfg.Pace.(*clock.Manual)
	for worker := range claimWorkers {
		add()
		if worker > 0 {
			pace.Await(pace.Now().Add(gatherTime), time.Hour)
			pace.Advance(gatherTime)
		}
		if claims := <-calls; len(claims) != 1 || claims[0].Limit != 1024 || claims[0].MaxBytes != claimBytes {
			t.Errorf("a single claim is %+v", claims)
		}
	}
	const more = maxClaims + 10
	for range more {
		add()
	}
	close(gate)
	d.waitWhile(pace)
	close(calls)
	n, made := 0, 0
	for claims := range calls {
		made++
		rows, bytes := 0, 0
		for _, c := range claims {
			rows += c.Limit
			bytes += c.MaxBytes
		}
		if len(claims) > maxClaims || rows > claimedRows || bytes > claimBytes {
			t.Errorf("a transaction of %d claims may claim %d deliveries with %d bytes", len(claims), rows, bytes)
		}
		n += len(claims)
	}
	if n != more || made != 2 {
		t.Errorf("%d claims were made in %d transactions, want %d in 2", n, made, more)
	}
	for i, o := range orders {
		if o.claiming || len(o.lane.window.queue) != 1 || o.lane.window.queue[0].Work.Delivery.EndpointID != o.lane.id {
			t.Errorf("lane %d: claiming %v, queue %v", i, o.claiming, o.lane.window.queue)
		}
	}
}

// waitWhile moves the clock until the claims have been made.
func (d *Dispatcher) waitWhile(pace *clock.Manual) {
	done := make(chan struct{})
	go func() {
		d.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		default:
			pace.Advance(gatherTime)
			runtime.Gosched()
		}
	}
}

// An order that comes soon after a transaction waits for others, which share the next one.
func TestClaimsGather(t *testing.T) {
	calls := make(chan int, 10)
	d := newClaiming(func(claims []store.Claim) ([]store.Claimed, error) {
		calls <- len(claims)
		return answer(claims), nil
	})
	pace := d.cfg.Pace.(*clock.Manual)
	d.claims.claim(d.order(8))
	if n := <-calls; n != 1 {
		t.Errorf("the first transaction had %d claims, want 1", n)
	}
	pace.Advance(gatherTime / 2)
	for range 5 {
		d.claims.claim(d.order(8))
	}
	pace.Await(pace.Now().Add(gatherTime/2), time.Hour)
	if len(calls) != 0 {
		t.Errorf("a transaction with %d claims began too soon", <-calls)
	}
	pace.Advance(gatherTime / 2)
	if n := <-calls; n != 5 {
		t.Errorf("the second transaction had %d claims, want 5", n)
	}
	d.waitWhile(pace)
}

// An order that comes gatherTime after the last transaction began does not wait.
func TestClaimAfterPause(t *testing.T) {
	calls := make(chan int, 1)
	d := newClaiming(func(claims []store.Claim) ([]store.Claimed, error) {
		calls <- len(claims)
		return answer(claims), nil
	})
	d.claims.next = gatherTime
	d.cfg.Pace.(*clock.Manual).Advance(gatherTime)
	d.claims.claim(d.order(8))
	if n := <-calls; n != 1 {
		t.Errorf("the transaction had %d claims, want 1", n)
	}
	d.Wait()
}

// A claim that fails alone leaves the others of its transaction. That another node has the endpoint is no error: shards move.
func TestFencedClaimLeavesOthers(t *testing.T) {
	var lost godwit.EndpointID
	d := newClaiming(func(claims []store.Claim) ([]store.Claimed, error) {
		list := answer(claims)
		for i := range claims {
			if claims[i].EndpointID == lost {
				list[i] = store.Claimed{Err: store.ErrFenced}
			}
		}
		return list, nil
	})
	var log strings.Builder
	d.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	counted := &countFenced{}
	d.cfg.Observer = counted
	fenced, other := d.order(8), d.order(8)
	lost = fenced.lane.id
	d.claims.execute([]claimOrder{fenced, other})
	if fenced.claiming || fenced.suspect || len(fenced.lane.window.queue) != 0 || !fenced.nextDue.After(d.cfg.Clock.Now()) {
		t.Errorf("lane of the fenced claim: %+v", fenced.backlog)
	}
	if other.claiming || other.suspect || len(other.lane.window.queue) != 1 {
		t.Errorf("lane of the other claim: %+v", other.backlog)
	}
	if log.Len() > 0 || counted.n != 1 {
		t.Errorf("%d claims counted as fenced, log %q", counted.n, log.String())
	}
}

type countFenced struct {
	silent
	n int
}

func (c *countFenced) Claimed(_, fenced int, _ time.Duration, _ error) { c.n += fenced }

// After a failed transaction every lane reclaims, and claims on its own.
func TestFailedClaimsAreRepeatedAlone(t *testing.T) {
	d := newClaiming(func([]store.Claim) ([]store.Claimed, error) { return nil, errors.New("gone") })
	orders := []claimOrder{d.order(8), d.order(8), d.order(8)}
	d.claims.execute(orders)
	for i, o := range orders {
		if o.claiming || !o.suspect || o.lane.alarm.timer == nil || !o.nextDue.Equal(d.cfg.Clock.Now().Add(storeRetry)) {
			t.Errorf("lane %d: %+v", i, o.backlog)
		}
		if n := o.lane.window.shard.n.Load(); n != 0 {
			t.Errorf("the shard of lane %d still counts %d claims", i, n)
		}
	}
}

// While claims fail, all lanes try again and again; the log tells only when that begins and when it ends.
func TestFailingClaimsAreLoggedOnce(t *testing.T) {
	failure := errors.New("gone")
	d := newClaiming(func(claims []store.Claim) ([]store.Claimed, error) {
		if failure != nil {
			return nil, failure
		}
		return answer(claims), nil
	})
	var text strings.Builder
	d.cfg.Log = slog.New(slog.NewTextHandler(&text, nil))
	for range 3 {
		d.claims.execute([]claimOrder{d.order(8), d.order(8)})
	}
	failure = nil
	for range 3 {
		d.claims.execute([]claimOrder{d.order(8)})
	}
	if got := text.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "error=gone") || !strings.Contains(got, "again\"\n") {
		t.Errorf("the log says:\n%s", got)
	}
}

// Lanes order and workers claim at the same time; every order is answered once.
func TestClaimerUnderLoad(t *testing.T) {
	var mu sync.Mutex
	claimed := map[godwit.EndpointID]int{}
	d := newClaiming(func(claims []store.Claim) ([]store.Claimed, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range claims {
			claimed[c.EndpointID]++
		}
		return answer(claims), nil
	})
	d.cfg.Pace = clock.Real{}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 200 {
				d.claims.claim(d.order(4))
			}
		})
	}
	callers.Wait()
	d.Wait()
	if len(claimed) != 1600 {
		t.Errorf("%d lanes claimed, want 1600", len(claimed))
	}
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("%v claimed %d times", id, n)
		}
	}
}

// A delivery that another node stored does not send this node's own to the store, unless the lane is too full to claim it.
func TestToldOfForeignDelivery(t *testing.T) {
	d := newIdle(clock.NewManual(time.Unix(1000, 0)))
	for _, c := range []struct {
		queued   int
		overflow bool
	}{{0, false}, {4, false}, {5, true}, {16, true}} {
		l := d.bareLane(godwit.Policy{Concurrency: 1}, c.queued)
		l.alarm.lane = l
		l.Told(d.cfg.Clock.Now())
		if l.backlog.overflow != c.overflow || l.backlog.nextDue.IsZero() {
			t.Errorf("with %d queued: %+v", c.queued, l.backlog)
		}
	}
}
