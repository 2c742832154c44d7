package ojs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
)

// accepted is the answer to an event. ID is what every API here calls it; SourceID what its producer does.
type accepted struct {
	ID       string `json:"id"`
	SourceID string `json:"source_id,omitempty"`
}

// respond is the answer that a repeat gets too.
func respond(events []godwit.Event, _ []int) *godwit.StoredResponse {
	body, err := encode(accepted{ID: events[0].ID.String(), SourceID: events[0].SourceID})
	if err != nil { // two texts
		body = nil
	}
	return &godwit.StoredResponse{
		Status: http.StatusAccepted, ContentType: "application/json", Location: "/v1/events/" + events[0].ID.String(), Body: body,
	}
}

// postEvent accepts one event. It is stored when the answer leaves (OJS-DLV-1).
func (s *server) postEvent(c *httpapi.Call) error {
	key, err := s.events.EventKey(c)
	if err != nil {
		return err
	}
	env, wrong := readEnvelope(c.Body, s.cfg.Clock.Now())
	if err := invalid(inBody(wrong)); err != nil {
		return err
	}
	env.pub.Key = key
	if key != "" && env.id != "" {
		// The key stands for the request, the id for the event: both have to hold.
		s.api.Guarded(c, func(c *httpapi.Call) error { return s.submit(c, env, s.bySource(c, env)) })
		return nil
	}
	return s.submit(c, env, s.repeatable(c, env))
}

// inBody names the whole of a body that is wrong.
func inBody(wrong []problem.Field) []problem.Field {
	for i := range wrong {
		if wrong[i].Field == "" {
			wrong[i].Field = "body"
		}
	}
	return wrong
}

// repeatable is how a repeat of the event is known: by the key of the request or by its producer's id.
func (s *server) repeatable(c *httpapi.Call, env *envelope) *engine.Idempotency {
	switch {
	case env.id != "":
		return s.bySource(c, env)
	case env.pub.Key != "":
		return s.events.ByKey(c, env.pub.Key, respond)
	}
	return nil
}

func (s *server) bySource(c *httpapi.Call, env *envelope) *engine.Idempotency {
	return s.events.BySource(c, env.source, env.id, env.raw, respond)
}

func (s *server) submit(c *httpapi.Call, env *envelope, by *engine.Idempotency) error {
	receipts, err := s.cfg.Engine.Submit(c.R.Context(), engine.Submission{
		TenantID: c.Tenant(), Principal: c.Caller.Key.Principal, Events: []engine.Publication{env.pub}, Idempotency: by,
	})
	if err == nil {
		err = refusal(receipts[0].Err, env)
	}
	if err != nil {
		return err
	}
	if receipts[0].Replayed != nil {
		idempotency.Replay(c.W, receipts[0].Replayed)
		return nil
	}
	resp := respond(receipts[0].Events, receipts[0].Fanout)
	c.W.Header().Set("Content-Type", resp.ContentType)
	c.W.Header().Set("Location", resp.Location)
	c.W.WriteHeader(resp.Status)
	c.W.Write(resp.Body)
	return nil
}

// refusal is why an event was not taken. What came twice under its producer's id is told apart from a key that came twice.
func refusal(err error, env *envelope) error {
	if errors.Is(err, engine.ErrKeyReused) && env.id != "" {
		return duplicate
	}
	return err
}

// batchItem is what became of one event of a batch.
type batchItem struct {
	Index    int          `json:"index"`
	Status   string       `json:"status"` // accepted, duplicate or refused
	ID       string       `json:"id,omitempty"`
	SourceID string       `json:"source_id,omitempty"`
	Error    *errorObject `json:"error,omitempty"`
}

type batchAnswer struct {
	Events []batchItem `json:"events"`
}

// The states of an event of a batch.
const (
	itemAccepted  = "accepted"
	itemDuplicate = "duplicate" // known by its id: not stored a second time
	itemRefused   = "refused"
)

