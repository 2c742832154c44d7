package apptest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Fields are members of a JSON body. They override those of the helper.
type Fields map[string]any

// An Endpoint is an endpoint that a test registered.
type Endpoint struct {
	ID     godwit.EndpointID
	Secret Secret
}

// Secret is a signing secret as it was issued.
type Secret struct {
	ID        string `json:"id"`
	Algorithm string `json:"algorithm"`
	PublicKey string `json:"public_key"`
	Value     string `json:"value"`
}

// Endpoint registers a URL for all events. fields adds members such as "patterns" or "policy".
func (s *Server) Endpoint(url string, fields ...Fields) Endpoint {
	s.t.Helper()
	body := Fields{"url": url}
	for _, f := range fields {
		for name, value := range f {
			body[name] = value
		}
	}
	var made struct {
		ID     godwit.EndpointID `json:"id"`
		Secret Secret            `json:"secret"`
	}
	s.Must(Call{Path: "/v1/endpoints", Body: body}, &made)
	return Endpoint{ID: made.ID, Secret: made.Secret}
}

// EndpointCall sends a request about an endpoint: EndpointCall(ep, "POST", "/pause", nil).
func (s *Server) EndpointCall(ep Endpoint, method, suffix string, body any) *Response {
	s.t.Helper()
	return s.Must(Call{Method: method, Path: "/v1/endpoints/" + ep.ID.String() + suffix, Body: body}, nil)
}

// Publish posts a JSON event and returns its id.
func (s *Server) Publish(eventType, body string) godwit.EventID {
	s.t.Helper()
	return s.Post(Call{Path: "/v1/events?type=" + eventType, Body: body})
}

// PublishKey posts a JSON event under an idempotency key. It adds the quotes to the key.
func (s *Server) PublishKey(eventType, key, body string) godwit.EventID {
	s.t.Helper()
	return s.Post(Call{Path: "/v1/events?type=" + eventType, Body: body, Header: map[string]string{"Idempotency-Key": `"` + key + `"`}})
}

// Post posts an event by the given call and returns its id.
func (s *Server) Post(c Call) godwit.EventID {
	s.t.Helper()
	c.Method = "POST"
	var receipt struct {
		ID godwit.EventID `json:"id"`
	}
	s.Must(c, &receipt)
	return receipt.ID
}

// Delivery reads the delivery of an event to an endpoint from the store.
func (s *Server) Delivery(ev godwit.EventID, ep Endpoint) godwit.Delivery {
	s.t.Helper()
	d, err := s.find(ev, ep)
	if err != nil {
		s.t.Fatalf("read delivery: %v", err)
	}
	return *d
}

func (s *Server) find(ev godwit.EventID, ep Endpoint) (*godwit.Delivery, error) {
	list, err := s.App.Store().ListDeliveries(context.Background(),
		store.DeliveryFilter{TenantID: s.Tenant, EventID: ev, EndpointID: ep.ID}, store.Page{Limit: 2})
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("%w: %d deliveries of event %s to endpoint %s", errNotOne, len(list), ev, ep.ID)
	}
	return &list[0], nil
}

var errNotOne = errors.New("not one delivery")

// Pending lists the pending deliveries of the server's tenant.
func (s *Server) Pending() []godwit.Delivery {
	s.t.Helper()
	var all []godwit.Delivery
	page := store.Page{Limit: 200}
	for {
		part, err := s.App.Store().ListDeliveries(context.Background(), store.DeliveryFilter{Status: godwit.DeliveryPending, TenantID: s.Tenant}, page)
		if err != nil {
			s.t.Fatalf("list pending deliveries: %v", err)
		}
		all = append(all, part...)
		if len(part) < page.Limit {
			return all
		}
		page.After = part[len(part)-1].ID
	}
}

// Attempts reads the attempts of the delivery of an event to an endpoint, first to last.
func (s *Server) Attempts(ev godwit.EventID, ep Endpoint) []godwit.Attempt {
	s.t.Helper()
	d := s.Delivery(ev, ep)
	list, err := s.App.Store().Attempts(context.Background(), s.Tenant, d.ID)
	if err != nil {
		s.t.Fatalf("read attempts: %v", err)
	}
	return list
}

// WaitDelivery returns once the delivery of an event to an endpoint has the status.
func (s *Server) WaitDelivery(ev godwit.EventID, ep Endpoint, status godwit.DeliveryStatus) godwit.Delivery {
	s.t.Helper()
	return s.waitDelivery(ev, ep, "status "+string(status), func(d *godwit.Delivery) bool { return d.Status == status })
}

// WaitAttempts returns once at least n attempts of the delivery are recorded.
func (s *Server) WaitAttempts(ev godwit.EventID, ep Endpoint, n int) []godwit.Attempt {
	s.t.Helper()
	s.waitDelivery(ev, ep, fmt.Sprintf("%d attempts", n), func(d *godwit.Delivery) bool { return d.Attempts >= n })
	return s.Attempts(ev, ep)
}

func (s *Server) waitDelivery(ev godwit.EventID, ep Endpoint, what string, holds func(*godwit.Delivery) bool) godwit.Delivery {
	s.t.Helper()
	var last *godwit.Delivery
	s.WaitRecorded(what, func() bool {
		d, err := s.find(ev, ep)
		if err != nil && !errors.Is(err, errNotOne) {
			s.t.Fatalf("read delivery: %v", err)
		}
		last = d
		return d != nil && holds(d)
	}, func() string { return fmt.Sprintf("%+v", last) })
	return *last
}

// WaitRecorded returns once the condition holds. It checks the condition at once and after each recorded attempt; do not use
// it for a condition that changes without an attempt. seen describes the state if the wait fails.
func (s *Server) WaitRecorded(what string, holds func() bool, seen func() string) {
	s.t.Helper()
	items, stop := s.App.Engine().Watch(godwit.TenantID{})
	defer stop()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	for !holds() {
		select {
		case <-items:
			drainFeed(items) // one check covers everything that happened meanwhile
		case <-s.stopped:
			s.t.Fatalf("the server ended while a test waited for %s", what)
		case <-deadline.C:
			s.t.Fatalf("no %s within %s; last seen: %s", what, waitLimit, seen())
		}
	}
}

// WaitUntilNoneIsDue returns once everything that may be sent now has been attempted and recorded; due lists what may be sent.
func (s *Server) WaitUntilNoneIsDue(due func() []godwit.Delivery) {
	s.t.Helper()
	var waiting []godwit.Delivery
	s.WaitRecorded("rest", func() bool { waiting = due(); return len(waiting) == 0 },
		func() string { return fmt.Sprintf("%d due deliveries, the first: %+v", len(waiting), waiting[0]) })
}

func drainFeed(items <-chan engine.FeedItem) {
	for {
		select {
		case <-items:
		default:
			return
		}
	}
}

// Watch streams the attempts of all tenants until the test ends.
func (s *Server) Watch() <-chan engine.FeedItem {
	items, stop := s.App.Engine().Watch(godwit.TenantID{})
	s.t.Cleanup(stop)
	return items
}

// Advance moves a manual clock.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if s.Clock == nil {
		s.t.Fatal("Advance needs Options.Clock")
	}
	s.Clock.Advance(d)
}
