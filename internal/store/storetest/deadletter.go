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
	f.finish(godwit.DeliveryAccepted) // is none
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
