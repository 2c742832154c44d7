package storetest

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var attemptCases = []testCase{
	{"log of retries, replays and runs", attemptRuns},
	{"log shows what was held before what came later", attemptHeld},
	{"log, filtered", attemptFilters},
	{"log is bounded", attemptLimit},
	{"log belongs to its tenant and endpoint", attemptTenant},
	{"log without the events", attemptSwept},
}

func attemptLog(f *fixture, filter store.AttemptFilter, limit int) []store.LoggedAttempt {
	f.t.Helper()
	filter.TenantID = f.tenant
	if filter.EndpointID.IsZero() {
		filter.EndpointID = f.endpoint
	}
	return got(f.s.ListAttempts(f.ctx, filter, limit))(f.t)
}

// A journal records a test's attempts, for comparison with the log.
type journal struct {
	f    *fixture
	list []store.LoggedAttempt
}

// try claims a delivery a second later, attempts it, and records the expected entry of the log.
func (j *journal) try(id godwit.DeliveryID, trigger godwit.Trigger, run int, status godwit.DeliveryStatus) store.LoggedAttempt {
	j.f.t.Helper()
	j.f.tick(time.Second)
	due := j.f.claim(j.f.endpoint, 100)
	i := slices.IndexFunc(due.Work, func(w godwit.Work) bool { return w.Delivery.ID == id })
	if i < 0 {
		j.f.t.Fatal("the delivery is not due")
	}
	for k, w := range due.Work { // the others are returned
		if k != i {
			j.f.record(store.Result{Delivery: w.Delivery, Epoch: j.f.epoch(j.f.endpoint)})
		}
	}
	r := j.f.attempted(due.Work[i], status)
	r.Attempt.Trigger = trigger
	r.Delivery.DueAt, r.Attempt.NextAt = j.f.now, time.Time{}
	if status == godwit.DeliveryPending {
		r.Attempt.NextAt = j.f.now
	}
	j.f.record(r)
	for k := range j.list {
		if j.list[k].Attempt.DeliveryID == id {
			j.list[k].Final = godwit.DeliveryPending
		}
	}
	l := store.LoggedAttempt{Attempt: *r.Attempt, EventType: due.Work[i].Event.Type, Run: run, Final: status}
	j.list = append(j.list, l)
	return l
}

// latest returns the expected log: all wanted entries, latest first.
func (j *journal) latest(wanted func(*store.LoggedAttempt) bool) []store.LoggedAttempt {
	list := slices.DeleteFunc(slices.Clone(j.list), func(l store.LoggedAttempt) bool { return !wanted(&l) })
	slices.SortFunc(list, func(a, b store.LoggedAttempt) int {
		return cmp.Or(b.Attempt.StartedAt.Compare(a.Attempt.StartedAt), bytes.Compare(b.Attempt.ID[:], a.Attempt.ID[:]))
	})
	return list
}

func everyAttempt(*store.LoggedAttempt) bool { return true }

// accept stores an event of a type and returns its delivery.
func (j *journal) accept(eventType string) godwit.DeliveryID {
	j.f.t.Helper()
	j.f.tick(time.Second)
	e := j.f.makeEvent()
	e.Type = eventType
	n := j.f.fanOut(e, j.f.endpoint)
	j.f.accept(n)
	return n.Deliveries[0].ID
}

func attemptRuns(t *testing.T, f *fixture) {
	if log := attemptLog(f, store.AttemptFilter{}, 10); len(log) != 0 {
		t.Errorf("an endpoint without attempts has %+v", log)
	}
	j := &journal{f: f}
	first := j.accept("order.paid")
	j.try(first, godwit.TriggerAccept, 1, godwit.DeliveryPending)
	j.try(first, godwit.TriggerRetry, 2, godwit.DeliveryPending)
	same(t, "log of one that is pending", attemptLog(f, store.AttemptFilter{}, 10), j.latest(everyAttempt))
	second := j.accept("order.sent")
	j.try(second, godwit.TriggerAccept, 1, godwit.DeliveryAccepted)
	j.try(first, godwit.TriggerRefresh, 3, godwit.DeliveryPending)
	j.try(first, godwit.TriggerMoved, 4, godwit.DeliveryExhausted)
	same(t, "log of one run", attemptLog(f, store.AttemptFilter{}, 10), j.latest(everyAttempt))

	f.requeue(first)
	for i := range j.list { // it is pending again, so none of its attempts is final
		if j.list[i].Attempt.DeliveryID == first && j.list[i].Attempt.N == 4 {
			j.list[i].Final = godwit.DeliveryPending
		}
	}
	same(t, "log before the second run", attemptLog(f, store.AttemptFilter{}, 10), j.latest(everyAttempt))
	j.try(first, godwit.TriggerReplay, 1, godwit.DeliveryPending)
	j.try(first, godwit.TriggerRetry, 2, godwit.DeliveryTerminal)
	f.requeue(first, second)
	j.try(second, godwit.TriggerManual, 1, godwit.DeliveryAccepted)
	j.try(first, godwit.TriggerManual, 1, godwit.DeliveryPending)
	j.try(first, godwit.TriggerRetry, 2, godwit.DeliveryAccepted)
	same(t, "log of three runs", attemptLog(f, store.AttemptFilter{}, 20), j.latest(everyAttempt))
}

