package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var idempotencyCases = []testCase{
	{"reserve, complete, replay", idempotencyLife},
	{"a lease that ran out frees the key", idempotencyLease},
	{"a repeat of an interrupted request keeps its time", idempotencyInterrupted},
	{"an interrupted request can be repeated until its window ends", idempotencyUnanswered},
	{"forget frees the key", idempotencyForget},
	{"a request whose lease ended leaves the key of the next alone", idempotencyTakenOver},
	{"a reserved key stops an accept and the reverse", idempotencyShared},
}

func reservation(f *fixture, key string) *godwit.IdempotencyRecord {
	r := makeRecord(f, key)
	r.Response, r.ExpiresAt = nil, f.now.Add(time.Minute)
	return r
}

func idempotencyLife(t *testing.T, f *fixture) {
	r := reservation(f, "k")
	if found := got(f.s.Reserve(f.ctx, r))(t); found != nil {
		t.Fatalf("a new key was there: %+v", found)
	}
	again := reservation(f, "k")
	copy(again.Fingerprint[:], "another payload")
	found := got(f.s.Reserve(f.ctx, again))(t)
	same(t, "reserved", found, r)
	if !found.InProgress() {
		t.Error("a record without a response is not in progress")
	}
	same(t, "recorded", got(f.s.Recorded(f.ctx, r.ID, f.now))(t), r)

	f.tick(time.Second)
	for _, resp := range []*godwit.StoredResponse{
		{Status: 204},
		{Status: 201, ContentType: "application/json", Location: "/v1/endpoints/sub_1", Body: []byte("{\"ok\":true}\n\x00\xff")},
	} {
		held := *r
		r.Response, r.ExpiresAt = resp, f.now.Add(24*time.Hour)
		f.must(f.s.Complete(f.ctx, &held, resp, r.ExpiresAt))
		f.tick(time.Second)
		same(t, "completed", got(f.s.Reserve(f.ctx, again))(t), r)
	}
	_, err := f.s.Recorded(f.ctx, r.ID, r.ExpiresAt)
	f.is(err, store.ErrNotFound)
	got(f.s.Recorded(f.ctx, r.ID, r.ExpiresAt.Add(-time.Microsecond)))(t)
	f.is(f.s.Complete(f.ctx, reservation(f, "unknown"), r.Response, f.now), store.ErrNotFound)
	_, err = f.s.Recorded(f.ctx, makeRecord(f, "unknown").ID, f.now)
	f.is(err, store.ErrNotFound)
}

func idempotencyLease(t *testing.T, f *fixture) {
	first := reservation(f, "k")
	got(f.s.Reserve(f.ctx, first))(t)
	f.now = first.ExpiresAt
	second := reservation(f, "k")
	copy(second.Fingerprint[:], "another payload")
	if found := got(f.s.Reserve(f.ctx, second))(t); found != nil {
		t.Errorf("a holder that never answered still holds the key: %+v", found)
	}
	same(t, "recorded", got(f.s.Recorded(f.ctx, first.ID, f.now))(t), second)
}

func idempotencyInterrupted(t *testing.T, f *fixture) {
	first := reservation(f, "k")
	got(f.s.Reserve(f.ctx, first))(t)
	since := first.CreatedAt
	f.tick(time.Second)
	f.must(f.s.Interrupt(f.ctx, first, f.now))
	f.tick(time.Second)
	held := first
	for range 2 { // the second repeat comes after the lease of the first
		again := reservation(f, "k")
		if found := got(f.s.Reserve(f.ctx, again))(t); found != nil {
			t.Fatalf("an interrupted request holds the key: %+v", found)
		}
		if !again.CreatedAt.Equal(since) {
			t.Errorf("reserved at %v, first at %v", again.CreatedAt, since)
		}
		same(t, "recorded", got(f.s.Recorded(f.ctx, first.ID, f.now))(t), again)
		f.now, held = again.ExpiresAt, again
	}
	// A request with an answer is not interrupted any more, and its key begins anew after the window.
	resp := &godwit.StoredResponse{Status: 204}
	end := f.now.Add(time.Hour)
	f.must(f.s.Complete(f.ctx, held, resp, end))
	f.must(f.s.Interrupt(f.ctx, held, f.now))
	got(f.s.Recorded(f.ctx, first.ID, end.Add(-time.Second)))(t)
	f.now = end
	anew := reservation(f, "k")
	got(f.s.Reserve(f.ctx, anew))(t)
	if !anew.CreatedAt.Equal(end) {
		t.Errorf("after the window: reserved at %v, not %v", anew.CreatedAt, end)
	}
	f.must(f.s.Interrupt(f.ctx, reservation(f, "unknown"), f.now))
}

