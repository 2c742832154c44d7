package storetest

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/stats"
	"github.com/godwit-hq/godwit/internal/store"
)

// RunStatsAside tests that log rows that cannot be decoded do not stop the fold. insert stores a row as a commit does.
func RunStatsAside(t *testing.T, open Open, insert func(s store.Store, row []byte)) {
	f := newFixture(t, open)
	f.accept(store.NewEvent{Event: f.makeEvent()})
	insert(f.s, []byte("from a later release"))
	f.accept(store.NewEvent{Event: f.makeEvent()})
	count := func(what string, want int64) {
		t.Helper()
		f.counted(what, stats.Selection{Kind: stats.OfServer}, stats.Counts{Events: want})
	}
	count("log", 2)
	aside := func(fold store.StatsFold) (rows int) {
		t.Helper()
		for more := true; more; fold.Aside = false {
			step := got(f.s.FoldStats(f.ctx, fold))(t)
			rows, more = rows+step.Aside, step.More
		}
		return rows
	}
	same(t, "set aside", aside(store.StatsFold{Apply: true}), 1)
	count("folded", 2)
	same(t, "set aside again", aside(store.StatsFold{Apply: true}), 0)
	f.accept(store.NewEvent{Event: f.makeEvent()})
	same(t, "tried by a process that starts", aside(store.StatsFold{Apply: true, Aside: true}), 1)
	count("folded beside it", 3)
	same(t, "left alone afterwards", aside(store.StatsFold{Apply: true}), 0)
}
