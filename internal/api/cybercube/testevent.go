package cybercube

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
)

// trialView is the result of a test (CCW-API-16).
type trialView struct {
	EventID        string `json:"event_id"`
	DeliveryID     string `json:"delivery_id"`
	Success        bool   `json:"success"`
	StatusCode     int    `json:"status_code,omitempty"` // absent if there was no response
	ResponseTimeMS int64  `json:"response_time_ms"`
	ResponseBody   string `json:"response_body"`
	Error          string `json:"error,omitempty"`
}

// trialType is the type of a test event if the request names none.
const trialType = "project.created"

var wellFormed = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+){1,2}$`)

const maxTypeLength = 100

// trialHandlers send test events to endpoints.
type trialHandlers struct {
	engine interface {
		SendTest(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p engine.Publication) (*engine.Trial, error)
	}
	finder endpointFinder
	limit  *budget
	now    func() time.Time
}

// test sends a sample event to this endpoint only, even if its patterns do not match, and returns the result. It
// makes one attempt and does not change the endpoint's health.
func (h *trialHandlers) test(c *httpapi.Call) error {
	e, err := h.finder.named(c)
	if err != nil {
		return err
	}
	f, err := readForm(c.Body, "event_type")
	if err != nil {
		return err
	}
	eventType := trialType
	if f.has("event_type") {
		eventType = f.text("event_type")
		if len(eventType) > maxTypeLength || !wellFormed.MatchString(eventType) {
			f.wrong("event_type", "must be two or three words of lower-case letters and '_', joined by dots, as in project.created")
		}
	}
	if err := f.err(); err != nil {
		return err
	}
	giveBack, err := h.limit.take(c.R.Context(), c.W.Header(), c.Tenant())
	if err != nil {
		return err
	}
	sample := h.sample(eventType)
	seen, err := h.engine.SendTest(c.R.Context(), c.Tenant(), e.ID, engine.Publication{
		Type: eventType, ContentType: jsonType, Format: godwit.FormatCybercube, Trigger: godwit.TriggerTest,
		SourceID: sample.id, OccurredAt: sample.createdAt, Attributes: attributesOf(sample.object, sample.livemode),
		Compose: compose(c.Caller.Tenant, sample),
	})
	if err != nil {
		giveBack()
		return err
	}
	x := &seen.Exchange
	v := trialView{
		EventID: profile.CybercubeEventID(&seen.Event), DeliveryID: profile.CybercubeAttemptID(seen.Attempt),
		Success: seen.Verdict.Outcome == godwit.Accepted, StatusCode: x.Status, ResponseTimeMS: x.Duration.Milliseconds(),
		ResponseBody: profile.Excerpt(string(x.Body), godwit.MaxBodyExcerpt),
	}
	if !v.Success {
		a := godwit.Attempt{Status: x.Status, Verdict: seen.Verdict}
		if x.Failure != nil {
			a.Trace.Detail = x.Failure.Detail
		}
		v.Error = errorOf(&a)
	}
	return answer(c, http.StatusOK, v)
}

// sample returns a test event: the standard's example of the type, or a minimal event.
func (h *trialHandlers) sample(eventType string) *posting {
	p := &posting{eventType: eventType, livemode: false}
	for _, t := range catalogue.Cybercube().Types() {
		var example struct {
			Data json.RawMessage `json:"data"`
		}
		if t.Name == eventType && json.Unmarshal(t.Example, &example) == nil {
			p.data = compact(example.Data)
		}
	}
	if p.data == nil {
		resource, _, _ := strings.Cut(eventType, ".")
		at := h.now().UTC().Format(time.RFC3339)
		p.data = compact(encode(map[string]any{"object": map[string]string{
			"id": profile.FormatCode("TST", profile.NewCode()), "object": resource, "created_at": at, "updated_at": at,
		}}))
	}
	p.object = objectOf(p.data)["object"]
	return p
}
