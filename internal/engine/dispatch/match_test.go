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
