package profile

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// CybercubeAPIVersion is the version of the standard that events follow (CCW-EVT-2).
const CybercubeAPIVersion = "2026-01-17"

// cybercubeTime is a time in UTC to the second (CCW-EVT-3).
const cybercubeTime = "2006-01-02T15:04:05Z"

// CybercubeEvent holds the members of an event of the CYBERCUBE standard (CCW-EVT-1).
type CybercubeEvent struct {
	ID        string
	Type      string
	CreatedAt time.Time
	Data      []byte // a JSON object with the members object and optionally previous_attributes, inserted unchanged
	Account   string // code of the tenant
	Livemode  bool
}

// CybercubeEnvelope writes an event. The same event always gives the same bytes.
func CybercubeEnvelope(e CybercubeEvent) []byte {
	b := cybercubeHead(e.ID, e.Type, e.CreatedAt, len(e.Data))
	return cybercubeTail(appendRaw(b, "data", e.Data), e.Account, e.Livemode)
}

func cybercubeHead(id, eventType string, at time.Time, size int) []byte {
	b := make([]byte, 0, 288+len(id)+2*len(eventType)+size)
	b = append(b, '{')
	b = appendMember(b, "id", id)
	b = appendMember(b, "type", eventType)
	b = appendMember(b, "api_version", CybercubeAPIVersion)
	return appendTime(b, "created_at", cybercubeTime, at)
}

func cybercubeTail(b []byte, account string, livemode bool) []byte {
	b = appendMember(b, "account_id", FormatCode(CodeTenant, account))
	if livemode {
		return append(b, `,"livemode":true}`...)
	}
	return append(b, `,"livemode":false}`...)
}

// CybercubeEventID is the id of an event in this dialect: the producer's own if the event came in this format, else ours in the
// form that sorts by time (CCW-EVT-13, CCW-EVT-16).
func CybercubeEventID(e *godwit.Event) string {
	if e.Format == godwit.FormatCybercube && e.SourceID != "" {
		return e.SourceID
	}
	return "evt_" + e.ID.Base32()
}

// CybercubeAttemptID is the id of one attempt (CCW-HTTP-4).
func CybercubeAttemptID(id godwit.AttemptID) string { return "wh_" + hex.EncodeToString(id[4:]) }

// cybercubeBody is the body of a delivery: the event as received, or an envelope around the event's content. The resource gets
// an id and a type if it has none; nothing else is added.
func cybercubeBody(e *godwit.Event, account string, live bool) []byte {
	if e.Format == godwit.FormatCybercube {
		return e.Body
	}
	eventID := CybercubeEventID(e)
	id, object := member{name: "id"}, member{name: "object"}
	resource, subject := cybercubeResource(e, &id, &object)

	b := cybercubeHead(eventID, e.Type, e.Time(), len(resource))
	b = append(b, `,"data":{"object":{`...)
	switch {
	case id.value != nil:
	case isText(subject):
		b = appendRaw(b, "id", subject)
	default:
		b = appendMember(b, "id", eventID)
	}
	if object.value == nil {
		kind, _, _ := strings.Cut(e.Type, ".")
		b = appendMember(b, "object", kind)
	}
	b = append(joinObjects(b, resource), '}')
	return cybercubeTail(b, account, live && !isTest(e.Type))
}

// cybercubeResource is the JSON object in an event of another format, and the subject that its envelope names.
func cybercubeResource(e *godwit.Event, id, object *member) (resource, subject []byte) {
	if e.Format == godwit.FormatOJS {
		data, subject := member{name: "data"}, member{name: "subject"}
		if isObject(readJSON(e.Body, &data, &subject)) && isObject(data.value) {
			return readJSON(data.value, id, object), subject.value
		}
	}
	return payloadObject(readJSON(e.Body, id, object), e), nil
}

// isTest reports whether events of this type test an endpoint: not production (CCW-EVT-8).
func isTest(eventType string) bool { return eventType == "webhook.test" || eventType == "godwit.test" }
