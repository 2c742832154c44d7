package profile

import (
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const (
	ojsSpecVersion = "1.0"
	// ojsSource is where events come from that were not told in this dialect.
	ojsSource = "ojs://godwit"
	// ojsTime is RFC 3339 with milliseconds, and without them when they are zero.
	ojsTime = "2006-01-02T15:04:05.999Z07:00"
)

// OJSEvent is what an Open Job Spec event envelope says (OJS-PAY-2).
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

// CompleteOJS gives an envelope that came without them its specversion, id and time, in front of its own members, which
// stay as they are: extension members and the spelling of numbers too. What is no JSON object is returned as it is.
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

// OJSEventID is the id that an event has in this dialect: its producer's own when it was told in it, else ours.
func OJSEventID(e *godwit.Event) string {
	if e.Format == godwit.FormatOJS && e.SourceID != "" {
		return e.SourceID
	}
	return e.ID.String()
}

// OJSEnvelopeOf is an event as deliveries of this dialect carry it: the envelope as it was told, or one made of what the
// event carries.
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
