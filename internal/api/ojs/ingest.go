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
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
)

// accepted is the response to an event. ID is the id that all APIs use; SourceID is the producer's.
type accepted struct {
	ID       string `json:"id"`
	SourceID string `json:"source_id,omitempty"`
}

// respond builds the response, which repeats get too.
func respond(events []godwit.Event, _ []int) *godwit.StoredResponse {
	body, err := encode(accepted{ID: events[0].ID.String(), SourceID: events[0].SourceID})
	if err != nil { // two strings always encode
		body = nil
	}
	return &godwit.StoredResponse{
		Status: http.StatusAccepted, ContentType: "application/json", Location: "/v1/events/" + events[0].ID.String(), Body: body,
	}
}

// postEvent accepts one event. The event is stored before the response is sent (OJS-DLV-1).
func (s *server) postEvent(c *httpapi.Call) error {
	key, err := s.cfg.Intake.Key(c.R.Header, c.Caller.Tenant)
	if err != nil {
		return err
	}
	env, wrong := readEnvelope(c.Body, c.R.Header.Get("Content-Type"), s.cfg.Clock.Now())
	if err := invalid(inBody(wrong)); err != nil {
		return err
	}
	env.event.Key = key
	if key != "" && env.id != "" {
		// The key identifies the request, the id identifies the event; both are checked.
		s.api.Guarded(c, func(c *httpapi.Call) error { return s.submit(c, env) })
		return nil
	}
	return s.submit(c, env)
}

// inBody names the field "body" for errors of the whole body.
func inBody(wrong []problem.Field) []problem.Field {
	for i := range wrong {
		if wrong[i].Field == "" {
			wrong[i].Field = "body"
		}
	}
	return wrong
}

// repeat recognises the event by its producer's id, or without one by the key of the request.
func (s *server) repeat(p intake.Producer, env *envelope) *intake.Repeat {
	if env.id != "" {
		return s.cfg.Intake.ByProducerID(p, env.source, env.id, &env.event)
	}
	return s.cfg.Intake.ByKey(p, &env.event)
}

// admit checks an event and prepares it for storage.
func (s *server) admit(c *httpapi.Call, env *envelope) (intake.Submission, error) {
	sub := intake.Submission{Producer: intake.Caller(c.Caller), Respond: respond}
	sub.Repeat = s.repeat(sub.Producer, env)
	admission, err := s.cfg.Intake.Admit(c.R.Context(), sub.Producer, &env.event, sub.Repeat)
	sub.Events = []intake.Admission{admission}
	return sub, err
}

func (s *server) submit(c *httpapi.Call, env *envelope) error {
	sub, err := s.admit(c, env)
	if err != nil {
		return err
	}
	receipts, err := s.cfg.Intake.Submit(c.R.Context(), sub)
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

// refusal returns the reason why an event was refused. It distinguishes a repeated producer's id from a repeated key.
func refusal(err error, env *envelope) error {
	if errors.Is(err, engine.ErrKeyReused) && env.id != "" {
		return duplicate
	}
	return err
}

// batchItem is the result of one event of a batch.
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
	itemDuplicate = "duplicate" // the id is known; not stored again
	itemRefused   = "refused"
)

// postBatch accepts up to godwit.MaxEventsPerBatch events in one transaction. It checks all events before it stores any;
// then each event is stored independently of the others. A key identifies the whole request and is not forwarded with the
// events: receivers would drop all but the first event with the same key.
func (s *server) postBatch(c *httpapi.Call) error {
	if _, err := s.cfg.Intake.Key(c.R.Header, c.Caller.Tenant); err != nil {
		return err
	}
	envs, admitted, err := s.readBatch(c)
	if err != nil {
		return err
	}
	var subs []intake.Submission
	first := map[[2]string]int{}    // first position of each event of this batch, by source and id
	place := make([]int, len(envs)) // index of each event's submission
	for i, env := range envs {
		name := [2]string{env.source, env.id}
		if at, twice := first[name]; twice && env.id != "" {
			place[i] = place[at]
			continue
		}
		first[name], place[i] = i, len(subs)
		subs = append(subs, admitted[i])
	}
	receipts, err := s.cfg.Intake.Submit(c.R.Context(), subs...)
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
		item.Status, item.ID, item.SourceID = itemDuplicate, rc.ReplayedEvent.String(), env.id
	default:
		item.ID, item.SourceID = rc.Events[0].ID.String(), rc.Events[0].SourceID
	}
	return item
}

// readBatch reads {"events":[…]}, checks the events, and names everything that is invalid, up to a bound.
func (s *server) readBatch(c *httpapi.Call) ([]*envelope, []intake.Submission, error) {
	members, err := httpapi.Members(c.Body)
	if err != nil {
		return nil, nil, err
	}
	var items []json.RawMessage
	if raw, given := members["events"]; !given || json.Unmarshal(raw, &items) != nil || len(items) == 0 {
		return nil, nil, problem.InvalidRequest.In("events", "must be a list of at least one event")
	}
	if len(items) > godwit.MaxEventsPerBatch {
		return nil, nil, problem.InvalidRequest.In("events", "must hold at most %d events", godwit.MaxEventsPerBatch)
	}
	var wrong []problem.Field
	envs := make([]*envelope, 0, len(items))
	subs := make([]intake.Submission, 0, len(items))
	contents := map[[2]string]string{}
	for i, item := range items {
		env, fields := readEnvelope(item, c.R.Header.Get("Content-Type"), s.cfg.Clock.Now())
		if fields == nil {
			fields = s.checkItem(env, contents)
		}
		if fields == nil {
			sub, err := s.admit(c, env)
			if fields, err = refusedFields(err); err != nil {
				return nil, nil, err
			}
			envs, subs = append(envs, env), append(subs, sub)
		}
		for _, f := range fields {
			wrong = append(wrong, problem.Field{Field: within(i, f.Field), Detail: f.Detail})
		}
		if len(wrong) >= maxErrors {
			break
		}
	}
	return envs, subs, invalid(wrong)
}

// refusedFields returns the fields for which the intake refused an event. It returns every other error unchanged.
func refusedFields(err error) ([]problem.Field, error) {
	var p *problem.Problem
	if errors.As(err, &p) && len(p.Errors) > 0 {
		return p.Errors, nil
	}
	return nil, err
}

// checkItem checks an event of a batch against the other events.
func (s *server) checkItem(env *envelope, contents map[[2]string]string) []problem.Field {
	if int64(len(env.raw)) > s.cfg.Intake.MaxPayload() {
		return []problem.Field{{Detail: fmt.Sprintf("must have at most %d bytes", s.cfg.Intake.MaxPayload())}}
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
