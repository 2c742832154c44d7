package commit

import (
	"log/slog"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

type fencedClaim struct{ stored, refused int }

func (*fencedClaim) Health() godwit.Health    { return godwit.Health{} }
func (c *fencedClaim) Stored(*Record)         { c.stored++ }
func (c *fencedClaim) Refused(*Record)        { c.refused++ }
func (c *fencedClaim) Dropped(*Record, error) {}

// Results that the store refused are counted.
func TestFencedResultsAreCounted(t *testing.T) {
	counted := 0
	g := New(Config{Log: slog.New(slog.DiscardHandler), Fenced: func(n int) { counted += n }})
	c := &fencedClaim{}
	records := []*Record{{Claim: c}, {Claim: c}, {Claim: c}}
	g.answer(batch{records: records}, &store.Committed{Fenced: []int{0, 2}})
	g.answer(batch{records: records}, &store.Committed{})
	if counted != 2 || c.refused != 2 || c.stored != 4 {
		t.Errorf("%d counted, %d refused, %d stored", counted, c.refused, c.stored)
	}
}
