package engine

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Fate is why an endpoint got an event, or did not.
type Fate string

// The fates. Those of events that reached the endpoint come first.
const (
	FateMatched  Fate = "matched"  // its settings select the event
	FateReplayed Fate = "replayed" // its settings do not: a replay or a test named it
	FateChanged  Fate = "changed"  // its settings do not select the event now, or do so only since a change
	FateHeld     Fate = "held"     // the delivery waits because the endpoint is paused or disabled

	FateEventType    Fate = "event-type"
	FateAttribute    Fate = "attribute"
	FateContent      Fate = "content"
	FatePaused       Fate = "paused"        // it skips events while it is paused
	FateCreatedLater Fate = "created-later" // it did not exist yet
	FateDeleted      Fate = "deleted"
	FateUnderWay     Fate = "under-way"  // the delivery is not stored yet: a large fan-out is being stored
	FateNotChosen    Fate = "not-chosen" // the event was for other endpoints only
)

// An Explanation says why an endpoint got an event, or did not.
type Explanation struct {
	Endpoint  *godwit.Endpoint
	Delivery  *godwit.Delivery // nil: there is none
	Fate      Fate
	Judgement dispatch.Judgement // what the endpoint's settings make of the event now; zero if it is deleted
}

// Explain says for each of the tenant's endpoints why it got the event or not. Deliveries tell what happened; the settings as they are now, judged by the
// code that chooses receivers, tell why, unless they were changed since.
func (r *redeliverer) Explain(ctx context.Context, event *godwit.Event, endpoints []godwit.Endpoint) ([]Explanation, error) {
	open, err := r.fanouts.Working(ctx, event.ID) // before the deliveries are read: one that is missing there is still to come
	if err != nil {
		return nil, err
	}
	ids := make([]godwit.EndpointID, len(endpoints))
	for i := range endpoints {
		ids[i] = endpoints[i].ID
	}
	f := store.DeliveryFilter{TenantID: event.TenantID, EventID: event.ID, Endpoints: ids}
	found, err := r.cfg.Store.ListDeliveries(ctx, f, store.Page{Limit: 2 * len(ids)}) // replays of old servers may have added a second one
	if err != nil {
		return nil, err
	}
	byEndpoint := make(map[godwit.EndpointID]*godwit.Delivery, len(found))
	for i := range found {
		byEndpoint[found[i].EndpointID] = &found[i]
	}
	out := make([]Explanation, len(endpoints))
	for i := range endpoints {
		x := &out[i]
		x.Endpoint, x.Delivery = &endpoints[i], byEndpoint[endpoints[i].ID]
		if x.Judgement, err = r.judge(ctx, event, endpoints[i].ID); err != nil {
			return nil, err
		}
		x.Fate = fate(event, x.Endpoint, x.Delivery, &x.Judgement, open)
	}
	return out, nil
}

// Judge says whether an event, which need not be stored, would go to an endpoint of its tenant now.
func (r *redeliverer) Judge(ctx context.Context, event *godwit.Event, id godwit.EndpointID) (dispatch.Judgement, error) {
	return r.judge(ctx, event, id)
}

// judge asks the index that Submit uses. Another node may have created the endpoint just now.
func (r *redeliverer) judge(ctx context.Context, event *godwit.Event, id godwit.EndpointID) (dispatch.Judgement, error) {
	if j, ok := r.lanes.Judge(id, event); ok {
		return j, nil
	}
	if err := r.cfg.Changes.CatchUp(ctx); err != nil {
		return dispatch.Judgement{}, err
	}
	j, _ := r.lanes.Judge(id, event)
	return j, nil
}

func fate(event *godwit.Event, e *godwit.Endpoint, d *godwit.Delivery, j *dispatch.Judgement, open bool) Fate {
	changed := e.UpdatedAt.After(event.CreatedAt)
	if e.Status == godwit.EndpointDeleted {
		return FateDeleted
	}
	if d != nil {
		return fateOfDelivery(e, d, j, changed)
	}
	switch {
	case e.CreatedAt.After(event.CreatedAt):
		return FateCreatedLater
	case j.Verdict == dispatch.SkippedPaused && !e.StatusAt.After(event.CreatedAt), j.Verdict == dispatch.Selected && j.Skips && resumedSince(e, event.CreatedAt):
		return FatePaused
	case j.Verdict == dispatch.OtherType, j.Verdict == dispatch.OwnType:
		return FateEventType
	case j.Verdict == dispatch.OtherValue:
		return FateAttribute
	case j.Verdict == dispatch.OtherContent:
		return FateContent
	case open:
		return FateUnderWay
	case changed:
		return FateChanged
	}
	return FateNotChosen
}

func fateOfDelivery(e *godwit.Endpoint, d *godwit.Delivery, j *dispatch.Judgement, changed bool) Fate {
	held := e.Status == godwit.EndpointPaused || e.Status == godwit.EndpointDisabled
	switch {
	case d.Status == godwit.DeliveryPending && held:
		return FateHeld
	case j.Verdict == dispatch.Selected, j.Verdict == dispatch.SkippedPaused:
		return FateMatched
	case d.Run.Trigger == godwit.TriggerReplay, d.Run.Trigger == godwit.TriggerTest:
		return FateReplayed
	case changed:
		return FateChanged
	}
	return FateReplayed
}

// resumedSince reports whether an active endpoint may have been paused at a time: its status changed since.
func resumedSince(e *godwit.Endpoint, at time.Time) bool {
	return e.Status == godwit.EndpointActive && e.StatusAt.After(at) && e.CreatedAt.Before(e.StatusAt)
}
