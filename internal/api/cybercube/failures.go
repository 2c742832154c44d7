package cybercube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// failureView is a dead letter: the event, the reason of the failure, the attempts, and how to replay it (CCW-API-24).
type failureView struct {
	Event      json.RawMessage `json:"event"`
	Reason     string          `json:"failure_reason"`
	Attempts   []attemptView   `json:"attempts"`
	CreatedAt  string          `json:"created_at"`
	ExpiresAt  string          `json:"expires_at"`
	ReplayedAt string          `json:"replayed_at,omitempty"`
	Replay     replayOption    `json:"replay"`
}

// attemptView is an entry of the standard's attempts_summary (CCW-DLQ-9).
type attemptView struct {
	Attempt        int    `json:"attempt"`
	DeliveryID     string `json:"delivery_id"`
	At             string `json:"at"`
	ResponseStatus int    `json:"response_status,omitempty"`
	ResponseTimeMS int64  `json:"response_time_ms"`
	Error          string `json:"error,omitempty"`
}

type replayOption struct {
	Method string            `json:"method"`
	Href   string            `json:"href"`
	Body   map[string]string `json:"body"`
}

// failureHandlers serve an endpoint's dead letters.
type failureHandlers struct {
	views  *failureViews
	export *failureExport
	finder endpointFinder
}

// list lists an endpoint's dead letters, including replayed ones, or exports all of them.
func (h *failureHandlers) list(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	p, err := query(c.R.URL, "format", "limit", "cursor")
	if err != nil {
		return err
	}
	page := p.page()
	format := p.values.Get("format")
	switch {
	case format == "ndjson" && (p.values.Has("limit") || p.values.Has("cursor")):
		p.wrong("format", "ndjson is the whole list: it has no limit and no cursor")
	case p.values.Has("format") && format != "ndjson" && format != "json":
		p.wrong("format", "must be json or ndjson")
	}
	if err := p.err(); err != nil {
		return err
	}
	if format == "ndjson" {
		return h.export.serve(c, e)
	}
	entries, next, err := h.views.page(c, e, page)
	if err != nil {
		return err
	}
	writeJSON(c.W, c.R, http.StatusOK, paged(c, p, entries, next))
	return nil
}

// failureViews read dead letters and render them with their attempts.
type failureViews struct {
	store interface {
		ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error)
		Attempts(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) ([]godwit.Attempt, error)
	}
	kept       func(*godwit.Tenant) time.Duration // how long dead letters are kept
	maxPayload int64
}

// failureMemory bounds the event bytes that are in memory at once.
const failureMemory = 8 << 20

// atOnce returns how many dead letters to read at once.
func (v *failureViews) atOnce(limit int) int {
	return int(max(1, min(int64(limit), failureMemory/v.maxPayload)))
}

// page reads a page of dead letters. The page is shorter than the limit if the events are large.
func (v *failureViews) page(c *httpapi.Call, e *godwit.Endpoint, page store.Page) (entries []failureView, next string, err error) {
	entries = []failureView{}
	for size := 0; len(entries) < page.Limit && size < failureMemory; {
		letters, err := v.deadLetters(c, e, store.Page{After: page.After, Limit: v.atOnce(page.Limit - len(entries))}, true)
		if err != nil || len(letters) == 0 {
			return entries, "", err
		}
		for i := range letters {
			view, err := v.failure(c.R.Context(), c.Caller.Tenant, e, &letters[i])
			if err != nil {
				return nil, "", err
			}
			size += len(view.Event)
			entries = append(entries, *view)
		}
		page.After = letters[len(letters)-1].Delivery.ID
	}
	more, err := v.deadLetters(c, e, store.Page{After: page.After, Limit: 1}, false)
	if err != nil || len(more) == 0 {
		return entries, "", err
	}
	return entries, cursor(page.After), nil
}

func (v *failureViews) deadLetters(c *httpapi.Call, e *godwit.Endpoint, p store.Page, withBody bool) ([]godwit.DeadLetter, error) {
	return v.store.ListDeadLetters(c.R.Context(),
		store.DeadLetterFilter{TenantID: c.Tenant(), EndpointID: e.ID, Replayed: true, WithBody: withBody}, p)
}

// failure shows a dead letter with the attempts of its run.
func (v *failureViews) failure(ctx context.Context, t *godwit.Tenant, e *godwit.Endpoint, l *godwit.DeadLetter) (*failureView, error) {
	event, err := shown(t, e, l)
	if err != nil {
		return nil, err
	}
	attempts, err := v.store.Attempts(ctx, t.ID, l.Delivery.ID)
	if err != nil {
		return nil, err
	}
	last := l.Delivery.Attempts
	before := last - l.Delivery.Run.Attempts // attempts of earlier runs
	view := &failureView{
		Event: event, Attempts: []attemptView{}, CreatedAt: timestamp(l.DeadAt), ReplayedAt: moment(l.ReplayedAt),
		ExpiresAt: timestamp(l.DeadAt.Add(v.kept(t))),
		Replay: replayOption{
			Method: http.MethodPost, Href: Prefix + "events/" + profile.CybercubeEventID(l.Event) + "/replay",
			Body: map[string]string{"endpoint_id": publicID(e)},
		},
	}
	var final *godwit.Attempt
	for i := range attempts {
		a := &attempts[i]
		if a.N <= before || a.N > last {
			continue
		}
		final = a
		view.Attempts = append(view.Attempts, summary(a, a.N-before))
	}
	view.Reason = failureReason(l, final)
	return view, nil
}

// shown renders the event in this dialect, even if the endpoint has another profile.
func shown(t *godwit.Tenant, e *godwit.Endpoint, l *godwit.DeadLetter) (json.RawMessage, error) {
	dialect, err := profile.Lookup(wireProfile)
	if err != nil {
		return nil, err
	}
	_, body := dialect.Render(profile.Message{Event: l.Event, Delivery: &l.Delivery, Endpoint: e, Account: t.Code})
	return body, nil
}

func summary(a *godwit.Attempt, n int) attemptView {
	v := attemptView{Attempt: n, DeliveryID: profile.CybercubeAttemptID(a.ID), At: timestamp(a.StartedAt), ResponseTimeMS: a.Duration.Milliseconds()}
	if !broken(a) {
		v.ResponseStatus = a.Status
	}
	if a.Verdict.Outcome != godwit.Accepted {
		v.Error = errorOf(a)
	}
	return v
}

// failureReason says in one line why a delivery became a dead letter (CCW-DLQ-8). final is the last attempt, or nil if it is
// no longer stored.
func failureReason(l *godwit.DeadLetter, final *godwit.Attempt) string {
	d := &l.Delivery
	if d.Reason == godwit.ReasonRetention {
		return "not delivered within the time that events are kept"
	}
	why := l.LastDetail
	switch {
	case final != nil:
		why = cause(final)
	case d.LastStatus != 0:
		why = fmt.Sprintf("HTTP %d", d.LastStatus)
	case why == "":
		why = string(d.Reason)
	}
	switch n := d.Run.Attempts; {
	case d.Status == godwit.DeliveryTerminal:
		return why + " (not retryable)"
	case n == 1:
		return why + " after 1 attempt"
	default:
		return fmt.Sprintf("%s after %d attempts", why, n)
	}
}
