package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// Deliveries of a deleted endpoint end soon: those in memory, those in the store, and those in flight once they have failed.
func TestDeletedEndpointsDeliveriesAreCancelled(t *testing.T) {
	trace.Covers(t, "OJS-API-10")
	hands := clock.NewManual(start)
	cancelled := make(chan struct{}, 64)
	s := &tampered{
		commit: func(b *store.Batch, commit func() (*store.Committed, error)) (*store.Committed, error) {
			committed, err := commit()
			for i := range b.Results {
				if b.Results[i].Delivery.Status == godwit.DeliveryCancelled {
					cancelled <- struct{}{}
				}
			}
			return committed, err
		},
		sweep: func(sweep func() (*store.Swept, error)) (*store.Swept, error) {
			swept, err := sweep()
			if err == nil && swept.Cancelled > 0 {
				cancelled <- struct{}{}
			}
			return swept, err
		},
	}
	srv := boot(t, s, hands, punctual)
	sink := apptest.NewSink(t)
	gate := make(chan struct{})
	sink.Script("/", apptest.Status(500), apptest.Status(500).Until(gate))
	ep := srv.Endpoint(sink.URL("/"), apptest.Fields{"profile": "ojs", "patterns": []string{"job.*"}, "policy": map[string]any{"concurrency": 1}})
	ids := []godwit.EventID{srv.Publish("job.done", `{}`)}
	srv.WaitAttempts(ids[0], ep, 1) // the delivery waits in the store
	for n := range 3 {
		ids = append(ids, srv.Publish("job.done", fmt.Sprint(n))) // one is in flight, two are in memory
	}
	sink.Wait(2)
	must(t, deleteEndpoint(srv.App.Management(), srv.App.Store(), srv.Tenant, ep.ID))
	for range 3 {
		await(t, "those that wait", cancelled)
	}
	close(gate)
	await(t, "the one on the wire", cancelled)
	for i, id := range ids {
		d := srv.Delivery(id, ep)
		if d.Status != godwit.DeliveryCancelled || d.Reason != godwit.ReasonEndpointDeleted || d.Attempts != []int{1, 1, 0, 0}[i] {
			t.Errorf("delivery %d: %+v", i, d)
		}
	}
	hands.Advance(48 * time.Hour)
	must(t, srv.Stop())
	if n := len(sink.Requests("/")); n != 2 {
		t.Errorf("%d requests", n)
	}
}
