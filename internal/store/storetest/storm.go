package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A storm is a store under concurrent use of all methods, with an observer's knowledge of its content.
type storm struct {
	f         *fixture
	endpoints []godwit.EndpointID

	mu       sync.Mutex
	epochs   [godwit.Shards]int64
	accepted []godwit.DeliveryID
	attempts map[godwit.DeliveryID]int // recorded, by acknowledged commits
	held     map[claim]bool
}

type claim struct {
	id    godwit.DeliveryID
	epoch int64
}

const (
	stormRounds  = 25
	stormWorkers = 3 // of each kind
)

func concurrentStorm(t *testing.T, f *fixture) {
	s := &storm{f: f, attempts: map[godwit.DeliveryID]int{}, held: map[claim]bool{}}
	for range 5 {
		s.endpoints = append(s.endpoints, f.newEndpoint())
	}
	for shard, epoch := range f.epochs {
		s.epochs[shard] = epoch
	}
	kinds := []func(*rand.Rand) error{s.accept, s.work, s.requeue, s.cancel, s.look}
	together(t, len(kinds)*stormWorkers+1, func(i int) error {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		for round := range stormRounds {
			if i == len(kinds)*stormWorkers { // now and then a node takes over all shards
				if round%8 != 7 {
					continue
				}
				if err := s.takeOver(fmt.Sprintf("node %d", round)); err != nil {
					return err
				}
				continue
			}
			if err := kinds[i%len(kinds)](rnd); err != nil {
				return err
			}
		}
		return nil
	})
	s.settle(t)
}

func (s *storm) epoch(id godwit.EndpointID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochs[id.Shard()]
}

func (s *storm) takeOver(owner string) error {
	leases, err := TakeAll(s.f.ctx, s.f.s, owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		s.epochs[l.Shard] = l.Epoch
	}
	return err
}

// accept stores some events, some of them claimed at once, and works on those.
func (s *storm) accept(rnd *rand.Rand) error {
	b := &store.Batch{Now: s.f.now}
	var fresh []godwit.Work
	var epochs []int64
	var all []godwit.DeliveryID
	for range 1 + rnd.IntN(8) {
		n := s.f.fanOut(s.f.makeEvent(), s.endpoints[:1+rnd.IntN(len(s.endpoints))]...)
		for i := range n.Deliveries {
			d := &n.Deliveries[i]
			all = append(all, d.ID)
			if rnd.IntN(2) == 0 {
				continue
			}
			d.ClaimEpoch = s.epoch(d.EndpointID)
			at := n.Event.CreatedAt
			fresh = append(fresh, godwit.Work{Event: n.Event, Delivery: godwit.Delivery{
				ID: d.ID, TenantID: s.f.tenant, EventID: n.Event.ID, EndpointID: d.EndpointID, Status: godwit.DeliveryPending,
				DueAt: at, CreatedAt: at, UpdatedAt: at, Run: godwit.Run{Trigger: d.Trigger},
			}})
			epochs = append(epochs, d.ClaimEpoch)
		}
		b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{n}})
	}
	s.hold(fresh, epochs) // before the commit: from then on a claim by another worker is wrong
	if _, err := s.f.s.Commit(s.f.ctx, b); err != nil {
		return err
	}
	s.mu.Lock()
	s.accepted = append(s.accepted, all...)
	s.mu.Unlock()
	return s.finish(rnd, fresh, epochs)
}

// work claims deliveries of some endpoints and finishes them.
func (s *storm) work(rnd *rand.Rand) error {
	var claims []store.Claim
	for _, i := range rnd.Perm(len(s.endpoints))[:1+rnd.IntN(3)] {
		id := s.endpoints[i]
		claims = append(claims, store.Claim{EndpointID: id, Epoch: s.epoch(id), Now: s.f.now, Limit: 1 + rnd.IntN(20)})
	}
	list, err := s.f.s.ClaimDue(s.f.ctx, claims)
	if err != nil {
		return err
	}
	var work []godwit.Work
	var epochs []int64
	for i, c := range list {
		if c.Err != nil && !errors.Is(c.Err, store.ErrFenced) {
			return c.Err
		}
		work = append(work, c.Work...)
		epochs = append(epochs, slices.Repeat([]int64{claims[i].Epoch}, len(c.Work))...)
	}
	s.hold(work, epochs)
	return s.finish(rnd, work, epochs)
}

func (s *storm) hold(work []godwit.Work, epochs []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range work {
		c := claim{w.Delivery.ID, epochs[i]}
		if s.held[c] {
			s.f.t.Errorf("%v was claimed twice under epoch %d", c.id, c.epoch)
		}
		s.held[c] = true
	}
}