func idempotencyUnanswered(t *testing.T, f *fixture) {
	r := reservation(f, "k")
	got(f.s.Reserve(f.ctx, r))(t)
	since := r.CreatedAt
	f.now = r.ExpiresAt.Add(time.Hour)
	for _, c := range []struct {
		before time.Time
		swept  int64
	}{{time.Time{}, 0}, {r.ExpiresAt, 0}, {r.ExpiresAt.Add(time.Second), 1}} {
		swept := got(f.s.Sweep(f.ctx, store.Sweep{Now: f.now, UnansweredBefore: c.before, Limit: 10}))(t)
		if swept.Records != c.swept {
			t.Errorf("unanswered before %v: swept %d records, want %d", c.before, swept.Records, c.swept)
		}
	}
	again := reservation(f, "k")
	got(f.s.Reserve(f.ctx, again))(t)
	if again.CreatedAt.Equal(since) {
		t.Error("a swept record is still there")
	}
}

func idempotencyForget(t *testing.T, f *fixture) {
	r := reservation(f, "k")
	got(f.s.Reserve(f.ctx, r))(t)
	f.must(f.s.Forget(f.ctx, r))
	f.must(f.s.Forget(f.ctx, r))
	if found := got(f.s.Reserve(f.ctx, r))(t); found != nil {
		t.Errorf("a forgotten key was there: %+v", found)
	}
}

// A request that is late neither answers, frees nor ends what the request after it holds.
func idempotencyTakenOver(t *testing.T, f *fixture) {
	late := reservation(f, "k")
	got(f.s.Reserve(f.ctx, late))(t)
	f.now = late.ExpiresAt
	next := reservation(f, "k")
	got(f.s.Reserve(f.ctx, next))(t)
	for _, answered := range []bool{false, true} {
		f.is(f.s.Complete(f.ctx, late, &godwit.StoredResponse{Status: 409}, f.now.Add(time.Hour)), store.ErrNotFound)
		f.must(f.s.Interrupt(f.ctx, late, f.now))
		f.must(f.s.Forget(f.ctx, late))
		same(t, "recorded", got(f.s.Recorded(f.ctx, next.ID, f.now))(t), next)
		if answered {
			break
		}
		resp, end := &godwit.StoredResponse{Status: 204}, f.now.Add(time.Hour)
		f.must(f.s.Complete(f.ctx, next, resp, end))
		next.Response, next.ExpiresAt = resp, end
	}
}

func idempotencyShared(t *testing.T, f *fixture) {
	a, _ := keyedAccept(f, makeRecord(f, "k"))
	f.commit(&store.Batch{Accepts: []store.Accept{a}})
	same(t, "reserve after accept", got(f.s.Reserve(f.ctx, reservation(f, "k")))(t), a.Record)
	f.must(f.s.Forget(f.ctx, a.Record))
	r := reservation(f, "k")
	got(f.s.Reserve(f.ctx, r))(t)
	b, id := keyedAccept(f, makeRecord(f, "k"))
	same(t, "accept after reserve", f.commit(&store.Batch{Accepts: []store.Accept{b}}).Existing[0], r)
	f.stored(id, false)
}
