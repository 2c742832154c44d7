package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var deadLetterCases = []testCase{
	{"list, filtered and paged", deadLetterList},
	{"bodies come when asked for", deadLetterBodies},
	{"belongs to its tenant", deadLetterTenant},
	{"one that was replayed stays, and a second one opens", deadLetterReplayed},
	{"replayed ones are swept by their age", deadLetterExpires},
	{"keeps the whole event", deadLetterEvent},
}

func deadLetterList(t *testing.T, f *fixture) {
	other := f.newEndpoint()
	var all []godwit.DeadLetter
	for i := range 8 {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Type = []string{"order.paid", "order.sent"}[i%2]
		endpoint := []godwit.EndpointID{f.endpoint, other}[i/4]
		f.accept(f.fanOut(e, endpoint))
		w := f.claimOne(endpoint)
		f.tick(time.Second)
		r := f.attempted(w, []godwit.DeliveryStatus{godwit.DeliveryTerminal, godwit.DeliveryExhausted}[i/2%2])
		if i%3 == 0 {
			r.Delivery.Reason = godwit.ReasonTimeExhausted
		}
		f.record(r)
		all = append(all, godwit.DeadLetter{Delivery: r.Delivery, Event: e, DeadAt: f.now, LastDetail: r.LastDetail})
	}
	f.acceptOne()
	f.finish(godwit.DeliveryAccepted) // leaves no dead letter
	for name, c := range map[string]struct {
		filter store.DeadLetterFilter
		keep   func(d *godwit.DeadLetter) bool
	}{
		"all":       {store.DeadLetterFilter{}, func(*godwit.DeadLetter) bool { return true }},
		"endpoint":  {store.DeadLetterFilter{EndpointID: other}, func(d *godwit.DeadLetter) bool { return d.Delivery.EndpointID == other }},
		"type":      {store.DeadLetterFilter{EventType: "order.sent"}, func(d *godwit.DeadLetter) bool { return d.Event.Type == "order.sent" }},
		"terminal":  {store.DeadLetterFilter{Status: godwit.DeliveryTerminal}, func(d *godwit.DeadLetter) bool { return d.Delivery.Status == godwit.DeliveryTerminal }},
		"exhausted": {store.DeadLetterFilter{Status: godwit.DeliveryExhausted}, func(d *godwit.DeadLetter) bool { return d.Delivery.Status == godwit.DeliveryExhausted }},
		"reason": {store.DeadLetterFilter{Reason: godwit.ReasonTimeExhausted}, func(d *godwit.DeadLetter) bool {
			return d.Delivery.Reason == godwit.ReasonTimeExhausted
		}},
		"since": {store.DeadLetterFilter{Since: all[3].DeadAt}, func(d *godwit.DeadLetter) bool { return !d.DeadAt.Before(all[3].DeadAt) }},
		"until": {store.DeadLetterFilter{Until: all[3].DeadAt}, func(d *godwit.DeadLetter) bool { return d.DeadAt.Before(all[3].DeadAt) }},
		"together": {store.DeadLetterFilter{EndpointID: f.endpoint, EventType: "order.paid", Status: godwit.DeliveryTerminal}, func(d *godwit.DeadLetter) bool {
			return d.Delivery.EndpointID == f.endpoint && d.Event.Type == "order.paid" && d.Delivery.Status == godwit.DeliveryTerminal
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want, found := map[godwit.DeliveryID]godwit.DeadLetter{}, map[godwit.DeliveryID]godwit.DeadLetter{}
			for _, d := range all {
				if c.keep(&d) {
					want[d.Delivery.ID] = d
				}
			}
			c.filter.TenantID, c.filter.WithBody = f.tenant, true
			for _, d := range pages(t, func(d *godwit.DeadLetter) [16]byte { return d.Delivery.ID }, func(p store.Page) ([]godwit.DeadLetter, error) {
				return f.s.ListDeadLetters(f.ctx, c.filter, p)
			}) {
				found[d.Delivery.ID] = d
			}
			same(t, "dead letters", len(found), len(want))
			counts := map[godwit.EndpointID]int{}
			for _, d := range want {
				counts[d.Delivery.EndpointID]++
			}
			counted := got(f.s.CountDeadLetters(f.ctx, c.filter, len(all)))(t)
			same(t, "endpoints with dead letters", len(counted), len(counts))
			for _, n := range counted {
				same(t, "dead letters of an endpoint", n.Count, counts[n.EndpointID])
			}
			groups := map[store.DeadLetterGroup]bool{}
			for _, d := range want {
				g := store.DeadLetterGroup{EndpointID: d.Delivery.EndpointID, Reason: d.Delivery.Reason}
				for _, other := range want {
					if other.Delivery.EndpointID == g.EndpointID && other.Delivery.Reason == g.Reason {
						g.Count++
						if other.DeadAt.After(g.LastAt) {
							g.LastAt = other.DeadAt.UTC()
						}
					}
				}
				groups[g] = true
			}
			grouped := got(f.s.GroupDeadLetters(f.ctx, c.filter, len(all)))(t)
			same(t, "groups of dead letters", len(grouped), len(groups))
			for _, g := range grouped {
				g.LastAt = g.LastAt.UTC()
				if !groups[g] {
					t.Errorf("group %+v, want one of %v", g, groups)
				}
			}
			for id := range want {
				same(t, "dead letter", found[id], want[id])
			}
		})
	}
}

