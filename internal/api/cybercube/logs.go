package cybercube

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// logEntry is one attempt (CCW-API-26), or one that is still pending.
type logEntry struct {
	ID             string `json:"id,omitempty"` // assigned when the attempt is sent
	EventID        string `json:"event_id"`
	EventType      string `json:"event_type"`
	EndpointID     string `json:"endpoint_id"`
	Attempt        int    `json:"attempt"`
	Status         string `json:"status"`
	HTTPStatus     int    `json:"http_status,omitempty"`
	ResponseTimeMS *int64 `json:"response_time_ms,omitempty"`
	ErrorMessage   string `json:"error_message,omitempty"`
	NextRetryAt    string `json:"next_retry_at,omitempty"`
	CreatedAt      string `json:"created_at"`
}

// The states of an attempt (CCW-API-27).
const (
	statusPending   = "pending"
	statusSuccess   = "success"
	statusFailed    = "failed"
	statusExhausted = "exhausted"
)

// statusOf returns the status of an attempt. It is exhausted for the last attempt of a run that ended because no attempts
// were left (CT-12).
func statusOf(a *godwit.Attempt) string {
	switch {
	case a.Verdict.Outcome == godwit.Accepted:
		return statusSuccess
	case a.Exhausted():
		return statusExhausted
	}
	return statusFailed
}

// The log allows larger pages than other lists.
const (
	logUsual = 50
	logMost  = 100
)

// logHandlers serve the log of attempts.
type logHandlers struct {
	store interface {
		eventReader
		ListAttempts(ctx context.Context, f store.AttemptFilter, limit int) ([]store.LoggedAttempt, error)
		ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error)
	}
	finder endpointFinder
}

// eventReader is the part of the store that single events are read from.
type eventReader interface {
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
}

// list lists the attempts of an endpoint, newest first (CCW-API-25).
func (h *logHandlers) list(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	p, err := query(c.R.URL, "start_time", "end_time", "status", "limit")
	if err != nil {
		return err
	}
	filter := store.AttemptFilter{TenantID: c.Tenant(), EndpointID: e.ID, Since: p.time("start_time"), Until: p.time("end_time")}
	if !filter.Until.IsZero() && filter.Until.Before(filter.Since) {
		p.wrong("end_time", "must not be before start_time")
	}
	if filter.Until.Equal(filter.Until.Truncate(time.Second)) && !filter.Until.IsZero() {
		filter.Until = filter.Until.Add(time.Second - time.Microsecond) // the filter is given to the second, and includes that whole second
	}
	status, limit := p.status(), p.limit(logUsual, logMost)
	if err := p.err(); err != nil {
		return err
	}
	var entries []logEntry
	if status == statusPending {
		entries, err = h.pending(c, e, &filter, limit)
	} else {
		entries, err = h.attempts(c, e, &filter, status, limit)
	}
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, entries)
}

func (p *params) status() string {
	status := p.values.Get("status")
	if p.values.Has("status") && !slices.Contains([]string{statusPending, statusSuccess, statusFailed, statusExhausted}, status) {
		p.wrong("status", "must be pending, success, failed or exhausted")
	}
	return status
}

func (h *logHandlers) attempts(c *httpapi.Call, e *godwit.Endpoint, f *store.AttemptFilter, status string, limit int) ([]logEntry, error) {
	entries, known := []logEntry{}, names{}
	switch status {
	case statusSuccess:
		f.Outcomes = []godwit.Outcome{godwit.Accepted}
	case statusFailed:
		f.Outcomes = []godwit.Outcome{godwit.Transient, godwit.Terminal}
	case statusExhausted:
		f.Outcomes, f.Exhausted = []godwit.Outcome{godwit.Transient}, true
	}
	logged, err := h.store.ListAttempts(c.R.Context(), *f, limit)
	if err != nil {
		return nil, err
	}
	for i := range logged {
		eventID, err := known.of(c.R.Context(), h.store, c.Tenant(), logged[i].Attempt.EventID)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entryOf(e, &logged[i], eventID))
	}
	return entries, nil
}

func entryOf(e *godwit.Endpoint, l *store.LoggedAttempt, eventID string) logEntry {
	a := &l.Attempt
	took := a.Duration.Milliseconds()
	entry := logEntry{
		ID: profile.CybercubeAttemptID(a.ID), EventID: eventID, EventType: l.EventType, EndpointID: publicID(e), Attempt: l.Run,
		Status: statusOf(a), ResponseTimeMS: &took, NextRetryAt: moment(a.NextAt), CreatedAt: timestamp(a.StartedAt),
	}
	if !broken(a) {
		entry.HTTPStatus = a.Status
	}
	if a.Verdict.Outcome != godwit.Accepted {
		entry.ErrorMessage = errorMessage(a)
	}
	return entry
}

// pending lists the deliveries that wait for their next attempt.
func (h *logHandlers) pending(c *httpapi.Call, e *godwit.Endpoint, f *store.AttemptFilter, limit int) ([]logEntry, error) {
	filter := store.DeliveryFilter{TenantID: c.Tenant(), EndpointID: e.ID, Status: godwit.DeliveryPending, Since: f.Since, Until: f.Until}
	waiting, err := h.store.ListDeliveries(c.R.Context(), filter, store.Page{Limit: limit})
	if err != nil {
		return nil, err
	}
	entries, known := make([]logEntry, len(waiting)), names{}
	for i := range waiting {
		d := &waiting[i]
		eventID, err := known.of(c.R.Context(), h.store, c.Tenant(), d.EventID)
		if err != nil {
			return nil, err
		}
		entries[i] = logEntry{
			EventID: eventID, EventType: d.EventType, EndpointID: publicID(e), Attempt: d.Run.Attempts + 1, Status: statusPending,
			NextRetryAt: moment(d.DueAt), CreatedAt: timestamp(d.CreatedAt),
		}
	}
	return entries, nil
}

// errorMessage describes the failure for people (CT-23): the phrase of the status code, or the transport failure.
func errorMessage(a *godwit.Attempt) string {
	if phrase := http.StatusText(a.Status); phrase != "" && !broken(a) {
		return phrase
	}
	return errorOf(a)
}

// errorOf returns the error of an attempt (CCW-RTY-11).
func errorOf(a *godwit.Attempt) string {
	if broken(a) && a.Trace.Detail != "" {
		return cause(a) + ": " + a.Trace.Detail
	}
	return cause(a)
}

// cause returns the error of an attempt in short form.
func cause(a *godwit.Attempt) string {
	if broken(a) || a.Status == 0 {
		return string(a.Verdict.Reason)
	}
	return "HTTP " + strconv.Itoa(a.Status)
}

// broken reports whether the attempt failed without a usable response: there was none, or a redirect that could not be
// followed.
func broken(a *godwit.Attempt) bool {
	switch godwit.FailureKind(a.Verdict.Reason) {
	case godwit.FailureRedirectForbidden, godwit.FailureRedirectLimit, godwit.FailureRedirectInvalid:
		return true
	}
	return a.Verdict.Class == godwit.ClassTransport
}

// names caches the ids that this dialect gives to events, for one response.
type names map[godwit.EventID]string

// of returns the id by which the receiver knows an event. Once an event has expired, its producer's id is no longer known.
func (n names) of(ctx context.Context, events eventReader, tenant godwit.TenantID, id godwit.EventID) (string, error) {
	if name, known := n[id]; known {
		return name, nil
	}
	event, err := events.Event(ctx, tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		event, err = &godwit.Event{ID: id}, nil
	}
	if err != nil {
		return "", err
	}
	n[id] = profile.CybercubeEventID(event)
	return n[id], nil
}
