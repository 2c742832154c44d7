package dispatch

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/attempt"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// The index finds each lane once, and the same lanes as a comparison with all patterns would.
func TestMatchIsThatOfThePatterns(t *testing.T) {
	d := newIdle(clock.NewManual(time.Unix(1000, 0)))
	var lanes []*Lane
	for _, patterns := range [][]string{
		{"*"}, {"order"}, {"order.paid"}, {"order.*"}, {"order.item.*"}, {"order.paid", "order.paid"}, {"order.*", "order.paid"},
		{"order.paid", "order.item.*"}, {"order.*", "order.item.*"}, {"order.paid", "invoice.*"}, {"invoice.sent", "order.sent"},
		{"order.paid", "*"}, {"order.item.added", "invoice.*", "invoice.sent"}, {"godwit.alert", "*"}, {"godwit.*"}, nil,
	} {
		l := d.bareLane(godwit.Policy{}, 0)
		l.target.Store(&attempt.Target{Endpoint: godwit.Endpoint{ID: l.id, Status: godwit.EndpointActive, Patterns: patterns}})
		lanes = append(lanes, l)
	}
	d.index.put(lanes...)
	for _, eventType := range []string{
		"order", "order.paid", "order.sent", "order.item", "order.item.added", "invoice", "invoice.sent", "orders.paid", "other", "godwit.alert",
	} {
		found := map[*Lane]int{}
		for _, l := range d.index.match(godwit.TenantID{}, eventType, nil) {
			found[l]++
		}
		for _, l := range lanes {
			m, want := matcher{l, &l.Target().Endpoint}, 0
			if m.selects(eventType, nil, d.index.byNameOnly(eventType)) {
				want = 1
			}
			if found[l] != want {
				t.Errorf("%s: the lane with the patterns %q was found %d times, want %d", eventType, m.endpoint.Patterns, found[l], want)
			}
		}
	}
}

// The index of a small tenant, which has no maps, finds the same lanes, and forgets deleted ones.
func TestMatchOfASmallTenant(t *testing.T) {
	d := newIdle(clock.NewManual(time.Unix(1000, 0)))
	lane := func(status godwit.EndpointStatus, policy *godwit.Policy, patterns ...string) *Lane {
		l := d.bareLane(godwit.Policy{}, 0)
		l.target.Store(&attempt.Target{Endpoint: godwit.Endpoint{ID: l.id, Status: status, Patterns: patterns}, Policy: policy})
		return l
	}
	all, paid := lane(godwit.EndpointActive, nil, "*"), lane(godwit.EndpointActive, nil, "order.paid", "order.*")
	skipping := lane(godwit.EndpointPaused, &godwit.Policy{SkipWhilePaused: true}, "order.paid")
	d.index.put(all, paid, skipping)
	for eventType, want := range map[string]int{"order.paid": 2, "order.sent": 2, "invoice.sent": 1, "godwit.alert": 0} {
		if got := d.index.match(godwit.TenantID{}, eventType, nil); len(got) != want {
			t.Errorf("%s: %d lanes, want %d", eventType, len(got), want)
		}
	}
	all.target.Store(&attempt.Target{Endpoint: godwit.Endpoint{ID: all.id, Status: godwit.EndpointDeleted}})
	d.index.put(all)
	if got := d.index.match(godwit.TenantID{}, "order.paid", nil); len(got) != 1 || got[0] != paid || d.index.lane(all.id) != nil {
		t.Errorf("after a deletion: %d lanes", len(got))
	}
}
