package dispatch

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine/commit"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// A result is on its way to the store while the clock is set back and the due times in the store are corrected. Its own due time is corrected at the next look.
func TestResultOnItsWayWhileTheClockIsSetBack(t *testing.T) {
	for name, end := range map[string]func(*item, *commit.Record){"stored": (*item).Stored, "stored without an answer": (*item).Refused} {
		hands := clock.NewManual(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		d := newIdle(hands)
		d.cfg.Observer = silent{}
		l := d.bareLane(godwit.Policy{}, 1)
		it := l.window.next()
		r := &commit.Record{}
		r.Result.Delivery = it.Work.Delivery
		r.Result.Delivery.UpdatedAt = hands.Now()
		r.Result.Delivery.Status = godwit.DeliveryAccepted
		d.wall.note(hands.Now())
		hands.Step(-time.Hour)
		if !d.wall.stepped(hands.Now()) || d.wall.stepped(hands.Now()) {
			t.Fatal("a step is seen once")
		}
		end(it, r)
		if !d.wall.stepped(hands.Now()) {
			t.Errorf("%s: its due time is not corrected", name)
		}
	}
}
