package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var eventRangeCases = []testCase{
	{"oldest first, whole and narrowed", eventRangeList},
	{"by the time they happened", eventRangeTime},
	{"is bounded by bytes", eventRangeBytes},
	{"belongs to its tenant", eventRangeTenant},
}

func eventsAfter(f *fixture, r store.EventRange) []godwit.Event {
	f.t.Helper()
	r.TenantID = f.tenant
	if r.Limit == 0 {
		r.Limit = 100
	}
	return got(f.s.EventsAfter(f.ctx, r))(f.t)
}

func sameEvents(f *fixture, t *testing.T, what string, found, want []godwit.Event) {
	t.Helper()
	if len(found) != len(want) {
		t.Fatalf("%s: %d events, want %d", what, len(found), len(want))
	}
	for i := range want {
		if len(found[i].Body) == 0 && len(want[i].Body) == 0 {
			found[i].Body = want[i].Body // nil and empty are the same body
		}
		same(t, what, found[i], want[i])
	}
}

func eventRangeList(t *testing.T, f *fixture) {
	types := []string{"order.paid", "order.item.added", "order", "orders.paid", "invoice.paid", "godwit.test", "order_.x", "order.%"}
	var all []godwit.Event
	for i := range 16 {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Type, e.Attributes = types[i%len(types)], map[string]string{"i": "x"}
		e.Format = []string{godwit.FormatRaw, godwit.FormatOJS, godwit.FormatCybercube}[i%3]
		if i%2 == 0 {
			e.SourceID = "their-" + strings.Repeat("i", i)
		}
		e.Body = []byte{byte(i), 0, 0xff}
		f.accept(f.fanOut(e, f.endpoint))
		all = append(all, *e)
	}
	for name, c := range map[string]struct {
		ask  store.EventRange
		keep func(i int, e *godwit.Event) bool
	}{
		"all":     {store.EventRange{}, func(int, *godwit.Event) bool { return true }},
		"after":   {store.EventRange{After: all[3].ID}, func(i int, _ *godwit.Event) bool { return i > 3 }},
		"before":  {store.EventRange{Before: all[3].ID}, func(i int, _ *godwit.Event) bool { return i < 3 }},
		"between": {store.EventRange{After: all[2].ID, Before: all[9].ID}, func(i int, _ *godwit.Event) bool { return i > 2 && i < 9 }},
		"nothing": {store.EventRange{After: all[15].ID}, func(int, *godwit.Event) bool { return false }},
		"type":    {store.EventRange{Patterns: []string{"order.paid"}}, func(_ int, e *godwit.Event) bool { return e.Type == "order.paid" }},
		"pattern": {store.EventRange{Patterns: []string{"order.*"}}, func(_ int, e *godwit.Event) bool {
			return godwit.MatchPattern("order.*", e.Type)
		}},
		"several": {store.EventRange{Patterns: []string{"invoice.paid", "order_.*", "order.item.*", "none"}}, func(_ int, e *godwit.Event) bool {
			return e.Type == "invoice.paid" || e.Type == "order_.x" || e.Type == "order.item.added"
		}},
		"everything": {store.EventRange{Patterns: []string{"order", "*"}}, func(int, *godwit.Event) bool { return true }},
		"together": {store.EventRange{After: all[8].ID, Patterns: []string{"order.*"}}, func(i int, e *godwit.Event) bool {
			return i > 8 && godwit.MatchPattern("order.*", e.Type)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []godwit.Event
			for i := range all {
				if c.keep(i, &all[i]) {
					want = append(want, all[i])
				}
			}
			f := f.in(t)
			sameEvents(f, t, "events", eventsAfter(f, c.ask), want)
			var paged []godwit.Event
			c.ask.Limit = 2
			for {
				page := eventsAfter(f, c.ask)
				paged = append(paged, page...)
				if len(page) < 2 {
					break
				}
				c.ask.After = page[1].ID
			}
			sameEvents(f, t, "events in pages", paged, want)
		})
	}
}

// An event's own time differs from its arrival: it may arrive late, or be dated ahead.
func eventRangeTime(t *testing.T, f *fixture) {
	var all []godwit.Event
	for i := range 8 {
		f.tick(time.Minute)
		e := f.makeEvent()
		if i%2 == 0 {
			e.OccurredAt = base.Add(time.Duration(7-i) * 24 * time.Hour)
		}
		f.accept(f.fanOut(e))
		all = append(all, *e)
	}
	for name, bounds := range map[string][2]time.Time{
		"since an acceptance":    {all[3].CreatedAt, {}},
		"until an acceptance":    {{}, all[3].CreatedAt},
		"since it happened":      {all[2].OccurredAt, {}},
		"until it happened":      {{}, all[2].OccurredAt},
		"exactly then":           {all[4].OccurredAt, all[4].OccurredAt},
		"between":                {all[5].CreatedAt, all[4].OccurredAt},
		"the wrong way round":    {all[0].OccurredAt, all[1].CreatedAt},
		"a microsecond too late": {all[0].OccurredAt.Add(time.Microsecond), {}},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			since, until := bounds[0], bounds[1]
			want := slices.DeleteFunc(slices.Clone(all), func(e godwit.Event) bool {
				return !since.IsZero() && e.Time().Before(since) || !until.IsZero() && e.Time().After(until)
			})
			sameEvents(f, t, "events", eventsAfter(f, store.EventRange{Since: since, Until: until}), want)
		})
	}
}

func eventRangeBytes(t *testing.T, f *fixture) {
	var all []godwit.Event
	for _, size := range []int{1000, 10, 20, 30, 0, 5000} {
		f.tick(time.Second)
		e := f.makeEvent()
		e.Body = slices.Repeat([]byte("x"), size)
		f.accept(f.fanOut(e))
		all = append(all, *e)
	}
	for _, c := range []struct{ after, bytes, limit, want int }{
		{0, 0, 100, 5},      // no bound
		{0, 1, 100, 1},      // at least one is returned
		{0, 10, 100, 1},     // exactly the bound
		{0, 59, 100, 2},     // the third would exceed the bound
		{0, 60, 100, 4},     // an empty one still fits
		{0, 60, 3, 3},       // the smaller bound applies
		{4, 100, 100, 1},    // a large one, alone
		{0, 1 << 30, 2, 2},  // more than there are
		{5, 1 << 30, 10, 0}, // none are left
	} {
		found := eventsAfter(f, store.EventRange{After: all[c.after].ID, MaxBytes: c.bytes, Limit: c.limit})
		sameEvents(f, t, "events", found, all[c.after+1:c.after+1+c.want])
	}
}

func eventRangeTenant(t *testing.T, f *fixture) {
	f.acceptOne()
	stranger := f.newTenant()
	for _, r := range []store.EventRange{{}, {Patterns: []string{"*"}}, {Since: base}} {
		r.TenantID, r.Limit = stranger, 10
		if es := got(f.s.EventsAfter(f.ctx, r))(t); len(es) != 0 {
			t.Errorf("a stranger reads %v", es)
		}
	}
}
