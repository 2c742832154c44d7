package cybercube

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

type replayedView struct {
	EventID    string `json:"event_id"`
	EndpointID string `json:"endpoint_id"`
	Queued     int    `json:"queued"`
}

type rangeView struct {
	ReplayID string `json:"replay_id"`
	Queued   int    `json:"queued"`
	HasMore  bool   `json:"has_more"`
}

// replayHandlers send events again.
type replayHandlers struct {
	events interface {
		Event(ctx context.Context, tenant godwit.TenantID, text string, origins ...string) (*godwit.Event, error)
	}
	store interface {
		ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error)
	}
	engine interface {
		Replay(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, actor string) ([]godwit.Delivery, error)
		ReplayTo(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (int, error)
	}
	commands interface {
		ReplayEvents(ctx context.Context, r builtincommand.Request, id godwit.EndpointID, since, until time.Time, types []string, limit int) (queued int, more bool, err error)
	}
	api    *httpapi.API
	finder endpointFinder
	limit  *budget
	now    func() time.Time
	kept   func(*godwit.Tenant) time.Duration // how long events are kept
	log    *slog.Logger
}

// event sends an event to an endpoint again, or for the first time if it never went there (CCW-API-20).
func (h *replayHandlers) event(c *httpapi.Call) error {
	f, err := readForm(c.Body, "endpoint_id")
	if err != nil {
		return err
	}
	e, err := h.target(c, f)
	if err != nil {
		return err
	}
	found, err := h.find(c.R.Context(), c.Caller.Tenant, e.ID, c.R.PathValue("id"))
	if err != nil {
		return err
	}
	giveBack, err := h.limit.take(c.R.Context(), c.W.Header(), c.Tenant())
	if err != nil {
		return err
	}
	queued, err := h.sendAgain(c, e, found)
	if err != nil {
		giveBack()
		return err
	}
	return answer(c, http.StatusAccepted, replayedView{EventID: profile.CybercubeEventID(found.Event), EndpointID: publicID(e), Queued: queued})
}

// target returns the endpoint of a replay.
func (h *replayHandlers) target(c *httpapi.Call, f *form) (*godwit.Endpoint, error) {
	f.required("endpoint_id")
	id := f.text("endpoint_id")
	if err := f.err(); err != nil {
		return nil, err
	}
	e, err := h.finder.endpoint(c.R.Context(), c.Tenant(), id)
	if err != nil {
		return nil, err
	}
	if e.Status == godwit.EndpointDisabled {
		return nil, problem.Conflict.With("the endpoint is disabled: set its status to active first")
	}
	return e, nil
}

// find returns an event. If the event has expired, find looks for a dead letter that still holds it.
func (h *replayHandlers) find(ctx context.Context, tenant *godwit.Tenant, endpoint godwit.EndpointID, id string) (*godwit.DeadLetter, error) {
	event, err := h.events.Event(ctx, tenant.ID, id, origin)
	if err == nil {
		return &godwit.DeadLetter{Event: event}, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	var before func(time.Time) godwit.DeliveryID = godwit.FirstIDAt
	oldest := h.now().Add(time.Hour - h.kept(tenant))
	filter := store.DeadLetterFilter{TenantID: tenant.ID, EndpointID: endpoint}
	page := store.Page{After: before(oldest), Limit: 200}
	for {
		letters, err := h.store.ListDeadLetters(ctx, filter, page)
		if err != nil {
			return nil, err
		}
		for i := range letters {
			if e := letters[i].Event; profile.CybercubeEventID(e) == id || e.ID.String() == id {
				return &letters[i], nil
			}
		}
		if len(letters) < page.Limit {
			return nil, problem.NotFound.With("there is no such event")
		}
		page.After = letters[len(letters)-1].Delivery.ID
	}
}

func (h *replayHandlers) sendAgain(c *httpapi.Call, e *godwit.Endpoint, found *godwit.DeadLetter) (int, error) {
	ctx, actor := c.R.Context(), c.Caller.Actor()
	if found.Delivery.ID.IsZero() {
		return h.engine.ReplayTo(ctx, c.Tenant(), e.ID, []godwit.Event{*found.Event}, actor)
	}
	made, err := h.engine.Replay(ctx, c.Tenant(), []godwit.DeliveryID{found.Delivery.ID}, actor)
	return len(made), err
}

// maxReplay bounds the events that one request replays (CCW-API-22).
const maxReplay = 1000

// period sends the account's events of a time range to an endpoint, oldest first, including events that never went to
// it (CCW-API-21).
func (h *replayHandlers) period(c *httpapi.Call) error {
	f, err := readForm(c.Body, "endpoint_id", "start_time", "end_time", "event_types")
	if err != nil {
		return err
	}
	events := f.eventRange()
	e, err := h.target(c, f)
	if err != nil {
		return err
	}
	giveBack, err := h.limit.take(c.R.Context(), c.W.Header(), c.Tenant())
	if err != nil {
		return err
	}
	v := rangeView{ReplayID: newReplayID()}
	v.Queued, v.HasMore, err = h.commands.ReplayEvents(c.R.Context(), h.api.CommandRequest(c.R, c.Caller), e.ID, events.Since, events.Until, events.Patterns, maxReplay)
	if err != nil {
		if v.Queued == 0 {
			giveBack()
		}
		return err
	}
	h.log.Info("events replayed", "replay", v.ReplayID, "tenant", c.Tenant().String(), "endpoint", e.ID.String(),
		"actor", c.Caller.Actor(), "queued", v.Queued, "more", v.HasMore)
	return answer(c, http.StatusAccepted, v)
}

// eventRange reads the range of events to replay.
func (f *form) eventRange() store.EventRange {
	f.required("start_time", "end_time")
	r := store.EventRange{Since: f.time("start_time"), Until: f.time("end_time"), Patterns: f.texts("event_types")}
	if len(f.errs) == 0 && r.Until.Before(r.Since) {
		f.wrong("end_time", "must not be before start_time")
	}
	if f.has("event_types") && !f.null("event_types") && len(r.Patterns) == 0 {
		f.wrong("event_types", "must name at least one type or pattern; leave it out for all")
	}
	if len(r.Patterns) > maxPatterns {
		f.wrong("event_types", "must have at most %d", maxPatterns)
	}
	for i, p := range r.Patterns {
		if why := godwit.ValidPattern(p); why != "" {
			f.wrong(fmt.Sprintf("event_types[%d]", i), "%s", why)
		}
	}
	// Events show their time to the second, so the range includes the whole of its last second.
	if r.Until.Equal(r.Until.Truncate(time.Second)) {
		r.Until = r.Until.Add(time.Second - time.Microsecond)
	}
	return r
}

const maxPatterns = 100

func newReplayID() string {
	var b [12]byte
	godwit.Random(b[:])
	return "rpl_" + hex.EncodeToString(b[:])
}
