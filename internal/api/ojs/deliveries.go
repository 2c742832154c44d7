package ojs

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// The states of a delivery in this dialect. A delivery is failed while it waits for another attempt.
const (
	statusPending   = "pending"
	statusDelivered = "delivered"
	statusFailed    = "failed"
	statusDead      = "dead"
	statusCancelled = "cancelled"
)

func statusOf(d *godwit.Delivery) string {
	switch {
	case d.Status == godwit.DeliveryAccepted:
		return statusDelivered
	case d.Status == godwit.DeliveryCancelled:
		return statusCancelled
	case d.Status.Dead():
		return statusDead
	case d.Attempts > 0:
		return statusFailed
	}
	return statusPending
}

// delivery is the delivery of one event to one subscription (OT-2).
type delivery struct {
	ID             string `json:"id"`
	SubscriptionID string `json:"subscription_id"`
	EventID        string `json:"event_id"`
	EventType      string `json:"event_type,omitempty"` // left out after the event has expired
	Status         string `json:"status"`
	Reason         string `json:"reason,omitempty"` // of a dead delivery: exhausted or rejected
	AttemptCount   int    `json:"attempt_count"`
	NextAttemptAt  string `json:"next_attempt_at,omitempty"`
	CreatedAt      string `json:"created_at"`
	CompletedAt    string `json:"completed_at,omitempty"`
}

type deliveryDetail struct {
	delivery
	Attempts []attempt `json:"attempts"`
}

// attempt is one HTTP exchange.
type attempt struct {
	Number       int    `json:"number"` // from 1, including manual retries
	StartedAt    string `json:"started_at"`
	StatusCode   int    `json:"status_code,omitempty"`
	DurationMS   int64  `json:"duration_ms"`
	Error        string `json:"error,omitempty"`
	ResponseBody string `json:"response_body,omitempty"`
}

func deliveryView(d *godwit.Delivery) delivery {
	v := delivery{
		ID: d.ID.String(), SubscriptionID: d.EndpointID.String(), EventID: d.EventID.String(), EventType: d.EventType,
		Status: statusOf(d), AttemptCount: d.Attempts, CreatedAt: timestamp(d.CreatedAt),
	}
	switch {
	case d.Status == godwit.DeliveryPending:
		v.NextAttemptAt = timestamp(d.DueAt)
		return v
	case d.Status == godwit.DeliveryExhausted:
		v.Reason = "exhausted"
	case d.Status == godwit.DeliveryTerminal:
		v.Reason = "rejected"
	}
	v.CompletedAt = timestamp(d.UpdatedAt)
	return v
}

func attemptView(a *godwit.Attempt) attempt {
	v := attempt{
		Number: a.N, StartedAt: timestamp(a.StartedAt), StatusCode: a.Status, DurationMS: a.Duration.Milliseconds(),
		ResponseBody: a.Trace.Body,
	}
	if a.Verdict.Outcome != godwit.Accepted {
		v.Error = string(a.Verdict.Reason)
	}
	return v
}

type deliveryList struct {
	Deliveries []delivery `json:"deliveries"`
	Pagination pagination `json:"pagination"`
}

func (s *server) listDeliveries(c *httpapi.Call) error {
	query, err := queryOf(c.R.URL.RawQuery)
	if err != nil {
		return err
	}
	page, err := pageOf(query, listDeliveries)
	if err != nil {
		return err
	}
	if text := query.Get("subscription_id"); management.ValidUID(text) {
		e, err := s.cfg.Management.Endpoints.Resolve(c.R.Context(), c.Tenant(), text)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil {
			query.Set("subscription_id", e.ID.String())
		}
	}
	filter, err := deliveryFilter(c.Tenant(), query)
	if err != nil {
		return err
	}
	items, err := s.deliveries(c.R.Context(), filter, query.Get("status") == statusDead, page)
	if err != nil {
		return err
	}
	out := deliveryList{}
	items, out.Pagination = cut(listDeliveries, page, items, func(d *godwit.Delivery) [16]byte { return d.ID })
	out.Deliveries = make([]delivery, len(items))
	for i := range items {
		out.Deliveries[i] = deliveryView(&items[i])
	}
	writeJSON(c.W, http.StatusOK, out)
	return nil
}

