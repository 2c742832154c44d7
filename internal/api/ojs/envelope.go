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

// envelope is an event as its producer wrote it, with the members that this package needs.
type envelope struct {
	raw    []byte // as received
	source string
	id     string // the producer's id; empty if it sent none
	time   bool   // whether the envelope has a time
	event  intake.Event
}

// readEnvelope reads an event and adds missing members. It returns the invalid fields by name.
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
			// The time is a leap second, which the schema allows and Go's clock cannot represent, or it cannot be written in
			// UTC.
			return nil, []problem.Field{{Field: "time", Detail: "must be an RFC 3339 time"}}
		}
		env.time, env.event.OccurredAt = true, at
	}
	return env, nil
}

// asEvent returns the event as it would be stored now.
func (env *envelope) asEvent(now time.Time) *godwit.Event {
	event := &godwit.Event{ID: godwit.NewEventID(now), CreatedAt: now}
	env.complete(event)
	return event
}

// complete inserts missing members (specversion, id, time) at the start of the event, and leaves all other bytes unchanged
// (OJS-API-19).
func (env *envelope) complete(event *godwit.Event) {
	event.Body = profile.CompleteOJS(env.raw, event.ID.String(), event.CreatedAt)
	if !env.time {
		event.OccurredAt = event.CreatedAt.Truncate(time.Millisecond) // the same precision as in the body
	}
}

// topMembers reads an object. It rejects a repeated member, because receivers would not agree which of the two counts.
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

// checkEnvelope checks a completed envelope against the catalogue, and against rules that a schema cannot express.
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
	// The catalogue also allows relative references, but a source must be globally unique.
	if u, err := url.Parse(*textOf(members["source"])); err != nil || u.Scheme == "" {
		wrong = append(wrong, problem.Field{Field: "source", Detail: "must be an absolute URI, as in ojs://my-service/workers/worker-1"})
	}
	return wrong
}

// attributesOf returns the attributes that filters compare. Values that no filter could name are left out.
func attributesOf(data json.RawMessage) map[string]string {
	var members map[string]json.RawMessage // a struct would ignore the case of names
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
