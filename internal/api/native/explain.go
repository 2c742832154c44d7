package native

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/engine/dispatch"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/store"
)

// Explanation says why an endpoint got an event, or did not.
type Explanation struct {
	Endpoint ExplainedEndpoint `json:"endpoint"`
	Matched  bool              `json:"matched" doc:"The event went to the endpoint, or is on its way"`
	Reason   string            `json:"reason" enum:"matched,replayed,changed,held,event-type,attribute,content,paused,created-later,deleted,under-way,not-chosen"`
	Detail   string            `json:"detail" doc:"The reason in a sentence"`
	Part     string            `json:"part,omitempty" doc:"Of the reason content: the place in content_filter that said no, as in body.amount.$gte"`
	Delivery string            `json:"delivery,omitempty" doc:"Id of the delivery"`
	State    string            `json:"state,omitempty" enum:"pending,accepted,terminal,exhausted,cancelled" doc:"Status of the delivery"`
}

// ExplainedEndpoint names an endpoint.
type ExplainedEndpoint struct {
	ID     string `json:"id"`
	UID    string `json:"uid,omitempty"`
	URL    string `json:"url"`
	Status string `json:"status" enum:"active,paused,disabled,deleted"`
}

type (
	explainEventInput struct {
		EventPath
		PageParams
		Endpoint string `query:"endpoint" doc:"Only this endpoint"`
	}
	explainOutput struct {
		Body struct {
			Endpoints  []Explanation `json:"endpoints" doc:"The tenant's endpoints, newest first, and then deleted ones that the event went to"`
			NextCursor string        `json:"next_cursor,omitempty" doc:"Pass as cursor to get the next page; absent on the last one"`
		} `nameHint:"EventExplanation"`
	}
)

var explainEventDoc = huma.Operation{
	OperationID: "explain-event", Summary: "Explain which endpoints got an event, and why",
	Description: "For each endpoint of the tenant: whether the event went to it, by which pattern, or what kept it away. Deliveries tell what happened. The settings of the endpoint, as they are now, tell why; where they were changed " +
		"since the event came, the answer says so. A page may have fewer items than limit, even none, and still have a next_cursor.",
}

// explainHandlers explain the receivers of events.
type explainHandlers struct {
	store  explainStore
	engine explainEngine
	finder endpointFinder
}

// explainStore is the part of the store that explanations are read from.
type explainStore interface {
	Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error)
	ListEndpoints(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error)
	ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error)
	LoadChosen(ctx context.Context, ids []godwit.EndpointID) ([]*store.LoadedEndpoint, error)
}

// explainEngine is the part of the engine that explains.
type explainEngine interface {
	Explain(ctx context.Context, event *godwit.Event, endpoints []godwit.Endpoint) ([]engine.Explanation, error)
	Judge(ctx context.Context, event *godwit.Event, id godwit.EndpointID) (dispatch.Judgement, error)
}

// The list of explanations has two parts with a cursor each: the tenant's endpoints, and deliveries to deleted ones.
const (
	listExplained        listKind = 'p'
	listExplainedDeleted listKind = 'q'
)

