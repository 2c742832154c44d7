package commit

import (
	"time"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// milestone adds evidence of the end of a delivery whose event a command emitted: whether the command's effect has reached the
// receiver. It is stored with the result.
func milestone(b *store.Batch, i int, event *godwit.Event, now time.Time) {
	if event == nil || event.CommandID == "" {
		return
	}
	d := &b.Results[i].Delivery
	entry := evidence.Entry{
		Type: evidence.Delivered, At: now, CommandID: event.CommandID, SubmittedID: event.CommandID, EventID: event.ID.String(),
		DeliveryID: d.ID.String(), EndpointID: d.EndpointID.String(), ResponseStatus: d.LastStatus, OutcomeStatus: string(d.Status),
	}
	switch {
	case d.Status == godwit.DeliveryAccepted:
	case d.Status.Dead():
		entry.Type, entry.Reason = evidence.Dead, string(d.Reason)
	default:
		return
	}
	b.Evidence = append(b.Evidence, store.NewEvidence{TenantID: d.TenantID, Result: i, Entry: entry})
}
