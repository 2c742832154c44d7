package ojs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// createSubscription registers an endpoint of this dialect. Only this response shows its secret (OJS-API-3).
func (s *server) createSubscription(c *httpapi.Call) error {
	w, members, err := readSubscriptionRequest(c.Body)
	if err != nil {
		return err
	}
	for _, name := range []string{"url", "events"} {
		if _, given := members[name]; !given {
			w.refuse(name, "is required")
		}
	}
	if err := w.err(); err != nil {
		return err
	}
	n := newEndpoint(w)
	n.ByPlatform = c.Caller.Platform()
	e, issued, err := s.cfg.Management.Endpoints.Create(c.R.Context(), c.Caller.Tenant, n)
	if err != nil {
		return err
	}
	v := subscriptionView(e)
	v.Secret = issued.Value
	c.W.Header().Set("Location", subscriptionsPath+"/"+v.ID)
	writeJSON(c.W, http.StatusCreated, answerOf(v))
	return nil
}

// newEndpoint returns the endpoint that the request describes.
func newEndpoint(w *subscriptionRequest) management.NewEndpoint {
	n := management.NewEndpoint{Secret: w.secret, Paused: w.active != nil && !*w.active}
	n.Profile = profileName
	w.apply(&n.EndpointSpec)
	return n
}

type subscriptionList struct {
	Subscriptions []subscription `json:"subscriptions"`
	Total         int            `json:"total"`
	Pagination    pagination     `json:"pagination"`
}

func (s *server) listSubscriptions(c *httpapi.Call) error {
	query, err := queryOf(c.R.URL.RawQuery)
	if err != nil {
		return err
	}
	page, err := pageOf(query, listSubscriptions)
	if err != nil {
		return err
	}
	items, err := s.cfg.Management.Endpoints.List(c.R.Context(), store.EndpointFilter{TenantID: c.Tenant()}, page)
	if err != nil {
		return err
	}
	out := subscriptionList{}
	if out.Total, err = s.cfg.Store.CountEndpoints(c.R.Context(), c.Tenant()); err != nil {
		return fmt.Errorf("count subscriptions: %w", err)
	}
	items, out.Pagination = cut(listSubscriptions, page, items, func(e *godwit.Endpoint) [16]byte { return e.ID })
	out.Pagination.Total = &out.Total
	out.Subscriptions = make([]subscription, len(items))
	for i := range items {
		out.Subscriptions[i] = subscriptionView(&items[i])
	}
	writeJSON(c.W, http.StatusOK, out)
	return nil
}

// subscription finds the subscription that the path names, by any form of its id. A malformed id gets 404.
func (s *server) subscription(c *httpapi.Call) (*godwit.Endpoint, error) {
	e, err := s.cfg.Management.Endpoints.Resolve(c.R.Context(), c.Tenant(), c.R.PathValue("id"))
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem.NotFound.With("there is no such subscription")
	}
	return e, err
}

func (s *server) getSubscription(c *httpapi.Call) error {
	e, err := s.subscription(c)
	if err != nil {
		return err
	}
	writeJSON(c.W, http.StatusOK, answerOf(subscriptionView(e)))
	return nil
}

// updateSubscription changes the members that the body names. It checks everything before it changes anything.
func (s *server) updateSubscription(c *httpapi.Call) error {
	e, err := s.subscription(c)
	if err != nil {
		return err
	}
	w, members, err := readSubscriptionRequest(c.Body)
	if err != nil {
		return err
	}
	for _, name := range []string{"id", "secret", "created_at"} {
		if _, given := members[name]; given {
			w.wrong = append(w.wrong, problem.Field{Field: name, Detail: fixed(name)})
		}
	}
	if err := w.err(); err != nil {
		return err
	}
	e, err = s.cfg.Management.Endpoints.Update(c.R.Context(), c.Tenant(), e.ID, godwit.Match{}, func(spec *management.EndpointSpec) error {
		w.apply(spec)
		return nil
	})
	if err == nil {
		e, err = s.activate(c.R.Context(), e, w.active)
	}
	if err != nil {
		return err
	}
	writeJSON(c.W, http.StatusOK, answerOf(subscriptionView(e)))
	return nil
}

func fixed(name string) string {
	if name == "secret" {
		return "cannot be changed so: use rotate-secret"
	}
	return "cannot be changed"
}

// activate pauses or resumes an endpoint. It also resumes an endpoint that was disabled because of failures.
func (s *server) activate(ctx context.Context, e *godwit.Endpoint, active *bool) (*godwit.Endpoint, error) {
	switch {
	case active == nil:
		return e, nil
	case *active && e.Status != godwit.EndpointActive:
		return s.cfg.Management.Endpoints.Resume(ctx, e.TenantID, e.ID)
	case !*active && e.Status != godwit.EndpointPaused:
		return s.cfg.Management.Endpoints.Pause(ctx, e.TenantID, e.ID, "active: false")
	}
	return e, nil
}

func (s *server) deleteSubscription(c *httpapi.Call) error {
	e, err := s.subscription(c)
	if err != nil {
		return err
	}
	if err := s.cfg.Commands.DeleteEndpoint(c.R.Context(), s.api.CommandRequest(c.R, c.Caller), e.ID, godwit.Match{}); err != nil {
		return err
	}
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

// rotation is the response to a rotation. Beside the creation, only this response shows a secret (OT-5).
type rotation struct {
	ID                      string `json:"id"`
	Secret                  string `json:"secret,omitempty"`
	NewSecret               string `json:"new_secret,omitempty"` // the same value, for clients that look for this name
	PublicKey               string `json:"public_key,omitempty"` // of endpoints that another API created with a key pair
	PreviousSecretExpiresAt string `json:"previous_secret_expires_at"`
	SecretRedacted          bool   `json:"secret_redacted,omitempty"` // the secret was shown before (IDS IT-14)
}

func (s *server) rotateSecret(c *httpapi.Call) error {
	e, err := s.subscription(c)
	if err != nil {
		return err
	}
	rot, err := readRotation(c.Body)
	if err != nil {
		return err
	}
	issued, redacted, err := s.cfg.Commands.RotateSecret(c.R.Context(), s.api.CommandRequest(c.R, c.Caller), e.ID, rot)
	if err != nil {
		return err
	}
	out := rotation{
		ID: e.ID.String(), Secret: issued.Value, NewSecret: issued.Value, PreviousSecretExpiresAt: timestamp(issued.OthersUntil),
		SecretRedacted: redacted,
	}
	if issued.Value == "" && !redacted {
		out.PublicKey = base64.StdEncoding.EncodeToString(issued.Secret.PublicKey)
	}
	writeJSON(c.W, http.StatusOK, out)
	return nil
}

// readRotation reads the optional body {"overlap_seconds": n}: how long the old secret goes on signing. Defaults to a day.
func readRotation(body []byte) (rot management.Rotation, err error) {
	members, err := httpapi.Members(body)
	if err != nil {
		return rot, err
	}
	if _, given := members["secret"]; given {
		return rot, problem.InvalidRequest.In("secret", "is made here, it cannot be brought along")
	}
	raw, given := members["overlap_seconds"]
	if !given {
		return rot, nil
	}
	var seconds *int
	if json.Unmarshal(raw, &seconds) != nil || seconds == nil || *seconds < 0 || *seconds > int(management.MaxOverlap.Seconds()) {
		return rot, problem.InvalidRequest.In("overlap_seconds", "must be a whole number from 0 to %g", management.MaxOverlap.Seconds())
	}
	overlap := time.Duration(*seconds) * time.Second
	rot.Overlap = &overlap
	return rot, nil
}
