package native

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/filter"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// ExplainRequest is an event to judge by an endpoint's settings: a stored one by its id, or the members of one that may come.
type ExplainRequest struct {
	Event      string               `json:"event,omitempty" doc:"Id of a stored event. Without it, the event has the members type, attributes, headers, source and body."`
	Type       string               `json:"type,omitempty" example:"order.paid"`
	Attributes map[string]string    `json:"attributes,omitempty"`
	Headers    map[string]string    `json:"headers,omitempty" doc:"Kept header fields"`
	Source     string               `json:"source,omitempty" doc:"Id of the source that it came through"`
	Body       json.RawMessage      `json:"body,omitempty" doc:"Any JSON value"`
	Content    godwit.ContentFilter `json:"content_filter,omitempty" doc:"A filter to try in place of the endpoint's own. It is checked, and not stored."`
}

// EndpointExplanation says whether an endpoint's settings, as they are now, select an event.
type EndpointExplanation struct {
	Matched bool   `json:"matched"`
	Reason  string `json:"reason" enum:"matched,event-type,attribute,content,paused"`
	Part    string `json:"part,omitempty" doc:"Of the reason content: the place in content_filter that said no, as in body.amount.$gte"`
	Detail  string `json:"detail" doc:"The reason in a sentence"`
}

type (
	explainEndpointInput struct {
		EndpointPath
		Body ExplainRequest
	}
	explainEndpointOutput struct{ Body EndpointExplanation }
)

var explainEndpointDoc = huma.Operation{
	OperationID: "explain-endpoint", Summary: "Explain whether an endpoint would get an event, and why",
	Description: "Judges an event by the endpoint's patterns, filter and content filter as they are now, and names the part that says no. Nothing is stored or sent.",
}

func (h *explainHandlers) endpoint(ctx context.Context, c *management.Caller, in *explainEndpointInput) (*explainEndpointOutput, error) {
	endpoint, err := h.finder.endpoints.Resolve(ctx, c.Tenant.ID, in.ID)
	if err != nil {
		return nil, err
	}
	event, err := h.given(ctx, c, &in.Body)
	if err != nil {
		return nil, err
	}
	j, err := h.engine.Judge(ctx, event, endpoint.ID)
	if err != nil {
		return nil, err
	}
	if in.Body.Content != nil {
		if err := tryContent(&j, in.Body.Content, event); err != nil {
			return nil, err
		}
	}
	out := &explainEndpointOutput{Body: EndpointExplanation{Reason: "matched", Matched: true}}
	switch j.Verdict {
	case dispatch.Selected:
		out.Body.Detail = "The pattern \"" + j.Pattern + "\" selects " + event.Type + ", and the event passes the filters."
		return out, nil
	case dispatch.SkippedPaused:
		out.Body = EndpointExplanation{Reason: "paused", Detail: "The endpoint is paused, and its policy skips events while it is paused."}
		return out, nil
	case dispatch.OtherValue:
		out.Body.Reason = "attribute"
	case dispatch.OtherContent:
		out.Body.Reason, out.Body.Part = "content", j.Miss.Place
	default:
		out.Body.Reason = "event-type"
	}
	out.Body.Matched, out.Body.Detail = false, rejection(event, endpoint, &j)
	return out, nil
}

// tryContent judges by another content filter than the endpoint's own.
func tryContent(j *dispatch.Judgement, content godwit.ContentFilter, event *godwit.Event) error {
	tried, wrong := filter.Compile(content)
	if wrong != nil {
		return problem.Invalid.In(management.ContentField(wrong.Field), "%s", wrong.Detail)
	}
	if j.Verdict != dispatch.Selected && j.Verdict != dispatch.OtherContent {
		return nil
	}
	j.Verdict = dispatch.Selected
	if j.Skips && j.Endpoint.Status == godwit.EndpointPaused {
		j.Verdict = dispatch.SkippedPaused
	}
	if miss, missed := tried.Explain(filter.Open(event)); missed {
		j.Verdict, j.Miss = dispatch.OtherContent, miss
	}
	return nil
}

// given returns the event of a request.
func (h *explainHandlers) given(ctx context.Context, c *management.Caller, r *ExplainRequest) (*godwit.Event, error) {
	if r.Event != "" {
		if r.Type != "" || r.Attributes != nil || r.Headers != nil || r.Source != "" || r.Body != nil {
			return nil, problem.Invalid.In("event", "is the id of a stored event; give it, or the members of an event")
		}
		path := EventPath{ID: r.Event}
		id, err := path.parse()
		if err != nil {
			return nil, missing("event", "event", err)
		}
		event, err := h.store.Event(ctx, c.Tenant.ID, id)
		if err != nil {
			return nil, missing("event", "event", err)
		}
		return event, nil
	}
	if why := godwit.ValidEventType(r.Type); why != "" {
		return nil, problem.Invalid.In("type", "%s", why)
	}
	event := &godwit.Event{TenantID: c.Tenant.ID, Type: r.Type, Attributes: r.Attributes, Body: r.Body}
	for name, value := range r.Headers {
		event.KeptHeaders = append(event.KeptHeaders, godwit.KeptHeader{Name: name, Value: value})
	}
	if r.Source != "" {
		source, err := godwit.ParseSourceID(r.Source)
		if err != nil {
			return nil, problem.Invalid.In("source", "must be the id of a source")
		}
		event.Origin.Source = source
	}
	return event, nil
}