func (h *explainHandlers) explain(ctx context.Context, c *management.Caller, in *explainEventInput) (*explainOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	event, err := h.store.Event(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	out := &explainOutput{}
	if in.Endpoint != "" {
		out.Body.Endpoints, err = h.one(ctx, c, event, in.Endpoint)
		return out, err
	}
	if after, err := parseCursor(listExplainedDeleted, in.Cursor); err == nil && in.Cursor != "" {
		out.Body.Endpoints, out.Body.NextCursor, err = h.deleted(ctx, event, after, in.Limit)
		return out, err
	}
	after, err := parseCursor(listExplained, in.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := h.store.ListEndpoints(ctx, store.EndpointFilter{TenantID: c.Tenant.ID}, store.Page{After: after, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	more := len(list) > in.Limit
	if more {
		list = list[:in.Limit]
	}
	if out.Body.Endpoints, err = h.views(ctx, event, list); err != nil || more {
		if more {
			out.Body.NextCursor = cursor(listExplained, list[len(list)-1].ID)
		}
		return out, err
	}
	gone, next, err := h.deleted(ctx, event, [16]byte{}, in.Limit-len(list))
	out.Body.Endpoints, out.Body.NextCursor = append(out.Body.Endpoints, gone...), next
	return out, err
}

// one explains a single endpoint, also one that is deleted.
func (h *explainHandlers) one(ctx context.Context, c *management.Caller, event *godwit.Event, text string) ([]Explanation, error) {
	id, err := h.finder.id(ctx, c, "endpoint", text)
	if err != nil {
		return nil, missing("endpoint", "endpoint", err)
	}
	loaded, err := h.store.LoadChosen(ctx, []godwit.EndpointID{id})
	if err != nil {
		return nil, err
	}
	if len(loaded) == 0 || loaded[0].Endpoint.TenantID != c.Tenant.ID {
		return nil, missing("endpoint", "endpoint", store.ErrNotFound)
	}
	return h.views(ctx, event, []godwit.Endpoint{loaded[0].Endpoint})
}

// deletedLooked is how many deliveries of an event are examined in one request for those to deleted endpoints.
const deletedLooked = 2000

// deleted explains deliveries to endpoints that are deleted, after the given delivery.
func (h *explainHandlers) deleted(ctx context.Context, event *godwit.Event, after [16]byte, limit int) (views []Explanation, next string, err error) {
	for looked := 0; ; {
		if limit <= 0 || looked >= deletedLooked {
			return views, cursor(listExplainedDeleted, after), nil
		}
		deliveries, err := h.store.ListDeliveries(ctx, store.DeliveryFilter{TenantID: event.TenantID, EventID: event.ID}, store.Page{After: after, Limit: 500})
		if err != nil || len(deliveries) == 0 {
			return views, "", err
		}
		looked += len(deliveries)
		ids := make([]godwit.EndpointID, len(deliveries))
		for i := range deliveries {
			ids[i] = deliveries[i].EndpointID
		}
		loaded, err := h.store.LoadChosen(ctx, ids)
		if err != nil {
			return nil, "", err
		}
		gone := map[godwit.EndpointID]*godwit.Endpoint{}
		for _, l := range loaded {
			if l.Endpoint.Status == godwit.EndpointDeleted {
				gone[l.Endpoint.ID] = &l.Endpoint
			}
		}
		for i := range deliveries {
			after = deliveries[i].ID
			if e := gone[deliveries[i].EndpointID]; e != nil {
				views = append(views, explanationView(event, &engine.Explanation{Endpoint: e, Delivery: &deliveries[i], Fate: engine.FateDeleted}))
				if limit--; limit == 0 {
					break
				}
			}
		}
		if len(deliveries) < 500 && limit > 0 {
			return views, "", nil
		}
	}
}

func (h *explainHandlers) views(ctx context.Context, event *godwit.Event, list []godwit.Endpoint) ([]Explanation, error) {
	views := make([]Explanation, len(list))
	if len(list) == 0 {
		return views, nil
	}
	explained, err := h.engine.Explain(ctx, event, list)
	if err != nil {
		return nil, err
	}
	for i := range explained {
		views[i] = explanationView(event, &explained[i])
	}
	return views, nil
}

func explanationView(event *godwit.Event, x *engine.Explanation) Explanation {
	v := Explanation{
		Endpoint: ExplainedEndpoint{ID: x.Endpoint.ID.String(), UID: x.Endpoint.UID, URL: x.Endpoint.URL, Status: string(x.Endpoint.Status)},
		Matched:  x.Delivery != nil || x.Fate == engine.FateUnderWay, Reason: string(x.Fate), Detail: sentence(event, x),
	}
	if x.Fate == engine.FateContent {
		v.Part = x.Judgement.Miss.Place
	}
	if x.Delivery != nil {
		v.Delivery, v.State = x.Delivery.ID.String(), string(x.Delivery.Status)
	}
	return v
}

// sentence says why, and what became of the delivery.
func sentence(event *godwit.Event, x *engine.Explanation) string {
	text := why(event, x)
	if x.Delivery != nil && x.Fate != engine.FateHeld {
		text += " " + course(x.Delivery)
	}
	return text
}

func why(event *godwit.Event, x *engine.Explanation) string {
	e, j := x.Endpoint, &x.Judgement
	switch x.Fate {
	case engine.FateMatched:
		return fmt.Sprintf("The pattern %q selects %s%s.", j.Pattern, event.Type, filterWords(e))
	case engine.FateHeld:
		reason := ""
		if e.StatusReason != "" {
			reason = " (" + e.StatusReason + ")"
		}
		return fmt.Sprintf("The endpoint has been %s since %s%s; the delivery waits until it is resumed.", e.Status, at(e.StatusAt), reason)
	case engine.FateReplayed:
		return "A replay or a test sent it to this endpoint, whose settings do not select it: " + lower(rejection(event, e, j))
	case engine.FateChanged:
		if x.Delivery != nil {
			return fmt.Sprintf("The endpoint's settings selected it when it came; since they were changed (last at %s) they do not: %s", at(e.UpdatedAt), lower(rejection(event, e, j)))
		}
		return fmt.Sprintf("The endpoint's settings select it now, but they were changed at %s, after the event came at %s.", at(e.UpdatedAt), at(event.CreatedAt))
	case engine.FateEventType, engine.FateAttribute, engine.FateContent:
		return rejection(event, e, j)
	case engine.FatePaused:
		if e.Status == godwit.EndpointPaused {
			return fmt.Sprintf("The endpoint has been paused since %s, and its policy skips events while it is paused.", at(e.StatusAt))
		}
		return fmt.Sprintf("The endpoint was resumed at %s, after the event came, and its policy skips events while it is paused.", at(e.StatusAt))
	case engine.FateCreatedLater:
		return fmt.Sprintf("The endpoint was created at %s, after the event came at %s. A replay of the event that names the endpoint sends it.", at(e.CreatedAt), at(event.CreatedAt))
	case engine.FateDeleted:
		return fmt.Sprintf("The endpoint was deleted at %s.", at(e.UpdatedAt))
	case engine.FateUnderWay:
		return fmt.Sprintf("The pattern %q selects %s. The event goes to many endpoints, and this delivery is about to be stored.", j.Pattern, event.Type)
	}
	return "The endpoint's settings select it, but the event was only for other endpoints, as tests, replays and events about an endpoint's own deliveries are."
}

// rejection says why the endpoint's settings do not select the event.
func rejection(event *godwit.Event, e *godwit.Endpoint, j *dispatch.Judgement) string {
	switch j.Verdict {
	case dispatch.OtherType:
		if len(e.Patterns) == 0 {
			return "The endpoint has no pattern."
		}
		return fmt.Sprintf("No pattern of the endpoint (%s) selects %s.", listWords(e.Patterns), event.Type)
	case dispatch.OwnType:
		return fmt.Sprintf(`The pattern "*" does not select %s, which is one of the server's own types: a pattern must name it.`, event.Type)
	case dispatch.OtherValue:
		allowed := listWords(e.Filter[j.Attribute])
		if value, ok := event.Attributes[j.Attribute]; ok {
			return fmt.Sprintf("The filter wants the attribute %q to be %s; the event has %q.", j.Attribute, allowed, value)
		}
		return fmt.Sprintf("The filter wants the attribute %q to be %s; the event has no such attribute.", j.Attribute, allowed)
	}
	if j.Verdict == dispatch.OtherContent {
		return "The content filter does not let it pass: " + j.Miss.String() + "."
	}
	return "They select it now."
}

// course says what became of a delivery.
func course(d *godwit.Delivery) string {
	attempts := "1 attempt"
	if d.Attempts != 1 {
		attempts = fmt.Sprintf("%d attempts", d.Attempts)
	}
	switch d.Status {
	case godwit.DeliveryAccepted:
		return fmt.Sprintf("The receiver acknowledged it after %s.", attempts)
	case godwit.DeliveryTerminal:
		return fmt.Sprintf("It ended after %s, since another cannot help (%s).", attempts, cause(d))
	case godwit.DeliveryExhausted:
		return fmt.Sprintf("It ended after %s (%s).", attempts, cause(d))
	case godwit.DeliveryCancelled:
		return "It was cancelled."
	}
	if d.Attempts == 0 {
		return "It waits for its first attempt."
	}
	return fmt.Sprintf("It waits for its next attempt after %s (the last: %s).", attempts, cause(d))
}

// cause names the last outcome.
func cause(d *godwit.Delivery) string {
	if d.LastStatus != 0 {
		return fmt.Sprintf("%s %d", d.Reason, d.LastStatus)
	}
	return string(d.Reason)
}

func filterWords(e *godwit.Endpoint) string {
	words := ""
	if len(e.Filter) > 0 {
		words = ", and its attributes pass the filter"
	}
	if len(e.Content) > 0 {
		words += ", and it passes the content filter"
	}
	return words
}

// listedWords is how many patterns or values a sentence lists.
const listedWords = 10

func listWords(list []string) string {
	words := make([]string, 0, len(list))
	for i, w := range list {
		if i == listedWords {
			words = append(words, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		words = append(words, fmt.Sprintf("%q", w))
	}
	return strings.Join(words, " or ")
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lower begins a sentence in small letters, for use after a colon.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