// The log is ordered by attempt time: a delivery that waited long comes after newer deliveries.
func attemptHeld(t *testing.T, f *fixture) {
	j := &journal{f: f}
	held := j.accept("order.paid")
	never := j.accept("order.none")
	for range 3 {
		j.try(j.accept("order.sent"), godwit.TriggerAccept, 1, godwit.DeliveryAccepted)
	}
	j.try(held, godwit.TriggerAccept, 1, godwit.DeliveryAccepted)
	got(f.s.Cancel(f.ctx, f.tenant, never, f.now))(t)
	log := attemptLog(f, store.AttemptFilter{}, 10)
	same(t, "log", log, j.latest(everyAttempt))
	if log[0].Attempt.DeliveryID != held {
		t.Error("the one that was held is not the latest")
	}
}

func attemptFilters(t *testing.T, f *fixture) {
	j := &journal{f: f}
	var tried []store.LoggedAttempt
	for i := range 4 {
		id := j.accept("order.paid")
		tried = append(tried, j.try(id, godwit.TriggerAccept, 1, godwit.DeliveryPending))
		end := []godwit.DeliveryStatus{godwit.DeliveryAccepted, godwit.DeliveryTerminal}[i%2]
		tried = append(tried, j.try(id, godwit.TriggerRetry, 2, end))
		j.try(j.accept("order.sent"), godwit.TriggerAccept, 1, []godwit.DeliveryStatus{godwit.DeliveryTerminal, godwit.DeliveryAccepted}[i%2])
	}
	j.try(j.accept("order.sent"), godwit.TriggerAccept, 1, godwit.DeliveryExhausted)
	j.try(j.accept("order.sent"), godwit.TriggerTest, 1, godwit.DeliveryExhausted)
	middle := tried[3].Attempt.StartedAt
	is := func(outcomes ...godwit.Outcome) func(*store.LoggedAttempt) bool {
		return func(l *store.LoggedAttempt) bool { return slices.Contains(outcomes, l.Attempt.Verdict.Outcome) }
	}
	for name, c := range map[string]struct {
		filter store.AttemptFilter
		keep   func(*store.LoggedAttempt) bool
	}{
		"all":      {store.AttemptFilter{}, everyAttempt},
		"accepted": {store.AttemptFilter{Outcomes: []godwit.Outcome{godwit.Accepted}}, is(godwit.Accepted)},
		"failed": {store.AttemptFilter{Outcomes: []godwit.Outcome{godwit.Transient, godwit.Terminal}},
			is(godwit.Transient, godwit.Terminal)},
		"exhausted": {store.AttemptFilter{Exhausted: true}, func(l *store.LoggedAttempt) bool { return l.Attempt.Exhausted() }},
		"since":     {store.AttemptFilter{Since: middle}, func(l *store.LoggedAttempt) bool { return !l.Attempt.StartedAt.Before(middle) }},
		"until":     {store.AttemptFilter{Until: middle}, func(l *store.LoggedAttempt) bool { return !l.Attempt.StartedAt.After(middle) }},
		"one moment": {store.AttemptFilter{Since: middle, Until: middle}, func(l *store.LoggedAttempt) bool {
			return l.Attempt.StartedAt.Equal(middle)
		}},
		"together": {store.AttemptFilter{Since: middle, Outcomes: []godwit.Outcome{godwit.Terminal}}, func(l *store.LoggedAttempt) bool {
			return !l.Attempt.StartedAt.Before(middle) && l.Attempt.Verdict.Outcome == godwit.Terminal
		}},
		"never": {store.AttemptFilter{Since: f.now.Add(time.Hour)}, func(*store.LoggedAttempt) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			log, want := attemptLog(f.in(t), c.filter, 100), j.latest(c.keep)
			if len(log)+len(want) > 0 {
				same(t, "log", log, want)
			}
		})
	}
}

func attemptLimit(t *testing.T, f *fixture) {
	j := &journal{f: f}
	id := j.accept("order.paid")
	for i := range 6 {
		trigger := godwit.TriggerRetry
		if i == 0 {
			trigger = godwit.TriggerAccept
		}
		j.try(id, trigger, i+1, godwit.DeliveryPending)
		j.try(j.accept("order.sent"), godwit.TriggerAccept, 1, godwit.DeliveryAccepted)
	}
	for _, limit := range []int{1, 5, 12, 50} {
		want := j.latest(everyAttempt)
		same(t, "log", attemptLog(f, store.AttemptFilter{}, limit), want[:min(limit, len(want))])
	}
}

func attemptTenant(t *testing.T, f *fixture) {
	f.acceptOne()
	f.finish(godwit.DeliveryAccepted)
	if log := attemptLog(f, store.AttemptFilter{EndpointID: f.newEndpoint()}, 10); len(log) != 0 {
		t.Errorf("another endpoint logs %+v", log)
	}
	stranger := f.newTenant()
	log := got(f.s.ListAttempts(f.ctx, store.AttemptFilter{TenantID: stranger, EndpointID: f.endpoint}, 10))(t)
	if len(log) != 0 {
		t.Errorf("a stranger reads %+v", log)
	}
}

// Attempts may have a shorter retention than deliveries; the log then has only the remaining ones, with their original
// numbers.
func attemptSwept(t *testing.T, f *fixture) {
	j := &journal{f: f}
	id := j.accept("order.paid")
	j.try(id, godwit.TriggerAccept, 1, godwit.DeliveryPending)
	f.tick(2 * time.Hour)
	last := j.try(id, godwit.TriggerRetry, 2, godwit.DeliveryAccepted)
	f.sweepAll(store.Sweep{AttemptsBefore: f.now.Add(-time.Hour)})
	same(t, "log", attemptLog(f, store.AttemptFilter{}, 10), []store.LoggedAttempt{last})
}
