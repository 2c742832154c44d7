package profile

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const (
	ojsSpecVersion = "1.0"
	// ojsSource is the source of events that came in another format.
	ojsSource = "ojs://godwit"
	// ojsTime is RFC 3339 with milliseconds, and without them when they are zero.
	ojsTime = "2006-01-02T15:04:05.999Z07:00"
)

// OJSEvent holds the members of an Open Job Spec event envelope (OJS-PAY-2).
type OJSEvent struct {
	ID      string
	Type    string
	Source  string // a URI
	Time    time.Time
	Subject string // left out when empty
	Data    []byte // a JSON object, put in as it is
}

// OJSEnvelope writes an envelope. The same event always gives the same bytes.
func OJSEnvelope(e OJSEvent) []byte {
	b := make([]byte, 0, 192+len(e.ID)+len(e.Type)+len(e.Source)+len(e.Subject)+len(e.Data))
	b = append(b, `{"specversion":"`+ojsSpecVersion+`"`...)
	b = appendMember(b, "id", e.ID)
	b = appendMember(b, "type", e.Type)
	b = appendMember(b, "source", e.Source)
	b = appendTime(b, "time", ojsTime, e.Time)
	b = appendMember(b, "subject", e.Subject)
	b = appendRaw(b, "data", e.Data)
	return append(b, '}')
}

// CompleteOJS adds missing specversion, id and time to an envelope, in front of its own members, which stay unchanged,
// extension members and the spelling of numbers included. Text that is not a JSON object is returned unchanged.
func CompleteOJS(envelope []byte, id string, at time.Time) []byte {
	version, ownID, own := member{name: "specversion"}, member{name: "id"}, member{name: "time"}
	object := readJSON(envelope, &version, &ownID, &own)
	if !isObject(object) {
		return envelope
	}
	add := []byte{'{'}
	if version.value == nil {
		add = appendMember(add, "specversion", ojsSpecVersion)
	}
	if ownID.value == nil {
		add = appendMember(add, "id", id)
	}
	if own.value == nil {
		add = appendTime(add, "time", ojsTime, at)
	}
	return joinObjects(add, object)
}

// OJSEventID is the id of an event in this dialect: the producer's own if the event came in this format, else ours.
func OJSEventID(e *godwit.Event) string {
	if e.Format == godwit.FormatOJS && e.SourceID != "" {
		return e.SourceID
	}
	return e.ID.String()
}

// OJSEnvelopeOf is an event in the form of this dialect: the envelope as received, or one made around the event's content.
func OJSEnvelopeOf(e *godwit.Event) []byte {
	if e.Format == godwit.FormatOJS {
		return e.Body
	}
	out := OJSEvent{ID: e.ID.String(), Type: e.Type, Source: ojsSource, Time: e.Time()}
	if e.Format == godwit.FormatCybercube {
		data := member{name: "data"}
		if isObject(readJSON(e.Body, &data)) && isObject(data.value) {
			out.Data, out.Subject = data.value, resourceID(data.value)
			return OJSEnvelope(out)
		}
	}
	out.Data = payloadObject(readJSON(e.Body), e)
	return OJSEnvelope(out)
}

// resourceID is data.object.id of a CYBERCUBE event; "" when there is none.
func resourceID(data []byte) string {
	resource, id := member{name: "object"}, member{name: "id"}
	readJSON(data, &resource)
	if isObject(readJSON(resource.value, &id)) {
		return textOf(id.value)
	}
	return ""
}
