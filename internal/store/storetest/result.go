package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var resultCases = []testCase{
	{"keeps every member of delivery and attempt", resultMembers},
	{"an ordinary success", resultOrdinary},
	{"a pending delivery waits until it is due", resultRetry},
	{"a claim is given back", resultGivenBack},
	{"a claim is kept", resultKeepClaim},
	{"two results of one delivery in one batch", resultTwice},
	{"is fenced by another epoch", resultFencedEpoch},
	{"is fenced without a claim", resultFencedClaim},
	{"is fenced by a later claim", resultFencedLater},
	{"a repeated one keeps its claim", resultKeepClaimTwice},
	{"a fenced one does not stop the rest", resultFencedRest},
	{"a dead one leaves a dead letter", resultDead},
	{"accepts and results share a batch", resultMixed},
	{"text that no column would take", resultOddText},
}

func resultMembers(t *testing.T, f *fixture) {
	id := f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryPending)
	r.Delivery.Reason = godwit.Reason(godwit.FailureTruncated)
	r.Delivery.LastStatus = 502
	r.Delivery.Attempts, r.Attempt.N = 7, 7
	r.Delivery.UpdatedAt = f.tick(3 * time.Microsecond)
	r.Delivery.Run = godwit.Run{Trigger: godwit.TriggerReplay, Actor: "key_1 é", Attempts: 3, FirstAt: f.now, Refreshed: true}
	*r.Attempt = godwit.Attempt{
		ID: r.Attempt.ID, DeliveryID: id, TenantID: f.tenant, EventID: r.Delivery.EventID, EndpointID: f.endpoint,
		N: 7, Trigger: godwit.TriggerMoved, StartedAt: f.now.Add(-time.Second), Duration: 1234567 * time.Microsecond,
		URL: "https://receiver.example/hook?a=b&c=%20", Status: 502,
		Verdict: godwit.Verdict{
			Outcome: godwit.Transient, Reason: godwit.Reason(godwit.FailureTruncated), Class: godwit.ClassTransport,
			ReceiverUnknown: true, RetryAfter: 90 * time.Second, SunsetAt: f.now.Add(time.Hour), DisableEndpoint: true,
			MoveTo: "https://new.example/", RefreshAndRetry: true, Review: true,
			Problem: &godwit.Problem{Type: "about:blank", Title: "Bad", Status: 502, Detail: "why \u2603"},
		},
		NextAt: f.now.Add(time.Minute),
		Trace: godwit.Trace{
			Proto: "HTTP/2.0", RemoteAddr: "192.0.2.1:443", Hops: []godwit.Hop{{Status: 307, From: "https://a", To: "https://b"}},
			Body: "<p>\"oops\" & 'more' \u2603\n", ContentType: "text/html", Link: "<https://legal>; rel=blocked-by",
			RetryAfter: "90", Problem: &godwit.Problem{Title: "Bad"}, Detail: "unexpected end", SignedWith: []string{"sec_1", "sec_2"},
			Actor: "key_1",
			Wire:  &godwit.Wire{Timing: godwit.WireTiming{1, 20, 300, 4000}, Request: []string{"Content-Type: text/plain"}, Response: []string{"Server: \u2603"}, Cut: true},
		},
	}
	f.record(r)
	same(t, "delivery", f.delivery(id), &r.Delivery)
	same(t, "attempts", got(f.s.Attempts(f.ctx, f.tenant, id))(t), []godwit.Attempt{*r.Attempt})

	// An ordinary attempt has a timing alone.
	plain := f.acceptOne()
	r = f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	r.Attempt.Trace.Wire = &godwit.Wire{Timing: godwit.WireTiming{0, 0, 0, 5}}
	f.record(r)
	same(t, "plain attempts", got(f.s.Attempts(f.ctx, f.tenant, plain))(t), []godwit.Attempt{*r.Attempt})
}

func resultOrdinary(t *testing.T, f *fixture) {
	id := f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	r.Attempt.Trigger = godwit.TriggerAccept
	f.record(r)
	same(t, "delivery", f.delivery(id), &r.Delivery)
	same(t, "attempts", got(f.s.Attempts(f.ctx, f.tenant, id))(t), []godwit.Attempt{*r.Attempt})
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 0 {
		t.Errorf("%d deliveries are pending", n)
	}
	if _, ok := f.waiting(f.endpoint); ok {
		t.Error("a finished delivery waits")
	}
}

