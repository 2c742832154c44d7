package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var fanoutCases = []testCase{
	{"is stored with its events and completed in parts", fanoutParts},
	{"a part that comes twice is stored once", fanoutPartTwice},
	{"a part claims its deliveries", fanoutClaims},
	{"storing one again keeps it", fanoutAgain},
	{"are listed, oldest first", fanoutList},
	{"are stored beside other accepts", fanoutBeside},
	{"keep their events from being swept", fanoutKeepsEvents},
}

// newFanout stores two events that go to three endpoints.
func newFanout(f *fixture) (store.Fanout, []*godwit.Event) {
	f.t.Helper()
	events := []*godwit.Event{f.makeEvent(), f.makeEvent()}
	fan := store.Fanout{TenantID: f.tenant, Trigger: godwit.TriggerAccept, Endpoints: []godwit.EndpointID{f.endpoint, f.newEndpoint(), f.newEndpoint()}}
	b := &store.Batch{}
	for _, e := range events {
		fan.Events = append(fan.Events, e.ID)
		b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{{Event: e}}})
	}
	b.Fanouts = []store.Fanout{fan}
	f.commit(b)
	return fan, events
}

// partOf makes the accept of one event's deliveries to some of the fan-out's endpoints.
func partOf(f *fixture, fan *store.Fanout, e *godwit.Event, from, to int) store.Accept {
	first := from % len(fan.Endpoints)
	return store.Accept{
		Events: []store.NewEvent{f.fanOut(e, fan.Endpoints[first:first+to-from]...)},
		Part:   &store.FanoutPart{ID: fan.ID(), From: from, To: to, Last: to == fan.Total()},
	}
}

func countDeliveries(f *fixture, e *godwit.Event) int {
	f.t.Helper()
	return len(got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant, EventID: e.ID}, store.Page{Limit: 100}))(f.t))
}

func fanoutParts(t *testing.T, f *fixture) {
	fan, events := newFanout(f)
	same(t, "fan-out", *got(f.s.Fanout(f.ctx, fan.ID()))(t), fan)
	if n := countDeliveries(f, events[0]); n != 0 {
		t.Fatalf("%d deliveries before the first part", n)
	}
	for _, step := range []struct{ event, from, to int }{{0, 0, 2}, {0, 2, 3}, {1, 3, 6}} {
		c := f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[step.event], step.from, step.to)}})
		if len(c.Moved) != 0 {
			t.Fatalf("part %+v was not stored", step)
		}
		if step.to == fan.Total() {
			break
		}
		if now := got(f.s.Fanout(f.ctx, fan.ID()))(t); now.Done != step.to {
			t.Fatalf("after part %+v the fan-out stands at %d", step, now.Done)
		}
	}
	if a, b := countDeliveries(f, events[0]), countDeliveries(f, events[1]); a != 3 || b != 3 {
		t.Errorf("%d and %d deliveries, want 3 each", a, b)
	}
	_, err := f.s.Fanout(f.ctx, fan.ID())
	f.is(err, store.ErrNotFound)
	for _, id := range fan.Endpoints {
		if c := f.claim(id, 10); len(c.Work) != 2 || c.Work[0].Event == nil {
			t.Errorf("%d deliveries to claim, want 2", len(c.Work))
		}
	}
}

// A repeated part, after a commit with an unknown outcome or by another node, stores no second deliveries.
func fanoutPartTwice(t *testing.T, f *fixture) {
	fan, events := newFanout(f)
	first := partOf(f, &fan, events[0], 0, 2)
	f.commit(&store.Batch{Accepts: []store.Accept{first}})
	other := f.makeEvent()
	c := f.commit(&store.Batch{Accepts: []store.Accept{
		{Events: []store.NewEvent{f.fanOut(other, f.endpoint)}}, first, partOf(f, &fan, events[0], 0, 3),
	}})
	same(t, "moved", c.Moved, []int{1, 2})
	if a, b := countDeliveries(f, events[0]), countDeliveries(f, other); a != 2 || b != 1 {
		t.Errorf("%d deliveries of the fan-out and %d beside it, want 2 and 1", a, b)
	}
	if now := got(f.s.Fanout(f.ctx, fan.ID()))(t); now.Done != 2 {
		t.Errorf("the fan-out stands at %d", now.Done)
	}
	f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[0], 2, 3)}})
	last := partOf(f, &fan, events[1], 3, 6)
	f.commit(&store.Batch{Accepts: []store.Accept{last}})
	if c := f.commit(&store.Batch{Accepts: []store.Accept{last}}); len(c.Moved) != 1 {
		t.Error("the last part was stored twice")
	}
}

