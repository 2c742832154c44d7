package ojs

import (
	"context"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// The test event (OJS-API-12). Its source is that of the events about deliveries.
const (
	testEvent  = "webhook.test"
	testSource = "ojs://godwit/webhooks"
)

// testResult is the result of a test (OJS-API-11, OJS-API-13).
type testResult struct {
	Success        bool   `json:"success"`
	StatusCode     int    `json:"status_code"` // 0 if there was no response
	ResponseTimeMS int64  `json:"response_time_ms"`
	ResponseBody   string `json:"response_body"`
	Error          string `json:"error,omitempty"`
}

// testSubscription sends one synthetic event and waits for the response. Every behaviour of the endpoint is a result, not an
// error.
func (s *server) testSubscription(c *httpapi.Call) error {
	e, err := s.subscription(c)
	if err != nil {
		return err
	}
	// The endpoint's own timeout bounds the wait. The timeout of a guarded request may be shorter than that.
	ctx := context.WithoutCancel(c.R.Context())
	probed, err := s.cfg.Engine.SendTest(ctx, e.TenantID, e.ID, engine.Publication{
		Type: testEvent, ContentType: "application/json", Format: godwit.FormatOJS,
		Compose: func(event *godwit.Event) {
			event.Body = profile.OJSEnvelope(profile.OJSEvent{
				ID: event.ID.String(), Type: testEvent, Source: testSource, Time: event.CreatedAt, Subject: e.ID.String(), Data: []byte(`{"ping":true}`),
			})
		},
	})
	if err != nil {
		return err
	}
	writeJSON(c.W, http.StatusOK, resultOf(probed))
	return nil
}

func resultOf(p *engine.Trial) testResult {
	x := &p.Exchange
	out := testResult{
		Success: p.Verdict.Outcome == godwit.Accepted, StatusCode: x.Status, ResponseTimeMS: x.Duration.Milliseconds(),
		ResponseBody: profile.Excerpt(strings.ToValidUTF8(string(x.Body), "\uFFFD"), godwit.MaxBodyExcerpt),
	}
	switch {
	case x.Failure != nil:
		out.Error = string(x.Failure.Kind)
		if x.Failure.Detail != "" {
			out.Error += ": " + profile.Excerpt(x.Failure.Detail, 200)
		}
	case !out.Success:
		out.Error = string(p.Verdict.Reason)
	}
	return out
}
