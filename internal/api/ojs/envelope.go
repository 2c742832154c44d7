package ojs

import (
	"bytes"
	"encoding/json"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/profile"
)

// envelope is an event as its producer wrote it, with what has to be known about it.
type envelope struct {
	raw    []byte // as it came
	source string
	id     string // its producer's; empty: none was given
	time   bool   // it says when it happened
	event  intake.Event
}

// readEnvelope reads an event and completes it. The fields that are wrong are returned by name.
func readEnvelope(raw []byte, mediaType string, now time.Time) (*envelope, []problem.Field) {
	members, wrong := topMembers(raw)
	if wrong != nil {
		return nil, wrong
	}
	env := &envelope{raw: raw}
	env.event = intake.Event{
		ContentType: "application/json", Format: godwit.FormatOJS, Compose: env.complete, Payload: members["data"], Received: raw, ReceivedType: mediaType,
	}
	if wrong := checkEnvelope(env.asEvent(now).Body, members); wrong != nil {
		return nil, wrong
	}
	env.source = *textOf(members["source"])
	env.event.Type, env.event.Attributes = *textOf(members["type"]), attributesOf(members["data"])
	if id := textOf(members["id"]); id != nil {
		env.id, env.event.SourceID = *id, *id
	}
	if text := textOf(members["time"]); text != nil {
		at, err := time.Parse(time.RFC3339, *text)
		at = at.UTC()
		if err != nil || at.Year() < 0 || at.Year() > 9999 {
			// A leap second, which the schema allows and no clock here knows; or a time that cannot be written in UTC.
			return nil, []problem.Field{{Field: "time", Detail: "must be an RFC 3339 time"}}
		}
		env.time, env.event.OccurredAt = true, at
	}
	return env, nil
}

// asEvent is the event as it would be now.
func (env *envelope) asEvent(now time.Time) *godwit.Event {
	event := &godwit.Event{ID: godwit.NewEventID(now), CreatedAt: now}
	env.complete(event)
	return event
}

// complete puts what is missing of specversion, id and time in front of the event, and leaves everything else to the byte
// (OJS-API-19).
func (env *envelope) complete(event *godwit.Event) {
	event.Body = profile.CompleteOJS(env.raw, event.ID.String(), event.CreatedAt)
	if !env.time {
		event.OccurredAt = event.CreatedAt.Truncate(time.Millisecond) // as the body tells it
	}
}

// topMembers reads an object. A member that is given twice is refused: receivers would not agree which of the two counts.
func topMembers(raw []byte) (map[string]json.RawMessage, []problem.Field) {
	refuse := func(field, detail string) (map[string]json.RawMessage, []problem.Field) {
		return nil, []problem.Field{{Field: field, Detail: detail}}
	}
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return refuse("", "must be JSON in UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return refuse("", "must be a JSON object")
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return refuse("", "must be a JSON object")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return refuse(httpapi.Clip(name), "must be JSON")
		}
		if _, twice := members[name]; twice {
			return refuse(httpapi.Clip(name), "is given twice")
		}
		members[name] = value
	}
	return members, nil
}

// checkEnvelope holds a completed envelope against the catalogue, and against what a schema cannot say.
func checkEnvelope(complete []byte, members map[string]json.RawMessage) []problem.Field {
	var wrong []problem.Field
	for _, f := range catalogue.OJS().Check(complete) {
		wrong = append(wrong, problem.Field{Field: f.Field, Detail: f.Detail})
	}
	if _, given := members["data"]; !given {
		wrong = append(wrong, problem.Field{Field: "data", Detail: "is required"})
	}
	if wrong != nil {
		return wrong
	}
	// The catalogue takes references as well, but where an event comes from is to be told apart from everywhere else.
	if u, err := url.Parse(*textOf(members["source"])); err != nil || u.Scheme == "" {
		wrong = append(wrong, problem.Field{Field: "source", Detail: "must be an absolute URI, as in ojs://my-service/workers/worker-1"})
	}
	return wrong
}

// attributesOf are what filters look at. A value that no filter could name is left out.
func attributesOf(data json.RawMessage) map[string]string {
	var members map[string]json.RawMessage // not a struct: there the case of a name would not count
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	var attributes map[string]string
	for _, name := range []string{attributeQueue, attributeJobType} {
		value := textOf(members[name])
		if value == nil || management.ValidAttributeValue(*value) != "" {
			continue
		}
		if attributes == nil {
			attributes = map[string]string{}
		}
		attributes[name] = *value
	}
	return attributes
}