// finish records an outcome for each delivery, in one batch.
func (s *storm) finish(rnd *rand.Rand, work []godwit.Work, epochs []int64) error {
	b := &store.Batch{Now: s.f.now}
	for i, w := range work {
		status := []godwit.DeliveryStatus{
			godwit.DeliveryAccepted, godwit.DeliveryAccepted, godwit.DeliveryPending, godwit.DeliveryTerminal,
		}[rnd.IntN(4)]
		r := s.f.attempted(w, status)
		r.Epoch = epochs[i]
		if status == godwit.DeliveryPending {
			r.Delivery.DueAt = s.f.now
			if rnd.IntN(3) == 0 { // returned without an attempt
				r = store.Result{Delivery: w.Delivery, Epoch: epochs[i]}
			}
		}
		b.Results = append(b.Results, r)
	}
	s.mu.Lock()
	for i, w := range work { // before the commit: from then on it may be claimed again
		delete(s.held, claim{w.Delivery.ID, epochs[i]})
	}
	s.mu.Unlock()
	c, err := s.f.s.Commit(s.f.ctx, b)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range b.Results {
		if r.Attempt != nil && !slices.Contains(c.Fenced, i) {
			s.attempts[r.Delivery.ID]++
		}
	}
	return nil
}

// some picks accepted deliveries.
func (s *storm) some(rnd *rand.Rand, n int) []godwit.DeliveryID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []godwit.DeliveryID
	for range min(n, len(s.accepted)) {
		ids = append(ids, s.accepted[rnd.IntN(len(s.accepted))])
	}
	return ids
}

func (s *storm) requeue(rnd *rand.Rand) error {
	_, err := s.f.s.Requeue(s.f.ctx, store.Requeue{
		TenantID: s.f.tenant, Deliveries: s.some(rnd, 10), Trigger: godwit.TriggerReplay, Actor: "storm", Now: s.f.now,
	})
	return err
}

func (s *storm) cancel(rnd *rand.Rand) error {
	for _, id := range s.some(rnd, 2) {
		if _, err := s.f.s.Cancel(s.f.ctx, s.f.tenant, id, s.f.now); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// look reads during the writes of others.
func (s *storm) look(rnd *rand.Rand) error {
	ds, err := s.f.s.ListDeliveries(s.f.ctx, store.DeliveryFilter{TenantID: s.f.tenant}, store.Page{Limit: 20})
	if err != nil {
		return err
	}
	for _, d := range ds {
		if _, err := s.f.s.Event(s.f.ctx, s.f.tenant, d.EventID); err != nil {
			return fmt.Errorf("event of a listed delivery: %w", err)
		}
	}
	_, err = s.f.s.CountPending(s.f.ctx, s.endpoints[rnd.IntN(len(s.endpoints))])
	return err
}

// settle takes over all shards, finishes all deliveries and counts them.
func (s *storm) settle(t *testing.T) {
	f := s.f
	f.now = f.tick(200 * time.Hour)
	f.acquire("last")
	for _, id := range s.endpoints {
		pending := got(f.s.CountPending(f.ctx, id))(t)
		var claimed int64
		for {
			c := f.claim(id, 100)
			if len(c.Work) == 0 {
				break
			}
			claimed += int64(len(c.Work))
			for _, w := range c.Work {
				r := f.attempted(w, godwit.DeliveryAccepted)
				f.record(r)
				s.attempts[w.Delivery.ID]++
			}
		}
		if claimed != pending {
			t.Errorf("%d deliveries were pending, %d could be claimed after a take-over", pending, claimed)
		}
	}
	for _, id := range s.accepted {
		d, err := f.s.Delivery(f.ctx, f.tenant, id)
		if err != nil {
			t.Fatalf("an accepted delivery is lost: %v", err)
		}
		as := got(f.s.Attempts(f.ctx, f.tenant, id))(t)
		if d.Status == godwit.DeliveryPending || d.Attempts != s.attempts[id] || len(as) != s.attempts[id] {
			t.Errorf("%v is %s with %d attempts, %d rows; %d were acknowledged", id, d.Status, d.Attempts, len(as), s.attempts[id])
		}
		for i, a := range as {
			if a.N != i+1 {
				t.Errorf("attempt %d of %v has number %d", i+1, id, a.N)
			}
		}
		_, err = f.s.DeadLetter(f.ctx, f.tenant, id)
		if dead := err == nil; dead != d.Status.Dead() {
			t.Errorf("%v is %s, dead letter: %v", id, d.Status, dead)
		}
	}
}