func resultRetry(t *testing.T, f *fixture) {
	id := f.acceptOne()
	first := f.finish(godwit.DeliveryPending)
	if c := f.claim(f.endpoint, 10); len(c.Work) != 0 || !c.NextDue.Equal(first.DueAt) {
		t.Fatalf("claimed %d before they were due, next is due %v", len(c.Work), c.NextDue)
	}
	if due, ok := f.waiting(f.endpoint); !ok || !due.Equal(first.DueAt) {
		t.Fatalf("endpoint waits: %v, due %v, want %v", ok, due, first.DueAt)
	}
	f.now = first.DueAt.Add(-time.Microsecond)
	if c := f.claim(f.endpoint, 10); len(c.Work) != 0 {
		t.Fatal("claimed a microsecond early")
	}
	f.now = first.DueAt
	w := f.claimOne(f.endpoint)
	same(t, "claimed delivery", w.Delivery, first)
	second := f.attempted(w, godwit.DeliveryAccepted)
	f.record(second)
	as := got(f.s.Attempts(f.ctx, f.tenant, id))(t)
	if len(as) != 2 || as[0].N != 1 || as[1].N != 2 {
		t.Errorf("attempts are %+v", as)
	}
}

func resultGivenBack(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	w.Delivery.DueAt = f.now.Add(5 * time.Second)
	f.record(store.Result{Delivery: w.Delivery, Epoch: f.epoch(f.endpoint)})
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 0 {
		t.Errorf("attempts are %+v, none was made", as)
	}
	f.tick(5 * time.Second)
	if w := f.claimOne(f.endpoint); w.Delivery.Attempts != 0 {
		t.Errorf("delivery counts %d attempts", w.Delivery.Attempts)
	}
}

func resultKeepClaim(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	r := f.attempted(w, godwit.DeliveryPending)
	r.Delivery.DueAt = f.now
	r.KeepClaim = true
	f.record(r)
	if c := f.claim(f.endpoint, 10); len(c.Work) != 0 || !c.NextDue.IsZero() {
		t.Fatalf("a kept claim was claimed again: %+v", c)
	}
	if n := got(f.s.CountPending(f.ctx, f.endpoint))(t); n != 1 {
		t.Errorf("%d deliveries are pending, want 1", n)
	}
	w.Delivery = *f.delivery(id)
	again := f.attempted(w, godwit.DeliveryAccepted)
	again.KeepClaim = true // has no effect on a finished delivery
	f.record(again)
	if d := f.delivery(id); d.Status != godwit.DeliveryAccepted || d.Attempts != 2 {
		t.Errorf("delivery is %+v", d)
	}
}

func resultTwice(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	first := f.attempted(w, godwit.DeliveryPending)
	first.KeepClaim = true
	second := f.attempted(godwit.Work{Delivery: first.Delivery, Event: w.Event}, godwit.DeliveryAccepted)
	f.record(first, second)
	same(t, "delivery", f.delivery(id), &second.Delivery)
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 2 {
		t.Errorf("%d attempts recorded, two were made", len(as))
	}
}

func resultFencedEpoch(t *testing.T, f *fixture) {
	id := f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	before := f.delivery(id)
	f.tick(time.Hour)
	f.acquire("node-b")
	health := godwit.Health{EndpointID: f.endpoint, Accepted: 1, UpdatedAt: f.now}
	c := f.commit(&store.Batch{Results: []store.Result{r}, Health: []godwit.Health{health}})
	same(t, "fenced", c.Fenced, []int{0})
	same(t, "delivery", f.delivery(id), before)
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 0 {
		t.Errorf("attempts of the old owner were stored: %+v", as)
	}
	if h := got(f.s.Health(f.ctx, f.endpoint))(t); h.Accepted != 0 {
		t.Error("health of the old owner was stored")
	}
	f.claimOne(f.endpoint) // the new owner has it
	again := f.commit(&store.Batch{Results: []store.Result{r}})
	same(t, "fenced", again.Fenced, []int{0})
}

func resultFencedClaim(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	r := f.attempted(w, godwit.DeliveryAccepted)
	f.record(store.Result{Delivery: w.Delivery, Epoch: f.epoch(f.endpoint)}) // returned
	c := f.commit(&store.Batch{Results: []store.Result{r}})
	same(t, "fenced", c.Fenced, []int{0})
	same(t, "delivery", f.delivery(id), &w.Delivery)
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 0 {
		t.Errorf("attempts were stored without a claim: %+v", as)
	}

	zero := r
	zero.Epoch = 0 // must not match an unclaimed delivery
	c = f.commit(&store.Batch{Results: []store.Result{zero}})
	same(t, "fenced", c.Fenced, []int{0})
}

// A commit whose answer was lost is repeated. The delivery may have been claimed again in between, under the same epoch.
func resultFencedLater(t *testing.T, f *fixture) {
	for _, n := range []int{1, 2} {
		id := f.acceptOne()
		w := f.claimOne(f.endpoint)
		for range n - 1 {
			f.record(f.attempted(w, godwit.DeliveryPending))
			f.now = f.delivery(id).DueAt
			w = f.claimOne(f.endpoint)
		}
		r := f.attempted(w, godwit.DeliveryPending)
		f.record(r)
		f.now = r.Delivery.DueAt
		later := f.claimOne(f.endpoint)
		c := f.commit(&store.Batch{Results: []store.Result{r}})
		same(t, "fenced", c.Fenced, []int{0})
		if c := f.claim(f.endpoint, 10); len(c.Work) != 0 {
			t.Errorf("attempt %d: the repeated result released the later claim", n)
		}
		f.record(f.attempted(later, godwit.DeliveryAccepted))
		if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != n+1 {
			t.Errorf("%d attempts recorded, %d were made", len(as), n+1)
		}
	}
}