func deadLetterBodies(t *testing.T, f *fixture) {
	e := f.makeEvent()
	f.accept(f.fanOut(e, f.endpoint))
	f.finish(godwit.DeliveryTerminal)
	with := got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant, WithBody: true}, store.Page{Limit: 5}))(t)
	same(t, "event", with[0].Event, e)
	without := got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant}, store.Page{Limit: 5}))(t)
	bare := *e
	bare.Body = nil
	same(t, "event without body", without[0].Event, &bare)
}

func deadLetterTenant(t *testing.T, f *fixture) {
	id := f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	stranger := f.newTenant()
	_, err := f.s.DeadLetter(f.ctx, stranger, id)
	f.is(err, store.ErrNotFound)
	for _, filter := range []store.DeadLetterFilter{{}, {EndpointID: f.endpoint}, {EventType: "order.paid"}} {
		filter.TenantID = stranger
		if ds := got(f.s.ListDeadLetters(f.ctx, filter, store.Page{Limit: 5}))(t); len(ds) != 0 {
			t.Errorf("a stranger lists %v", ds)
		}
	}
}

func deadLetterReplayed(t *testing.T, f *fixture) {
	list := func(replayed bool, limit int) []godwit.DeadLetter {
		t.Helper()
		all := store.DeadLetterFilter{TenantID: f.tenant, WithBody: true, Replayed: replayed}
		var list []godwit.DeadLetter
		for p := (store.Page{Limit: limit}); ; {
			page := got(f.s.ListDeadLetters(f.ctx, all, p))(t)
			list = append(list, page...)
			if len(page) < limit {
				return list
			}
			p.After = page[len(page)-1].Delivery.ID
		}
	}
	die := func() godwit.DeadLetter {
		t.Helper()
		w := f.claimOne(f.endpoint)
		f.tick(time.Second)
		r := f.attempted(w, godwit.DeliveryTerminal)
		f.record(r)
		return godwit.DeadLetter{Delivery: r.Delivery, Event: w.Event, DeadAt: f.now, LastDetail: r.LastDetail}
	}
	older := f.acceptOne()
	untouched := die()
	f.tick(time.Second)
	id := f.acceptOne()
	letters := []godwit.DeadLetter{die()}
	for range 2 { // each replay ends dead
		f.tick(time.Minute)
		letters[0].ReplayedAt = f.now
		f.requeue(id)
		_, err := f.s.DeadLetter(f.ctx, f.tenant, id)
		f.is(err, store.ErrNotFound)
		same(t, "open ones", list(false, 10), []godwit.DeadLetter{untouched})
		same(t, "with those replayed", list(true, 10), append(letters[:len(letters):len(letters)], untouched))
		letters = append([]godwit.DeadLetter{die()}, letters...)
		same(t, "the open one", got(f.s.DeadLetter(f.ctx, f.tenant, id))(t), &letters[0])
	}
	same(t, "open ones", list(false, 10), []godwit.DeadLetter{letters[0], untouched})
	for _, limit := range []int{1, 2, 10} { // no page boundary loses an entry
		same(t, "with those replayed", list(true, limit), append(letters[:3:3], untouched))
	}
	f.requeue(id)
	f.finish(godwit.DeliveryAccepted)
	if open := list(false, 10); len(open) != 1 || open[0].Delivery.ID != older {
		t.Errorf("open after all: %+v", open)
	}
	d := f.delivery(id)
	if d.Status != godwit.DeliveryAccepted || d.Attempts != 4 {
		t.Errorf("delivery after all: %+v", d)
	}
}

