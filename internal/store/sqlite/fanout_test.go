package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Each part of a fan-out writes its own deliveries and not those of earlier parts: the event's row stays as it was.
func TestPartsDoNotRewriteTheEvent(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	tenant := godwit.NewTenantID(now)
	event := &godwit.Event{ID: godwit.NewEventID(now), TenantID: tenant, Type: "a.b", Key: "k", CreatedAt: now}
	const parts, each = 5, 100
	f := store.Fanout{TenantID: tenant, Events: []godwit.EventID{event.ID}, Trigger: godwit.TriggerAccept}
	for range parts * each {
		f.Endpoints = append(f.Endpoints, godwit.NewEndpointID(now))
	}
	commit := func(b *store.Batch) {
		t.Helper()
		b.Now = now
		if out, err := s.Commit(ctx, b); err != nil || len(out.Moved) > 0 {
			t.Fatalf("commit: %+v, %v", out, err)
		}
	}
	commit(&store.Batch{Accepts: []store.Accept{{Events: []store.NewEvent{{Event: event}}}}, Fanouts: []store.Fanout{f}})
	for i := range parts {
		added := store.NewEvent{Event: event}
		for _, id := range f.Endpoints[i*each : (i+1)*each] {
			added.Deliveries = append(added.Deliveries, store.NewDelivery{ID: godwit.NewDeliveryID(now), EndpointID: id, Trigger: f.Trigger})
		}
		commit(&store.Batch{Accepts: []store.Accept{{
			Part: &store.FanoutPart{ID: f.ID(), From: i * each, To: (i + 1) * each, Last: i == parts-1}, Events: []store.NewEvent{added},
		}}})
	}
	var own, largest, rowsOfParts int64
	err = s.leases.read(ctx, "measure", func(c *conn) error {
		if _, err := c.one(ctx, "SELECT length(deliveries) FROM events", nil, func(r *rows) { own = r.int(0) }); err != nil {
			return err
		}
		_, err := c.one(ctx, "SELECT count(*), max(length(deliveries)) FROM event_parts", nil, func(r *rows) { rowsOfParts, largest = r.int(0), r.int(1) })
		return err
	})
	if err != nil || own != 0 || rowsOfParts != parts || largest > each*50 {
		t.Errorf("the event's row has %d bytes of deliveries; %d parts of up to %d bytes; %v", own, rowsOfParts, largest, err)
	}
	seen := map[godwit.EndpointID]bool{}
	page := store.Page{Limit: 70}
	for {
		list, err := s.ListDeliveries(ctx, store.DeliveryFilter{TenantID: tenant, EventID: event.ID}, page)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			seen[list[i].EndpointID] = true
		}
		if len(list) < page.Limit {
			break
		}
		page.After = list[len(list)-1].ID
	}
	if len(seen) != parts*each {
		t.Errorf("%d of %d deliveries are listed", len(seen), parts*each)
	}
	for more := true; more; {
		swept, err := s.Sweep(context.Background(), store.Sweep{Now: now.Add(time.Hour), EventsBefore: now.Add(time.Hour), Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		more = swept.More
	}
	var left int64
	err = s.leases.read(ctx, "count", func(c *conn) error {
		_, err := c.one(ctx, "SELECT (SELECT count(*) FROM event_parts) + (SELECT count(*) FROM events) + (SELECT count(*) FROM deliveries)", nil, func(r *rows) { left = r.int(0) })
		return err
	})
	if err != nil || left != 0 {
		t.Errorf("%d rows are left after the sweep, %v", left, err)
	}
}