func resultKeepClaimTwice(t *testing.T, f *fixture) {
	id := f.acceptOne()
	w := f.claimOne(f.endpoint)
	first := f.attempted(w, godwit.DeliveryPending)
	first.KeepClaim = true
	f.record(first)
	f.record(first)
	same(t, "delivery", f.delivery(id), &first.Delivery)
	second := f.attempted(godwit.Work{Delivery: first.Delivery, Event: w.Event}, godwit.DeliveryAccepted)
	f.record(first, second)
	same(t, "delivery", f.delivery(id), &second.Delivery)
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 2 {
		t.Errorf("%d attempts recorded, two were made", len(as))
	}
}

func resultFencedRest(t *testing.T, f *fixture) {
	f.acceptOne()
	f.acceptOne()
	f.acceptOne()
	work := f.claim(f.endpoint, 10).Work
	if len(work) != 3 {
		t.Fatalf("claimed %d", len(work))
	}
	var results []store.Result
	for _, w := range work {
		results = append(results, f.attempted(w, godwit.DeliveryAccepted))
	}
	results[1].Epoch--
	a, id := keyedAccept(f, nil)
	c := f.commit(&store.Batch{Accepts: []store.Accept{a}, Results: results, Notices: []godwit.Notice{makeNotice(f)}})
	same(t, "fenced", c.Fenced, []int{1})
	f.stored(id, true)
	for i, want := range []godwit.DeliveryStatus{godwit.DeliveryAccepted, godwit.DeliveryPending, godwit.DeliveryAccepted} {
		if d := f.delivery(work[i].Delivery.ID); d.Status != want {
			t.Errorf("delivery %d is %s, want %s", i, d.Status, want)
		}
	}
	if ns := got(f.s.ListNotices(f.ctx, f.tenant, false, store.Page{Limit: 5}))(t); len(ns) != 1 {
		t.Errorf("%d notices", len(ns))
	}
}

func resultDead(t *testing.T, f *fixture) {
	for _, status := range []godwit.DeliveryStatus{godwit.DeliveryTerminal, godwit.DeliveryExhausted} {
		for _, withEvent := range []bool{true, false} {
			id := f.acceptOne()
			w := f.claimOne(f.endpoint)
			r := f.attempted(w, status)
			if !withEvent {
				r.Event = nil
			}
			f.record(r)
			dl := got(f.s.DeadLetter(f.ctx, f.tenant, id))(t)
			same(t, "dead letter", dl, &godwit.DeadLetter{Delivery: r.Delivery, Event: w.Event, DeadAt: f.now, LastDetail: "answered 422"})
			same(t, "delivery", f.delivery(id), &r.Delivery)
		}
	}
}

func resultMixed(t *testing.T, f *fixture) {
	f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryAccepted)
	a, id := keyedAccept(f, makeRecord(f, "k"))
	health := godwit.Health{EndpointID: f.endpoint, Accepted: 1, LastAcceptedAt: f.now, UpdatedAt: f.now}
	c := f.commit(&store.Batch{
		Accepts: []store.Accept{a}, Results: []store.Result{r}, Health: []godwit.Health{health},
		Notices: []godwit.Notice{makeNotice(f)},
	})
	if c.Existing[0] != nil || len(c.Fenced) != 0 {
		t.Fatalf("commit found %+v", c)
	}
	f.stored(id, true)
	same(t, "delivery", f.delivery(r.Delivery.ID), &r.Delivery)
	same(t, "health", got(f.s.Health(f.ctx, f.endpoint))(t), &health)
}

// A receiver's answer may contain any bytes. A batch that failed because of them would fail at every repetition.
func resultOddText(t *testing.T, f *fixture) {
	const odd = "a\x00b\xff\xfec"
	id := f.acceptOne()
	r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryTerminal)
	r.LastDetail, r.Delivery.Run.Actor = odd, odd
	r.Attempt.URL, r.Attempt.Verdict.MoveTo = odd, odd
	r.Attempt.Trace.Body, r.Attempt.Trace.Detail, r.Attempt.Trace.Link = odd, odd, odd
	notice := makeNotice(f)
	notice.Detail, notice.Link = odd, odd
	f.commit(&store.Batch{Results: []store.Result{r}, Notices: []godwit.Notice{notice}})
	if d := f.delivery(id); d.Status != godwit.DeliveryTerminal {
		t.Errorf("delivery is %s", d.Status)
	}
	got(f.s.DeadLetter(f.ctx, f.tenant, id))(t)
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 1 {
		t.Errorf("%d attempts recorded, one was made", len(as))
	}
	got(f.s.ListNotices(f.ctx, f.tenant, true, store.Page{Limit: 5}))(t)
}