// An old dead letter does not give the final state of a delivery that was accepted later and then swept.
func deadLetterExpires(t *testing.T, f *fixture) {
	id := f.acceptOne()
	f.finish(godwit.DeliveryTerminal)
	first := f.now
	f.tick(time.Hour)
	f.requeue(id)
	f.finish(godwit.DeliveryTerminal)
	swept := f.sweepAll(store.Sweep{DeadLettersBefore: first.Add(time.Minute)})
	if swept.DeadLetters != 1 {
		t.Errorf("swept %d dead letters, want the replayed one", swept.DeadLetters)
	}
	filter := store.DeadLetterFilter{TenantID: f.tenant, Replayed: true}
	left := got(f.s.ListDeadLetters(f.ctx, filter, store.Page{Limit: 10}))(t)
	if len(left) != 1 || !left[0].DeadAt.Equal(f.now) || !left[0].ReplayedAt.IsZero() {
		t.Errorf("left is %+v", left)
	}
	f.tick(time.Hour)
	f.requeue(id)
	f.finish(godwit.DeliveryAccepted)
	f.tick(24 * time.Hour)
	f.sweepAll(store.Sweep{EventsBefore: f.now.Add(-time.Hour)})
	_, err := f.s.Delivery(f.ctx, f.tenant, id)
	f.is(err, store.ErrNotFound)
	if as := got(f.s.Attempts(f.ctx, f.tenant, id))(t); len(as) != 3 || as[2].EndpointID != f.endpoint { // the attempts of the dead letter
		t.Errorf("attempts of what a replayed dead letter is left of: %+v", as)
	}
	if again := f.requeue(id); len(again) != 0 {
		t.Errorf("requeued from a dead letter that was replayed: %+v", again)
	}
}

func deadLetterEvent(t *testing.T, f *fixture) {
	e := f.makeEvent()
	e.Format, e.SourceID, e.OccurredAt = godwit.FormatCybercube, "evt_theirs", f.now.Add(-time.Hour)
	e.Attributes = map[string]string{"a": "b"}
	for name, brought := range map[string]*godwit.Event{"brought": e, "taken from the store": nil} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			e.ID = mint[godwit.EventID](f.tick(time.Second))
			n := f.fanOut(e, f.endpoint)
			f.accept(n)
			r := f.attempted(f.claimOne(f.endpoint), godwit.DeliveryTerminal)
			r.Event = brought
			f.record(r)
			same(t, "event", got(f.s.DeadLetter(f.ctx, f.tenant, n.Deliveries[0].ID))(t).Event, e)
			f.tick(24 * time.Hour)
			f.sweepAll(store.Sweep{EventsBefore: f.now})
			f.stored(e.ID, false)
			f.requeue(n.Deliveries[0].ID)
			same(t, "restored event", got(f.s.Event(f.ctx, f.tenant, e.ID))(t), e)
			same(t, "claimed event", f.claimOne(f.endpoint).Event, e)
		})
	}
}
