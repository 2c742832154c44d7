package profile

import (
	"encoding/base64"
	"encoding/json"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// payloadObject makes a JSON object of a producer's body; value is the result of readJSON. An object is used verbatim, other
// JSON under `value`, and other bytes under `base64` with their media type.
func payloadObject(value []byte, e *godwit.Event) []byte {
	switch {
	case isObject(value):
		return value
	case value != nil:
		return append(appendRaw([]byte{'{'}, "value", value), '}')
	}
	b := make([]byte, 0, 48+len(e.ContentType)+base64.StdEncoding.EncodedLen(len(e.Body)))
	b = appendMember(append(b, '{'), "content_type", e.ContentType)
	b = append(appendName(b, "base64"), '"')
	b = base64.StdEncoding.AppendEncode(b, e.Body)
	return append(b, '"', '}')
}

// joinObjects completes an object with the members of another.
func joinObjects(b, object []byte) []byte {
	rest := object[1:]
	if b[len(b)-1] != '{' && rest[skipSpace(rest, 0)] != '}' {
		b = append(b, ',')
	}
	return append(b, rest...)
}

// textOf decodes a JSON string; other values give "".
func textOf(value []byte) string {
	var text string
	if !isText(value) || json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// ReceiverEventID is the event's id as a receiver of the profile sees it.
func ReceiverEventID(p Profile, e *godwit.Event) string {
	if own, ok := p.(interface{ eventID(*godwit.Event) string }); ok {
		return own.eventID(e)
	}
	return e.ID.String()
}
