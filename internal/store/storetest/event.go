package storetest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var eventCases = []testCase{
	{"list, filtered and paged", eventList},
	{"belongs to its tenant", eventTenant},
	{"scan", eventScan},
}

func eventList(t *testing.T, f *fixture) {
	types := []string{"order.paid", "order.item.added", "order", "orders.paid", "invoice.paid", "ORDER.paid", "order_.x", "order.%"}
	var all []godwit.Event
	for i := range 16 {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Type = types[i%len(types)]
		e.Key = []string{"a", "b", "' OR 1=1 --"}[i%3]
		e.Attributes = map[string]string{"i": e.Type}
		f.accept(f.fanOut(e))
		bare := *e
		bare.Body = nil
		all = append(all, bare)
	}
	for name, c := range map[string]struct {
		filter store.EventFilter
		keep   func(e *godwit.Event) bool
	}{
		"all":     {store.EventFilter{}, func(*godwit.Event) bool { return true }},
		"type":    {store.EventFilter{Type: "order.paid"}, func(e *godwit.Event) bool { return e.Type == "order.paid" }},
		"pattern": {store.EventFilter{Type: "order.*"}, func(e *godwit.Event) bool { return godwit.MatchPattern("order.*", e.Type) }},
		"deep pattern": {store.EventFilter{Type: "order.item.*"}, func(e *godwit.Event) bool {
			return godwit.MatchPattern("order.item.*", e.Type)
		}},
		"underscore pattern": {store.EventFilter{Type: "order_.*"}, func(e *godwit.Event) bool {
			return godwit.MatchPattern("order_.*", e.Type)
		}},
		"key":        {store.EventFilter{Key: "b"}, func(e *godwit.Event) bool { return e.Key == "b" }},
		"odd key":    {store.EventFilter{Key: "' OR 1=1 --"}, func(e *godwit.Event) bool { return e.Key == "' OR 1=1 --" }},
		"since":      {store.EventFilter{Since: all[5].CreatedAt}, func(e *godwit.Event) bool { return !e.CreatedAt.Before(all[5].CreatedAt) }},
		"until":      {store.EventFilter{Until: all[5].CreatedAt}, func(e *godwit.Event) bool { return e.CreatedAt.Before(all[5].CreatedAt) }},
		"no such":    {store.EventFilter{Type: "none"}, func(*godwit.Event) bool { return false }},
		"everything": {store.EventFilter{Type: "*"}, func(*godwit.Event) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			var want []godwit.Event
			for i := len(all) - 1; i >= 0; i-- {
				if c.keep(&all[i]) {
					want = append(want, all[i])
				}
			}
			c.filter.TenantID = f.tenant
			found := pages(t, func(e *godwit.Event) [16]byte { return e.ID }, func(p store.Page) ([]godwit.Event, error) {
				return f.s.ListEvents(f.ctx, c.filter, p)
			})
			same(t, "events", found, want)
		})
	}
}

func eventTenant(t *testing.T, f *fixture) {
	e := f.makeEvent()
	f.accept(f.fanOut(e))
	stranger := f.newTenant()
	_, err := f.s.Event(f.ctx, stranger, e.ID)
	f.is(err, store.ErrNotFound)
	for _, filter := range []store.EventFilter{{}, {Type: e.Type}, {Type: "order.*"}, {Key: e.Key}} {
		filter.TenantID = stranger
		if es := got(f.s.ListEvents(f.ctx, filter, store.Page{Limit: 5}))(t); len(es) != 0 {
			t.Errorf("a stranger lists %v", es)
		}
	}
	_, err = f.s.Event(f.ctx, f.tenant, mint[godwit.EventID](f.now))
	f.is(err, store.ErrNotFound)
}

func eventScan(t *testing.T, f *fixture) {
	var all []*godwit.Event
	for i := range 6 {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Type = []string{"order.paid", "order.item.added", "orders.paid"}[i%3]
		if i == 4 {
			e.Attributes, e.Origin = map[string]string{"country": "de"}, godwit.Origin{Source: mint[godwit.SourceID](f.now)}
		}
		f.accept(f.fanOut(e))
		all = append([]*godwit.Event{e}, all...)
	}
	scan := func(s store.EventScan, most int) (found []store.ScannedEvent) {
		t.Helper()
		if s.TenantID.IsZero() {
			s.TenantID = f.tenant
		}
		f.must(f.s.ScanEvents(f.ctx, s, func(e *store.ScannedEvent) bool {
			own := *e
			own.Key, own.Attributes, own.Carried, own.Body = bytes.Clone(e.Key), bytes.Clone(e.Attributes), bytes.Clone(e.Carried), bytes.Clone(e.Body)
			found = append(found, own)
			return len(found) < most
		}))
		return found
	}
	whole := scan(store.EventScan{Limit: 9, Bodies: true, Carried: true}, 9)
	same(t, "events", len(whole), len(all))
	for i, e := range all {
		w := whole[i]
		if w.ID != e.ID || w.Type != e.Type || string(w.Key) != e.Key || !w.CreatedAt.Equal(e.CreatedAt) || !bytes.Equal(w.Body, e.Body) || (len(w.Carried) > 0) != (e.Attributes["country"] == "de") {
			t.Errorf("event %d: %+v, want %+v", i, w, e)
		}
	}
	var attributes map[string]string
	f.must(json.Unmarshal(whole[1].Attributes, &attributes))
	same(t, "attributes", attributes["country"], "de")
	for i, e := range scan(store.EventScan{Limit: 9, Bodies: true, Type: "order.*"}, 9) {
		if (len(e.Body) > 0) != godwit.MatchPattern("order.*", e.Type) && e.Type != "orders.paid" || e.Type == "orders.paid" && e.Body != nil || len(e.Carried) > 0 {
			t.Errorf("event %d of %s has the body %q", i, e.Type, e.Body)
		}
	}
	for i, e := range scan(store.EventScan{Limit: 9}, 9) {
		if len(e.Body) > 0 {
			t.Errorf("event %d has a body that was not asked for", i)
		}
	}
	same(t, "a part", scan(store.EventScan{After: all[1].ID, Limit: 2}, 9)[1].ID, all[3].ID)
	same(t, "stopped", len(scan(store.EventScan{Limit: 9}, 2)), 2)
	same(t, "between", len(scan(store.EventScan{Since: all[3].CreatedAt, Until: all[1].CreatedAt, Limit: 9}, 9)), 2)
	same(t, "a stranger's", len(scan(store.EventScan{TenantID: f.newTenant(), Limit: 9}, 9)), 0)
}
