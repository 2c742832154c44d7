package commit

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

func TestMilestones(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ours := &godwit.Event{ID: godwit.NewEventID(now), CommandID: "cmd_1"}
	for _, c := range []struct {
		event  *godwit.Event
		status godwit.DeliveryStatus
		want   string
	}{
		{ours, godwit.DeliveryAccepted, evidence.Delivered},
		{ours, godwit.DeliveryTerminal, evidence.Dead},
		{ours, godwit.DeliveryExhausted, evidence.Dead},
		{ours, godwit.DeliveryPending, ""},
		{ours, godwit.DeliveryCancelled, ""},
		{&godwit.Event{ID: ours.ID}, godwit.DeliveryAccepted, ""}, // not of a command
		{nil, godwit.DeliveryAccepted, ""},
	} {
		b := &store.Batch{Results: []store.Result{{Delivery: godwit.Delivery{Status: c.status, LastStatus: 204}}}}
		milestone(b, 0, c.event, now)
		got := ""
		if len(b.Evidence) == 1 {
			got = b.Evidence[0].Entry.Type
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}