// deliveries reads a page. Dead deliveries are read from the dead letters, which are kept longer than the deliveries. For a
// single event they are read from the deliveries, which have two dead states.
func (s *server) deliveries(ctx context.Context, f store.DeliveryFilter, dead bool, page store.Page) ([]godwit.Delivery, error) {
	switch {
	case !dead:
		return s.cfg.Store.ListDeliveries(ctx, f, page)
	case f.EventID.IsZero():
		letters, err := s.cfg.Store.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: f.TenantID, EndpointID: f.EndpointID, EventType: f.EventType}, page)
		items := make([]godwit.Delivery, len(letters))
		for i := range letters {
			items[i] = letters[i].Delivery
			items[i].EventType = letters[i].Event.Type
		}
		return items, err
	}
	var items []godwit.Delivery
	for _, f.Status = range []godwit.DeliveryStatus{godwit.DeliveryTerminal, godwit.DeliveryExhausted} {
		part, err := s.cfg.Store.ListDeliveries(ctx, f, page)
		if err != nil {
			return nil, err
		}
		items = append(items, part...)
	}
	// Each page holds the newest deliveries of its state, so the merged page holds the newest of both.
	slices.SortFunc(items, func(a, b godwit.Delivery) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return items[:min(len(items), page.Limit)], nil
}

// deliveryFilter reads the filter from the query.
func deliveryFilter(tenant godwit.TenantID, query url.Values) (store.DeliveryFilter, error) {
	var wrong []problem.Field
	refuse := func(field, detail string) { wrong = append(wrong, problem.Field{Field: field, Detail: detail}) }
	f := store.DeliveryFilter{TenantID: tenant, EventType: query.Get("event_type")}
	var err error
	if text := query.Get("subscription_id"); text != "" {
		if f.EndpointID, err = godwit.ParseEndpointID(text); err != nil {
			refuse("subscription_id", "must be an id of the form sub_…")
		}
	}
	if text := query.Get("event_id"); text != "" {
		if f.EventID, err = godwit.ParseEventID(text); err != nil {
			refuse("event_id", "must be an id of the form evt_…, as the answer to a post tells it")
		}
	}
	if why := godwit.ValidEventType(f.EventType); f.EventType != "" && why != "" {
		refuse("event_type", why)
	}
	switch status := query.Get("status"); status {
	case "", statusDead:
	case statusPending, statusFailed:
		tried := status == statusFailed
		f.Status, f.Tried = godwit.DeliveryPending, &tried
	case statusDelivered:
		f.Status = godwit.DeliveryAccepted
	case statusCancelled:
		f.Status = godwit.DeliveryCancelled
	default:
		refuse("status", "must be pending, delivered, failed, dead or cancelled")
	}
	return f, invalid(wrong)
}

func deliveryID(c *httpapi.Call) (godwit.DeliveryID, error) {
	id, err := godwit.ParseDeliveryID(c.R.PathValue("id"))
	if err != nil {
		return id, problem.NotFound.With("there is no such delivery")
	}
	return id, nil
}

func (s *server) getDelivery(c *httpapi.Call) error {
	id, err := deliveryID(c)
	if err != nil {
		return err
	}
	out, err := s.detail(c.R.Context(), c.Tenant(), id)
	if err != nil {
		return err
	}
	writeJSON(c.W, http.StatusOK, out)
	return nil
}

func (s *server) detail(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*deliveryDetail, error) {
	d, err := s.cfg.Store.Delivery(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	attempts, err := s.cfg.Store.Attempts(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	out := &deliveryDetail{delivery: deliveryView(d), Attempts: make([]attempt, len(attempts))}
	for i := range attempts {
		out.Attempts[i] = attemptView(&attempts[i])
	}
	return out, nil
}

// retryDelivery sends a failed or dead delivery again now, with the same id and body and a new signature. A dead delivery
// gets all its attempts again (OJS-RTY-6); a failed one continues with its remaining attempts.
func (s *server) retryDelivery(c *httpapi.Call) error {
	id, err := deliveryID(c)
	if err != nil {
		return err
	}
	ctx, tenant := c.R.Context(), c.Tenant()
	d, err := s.cfg.Store.Delivery(ctx, tenant, id)
	if err != nil {
		return err
	}
	switch status := statusOf(d); status {
	case statusDelivered, statusCancelled:
		return problem.Conflict.With("the delivery is %s", status)
	case statusPending:
		return problem.Conflict.With("the delivery is pending: its first attempt is under way or about to be")
	}
	if _, err := s.cfg.Management.Endpoints.Get(ctx, tenant, d.EndpointID); errors.Is(err, store.ErrNotFound) {
		return problem.Conflict.With("the delivery's subscription was deleted")
	} else if err != nil {
		return err
	}
	made, err := s.cfg.Engine.Replay(ctx, tenant, []godwit.DeliveryID{id}, c.Caller.Actor())
	if err != nil {
		return err
	}
	if len(made) == 0 {
		return problem.Conflict.With("an attempt of the delivery is in flight")
	}
	out, err := s.detail(ctx, tenant, id)
	if err != nil {
		return err
	}
	writeJSON(c.W, http.StatusAccepted, out)
	return nil
}