// postBatch accepts up to godwit.MaxEventsPerBatch events in one transaction. All are checked before any is stored; then each
// counts by itself. A key stands for the whole request and does not travel with the events: receivers would drop all but
// the first of those that share one.
func (s *server) postBatch(c *httpapi.Call) error {
	if _, err := s.events.EventKey(c); err != nil {
		return err
	}
	envs, err := s.readBatch(c.Body)
	if err != nil {
		return err
	}
	var subs []engine.Submission
	first := map[[2]string]int{}    // of events that came twice in this batch, by source and id
	place := make([]int, len(envs)) // where each event's submission is
	for i, env := range envs {
		name := [2]string{env.source, env.id}
		if at, twice := first[name]; twice && env.id != "" {
			place[i] = place[at]
			continue
		}
		first[name], place[i] = i, len(subs)
		subs = append(subs, engine.Submission{
			TenantID: c.Tenant(), Principal: c.Caller.Key.Principal, Events: []engine.Publication{env.pub}, Idempotency: s.repeatable(c, env),
		})
	}
	receipts, err := s.cfg.Engine.Submit(c.R.Context(), subs...)
	if err != nil {
		return err
	}
	out := batchAnswer{Events: make([]batchItem, len(envs))}
	status := http.StatusAccepted
	shown := make([]bool, len(receipts))
	for i, env := range envs {
		out.Events[i] = s.item(c, i, env, &receipts[place[i]])
		if shown[place[i]] && out.Events[i].Status == itemAccepted {
			out.Events[i].Status = itemDuplicate
		}
		shown[place[i]] = true
		if out.Events[i].Status == itemRefused {
			status = http.StatusMultiStatus
		}
	}
	writeJSON(c.W, status, out)
	return nil
}

func (s *server) item(c *httpapi.Call, i int, env *envelope, rc *engine.Receipt) batchItem {
	item := batchItem{Index: i, Status: itemAccepted}
	switch err := refusal(rc.Err, env); {
	case err != nil:
		p := problem.From(err)
		_, object := describe(p)
		if err == error(duplicate) {
			object.Code = "duplicate"
		}
		item.Status, item.Error = itemRefused, &object
	case rc.Replayed != nil:
		var was accepted
		if json.Unmarshal(rc.Replayed.Body, &was) == nil {
			item.ID, item.SourceID = was.ID, was.SourceID
		}
		item.Status = itemDuplicate
	default:
		item.ID, item.SourceID = rc.Events[0].ID.String(), rc.Events[0].SourceID
	}
	return item
}

// readBatch reads {"events":[…]} and names everything that is wrong, up to a bound.
func (s *server) readBatch(body []byte) ([]*envelope, error) {
	members, err := httpapi.Members(body)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	if raw, given := members["events"]; !given || json.Unmarshal(raw, &items) != nil || len(items) == 0 {
		return nil, problem.InvalidRequest.In("events", "must be a list of at least one event")
	}
	if len(items) > godwit.MaxEventsPerBatch {
		return nil, problem.InvalidRequest.In("events", "must hold at most %d events", godwit.MaxEventsPerBatch)
	}
	var wrong []problem.Field
	envs := make([]*envelope, 0, len(items))
	contents := map[[2]string]string{}
	for i, item := range items {
		env, fields := readEnvelope(item, s.cfg.Clock.Now())
		if fields == nil {
			fields = s.checkItem(env, contents)
		}
		for _, f := range fields {
			wrong = append(wrong, problem.Field{Field: within(i, f.Field), Detail: f.Detail})
		}
		if len(wrong) >= maxErrors {
			break
		}
		envs = append(envs, env)
	}
	return envs, invalid(wrong)
}

// checkItem judges an event of a batch beside the others.
func (s *server) checkItem(env *envelope, contents map[[2]string]string) []problem.Field {
	if int64(len(env.raw)) > s.cfg.MaxBody {
		return []problem.Field{{Detail: fmt.Sprintf("must have at most %d bytes", s.cfg.MaxBody)}}
	}
	if env.id == "" {
		return nil
	}
	name := [2]string{env.source, env.id}
	if other, twice := contents[name]; twice && other != string(env.raw) {
		return []problem.Field{{Field: "id", Detail: "is that of another event of this batch and source"}}
	}
	contents[name] = string(env.raw)
	return nil
}

func within(i int, field string) string {
	if field == "" {
		return fmt.Sprintf("events[%d]", i)
	}
	return fmt.Sprintf("events[%d].%s", i, field)
}