func fanoutClaims(t *testing.T, f *fixture) {
	fan, events := newFanout(f)
	part := partOf(f, &fan, events[0], 0, 3)
	d := part.Events[0].Deliveries
	d[0].ClaimEpoch = f.epoch(fan.Endpoints[0])
	f.commit(&store.Batch{Accepts: []store.Accept{part}})
	if c := f.claim(fan.Endpoints[0], 10); len(c.Work) != 0 {
		t.Error("a delivery that came claimed was claimed again")
	}
	w := godwit.Work{Event: events[0], Delivery: *f.delivery(d[0].ID)}
	if c := f.commit(&store.Batch{Results: []store.Result{f.attempted(w, godwit.DeliveryAccepted)}}); len(c.Fenced) != 0 {
		t.Error("the result of a delivery that came claimed was refused")
	}
}

func fanoutAgain(t *testing.T, f *fixture) {
	fan, events := newFanout(f)
	f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[0], 0, 1)}})
	f.commit(&store.Batch{Fanouts: []store.Fanout{fan}})
	if now := got(f.s.Fanout(f.ctx, fan.ID()))(t); now.Done != 1 {
		t.Errorf("the fan-out stands at %d", now.Done)
	}
}

func fanoutList(t *testing.T, f *fixture) {
	var want []godwit.EventID
	for range 3 {
		fan, _ := newFanout(f)
		want = append(want, fan.ID())
		f.tick(1_000_000)
	}
	var listed []godwit.EventID
	var after godwit.EventID
	for {
		page := got(f.s.Fanouts(f.ctx, after, 2))(t)
		for i := range page {
			if page[i].Endpoints != nil || page[i].TenantID != f.tenant || len(page[i].Events) != 2 {
				t.Errorf("listed as %+v", page[i])
			}
			after = page[i].ID()
			listed = append(listed, after)
		}
		if len(page) < 2 {
			break
		}
	}
	same(t, "fan-outs", listed, want)
}

// A fan-out and the record of its request are stored together; a repeat of the request finds the record.
func fanoutBeside(t *testing.T, f *fixture) {
	e := f.makeEvent()
	record := &godwit.IdempotencyRecord{
		ID: [32]byte{1}, TenantID: f.tenant, CreatedAt: f.now, ExpiresAt: f.now.Add(ttl), Response: &godwit.StoredResponse{Status: 202},
	}
	fan := store.Fanout{TenantID: f.tenant, Trigger: godwit.TriggerAccept, Events: []godwit.EventID{e.ID}, Endpoints: []godwit.EndpointID{f.endpoint}}
	f.commit(&store.Batch{Accepts: []store.Accept{{Events: []store.NewEvent{{Event: e}}, Record: record}}, Fanouts: []store.Fanout{fan}})
	again := f.makeEvent()
	c := f.commit(&store.Batch{Accepts: []store.Accept{
		partOf(f, &fan, e, 0, 1), {Events: []store.NewEvent{{Event: again}}, Record: record},
	}})
	if c.Existing[1] == nil || len(c.Moved) != 0 || countDeliveries(f, e) != 1 {
		t.Errorf("a repeat beside a part: %+v", c)
	}
}

// An event that expires before its fan-out is complete is kept. Its deliveries then end like other expired ones, with dead
// letters.
func fanoutKeepsEvents(t *testing.T, f *fixture) {
	fan, events := newFanout(f)
	for _, age := range []time.Duration{time.Hour, 1000 * time.Hour} { // expired rows of a partition that stays, then a whole expired partition
		f.tick(age)
		if n := f.sweepAll(store.Sweep{EventsBefore: f.now}).Events; n != 0 {
			t.Fatalf("%d events were swept before their fan-out was complete", n)
		}
	}
	f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[0], 0, 3)}})
	f.commit(&store.Batch{Accepts: []store.Accept{partOf(f, &fan, events[1], 3, 6)}})
	if n := f.sweepAll(store.Sweep{EventsBefore: f.now}); n.Expired != 6 || n.Events != 2 {
		t.Errorf("after the last part %+v", n)
	}
	if n := len(got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant}, store.Page{Limit: 10}))(t)); n != 6 {
		t.Errorf("%d dead letters, want 6", n)
	}
}
