package native

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
)

// An envelope is an event described in JSON. Its data is kept byte for byte.
type envelope struct {
	Type           string
	Data           json.RawMessage
	DataBase64     []byte
	ContentType    string
	Attributes     map[string]string
	IdempotencyKey string

	has map[string]bool
}

// readEnvelope reads the single event of a request. The body limit is larger than that of a payload, because of base64 and
// the other members; the size of the payload is checked later.
func (h *eventIngest) readEnvelope(w http.ResponseWriter, r *http.Request) (*intake.Event, place, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != jsonType || len(r.Header["Content-Type"]) > 1 {
		return nil, place{}, problem.UnsupportedMediaType.In("Content-Type",
			"must be application/json, and given once, when the event comes in an envelope; to post any payload as it is, name its type by ?type=")
	}
	body, err := httpapi.ReadBody(w, r, h.maxEnvelope())
	if err != nil {
		return nil, place{}, err
	}
	env, err := parseEnvelope("", body)
	if err != nil {
		return nil, place{}, err
	}
	if env.has["idempotency_key"] {
		// A key in the body is not an Idempotency-Key (IKH-DEF-1).
		return nil, place{}, problem.Invalid.In("idempotency_key", "belongs in the Idempotency-Key header; as a member it is for the events of a batch")
	}
	return env.event("")
}

// maxEnvelope bounds a body that holds one event.
func (h *eventIngest) maxEnvelope() int64 { return h.intake.MaxPayload()/2*3 + 64<<10 }

// parseEnvelope reads an envelope strictly: it rejects unknown and repeated members, and compares names exactly.
func parseEnvelope(prefix string, raw []byte) (*envelope, error) {
	env := &envelope{has: map[string]bool{}}
	err := eachMember(prefix, raw, func(name string, value json.RawMessage) error {
		if env.has[name] {
			return problem.InvalidRequest.In(prefix+httpapi.Clip(name), "is given twice")
		}
		env.has[name] = true
		return env.set(prefix, name, value)
	})
	if err != nil {
		return nil, err
	}
	if !env.has["type"] {
		return nil, problem.InvalidRequest.In(prefix+"type", "is required")
	}
	if env.has["data"] == env.has["data_base64"] {
		return nil, problem.InvalidRequest.In(prefix+"data", "exactly one of data and data_base64 is required")
	}
	return env, nil
}

func (env *envelope) set(prefix, name string, value json.RawMessage) error {
	switch name {
	case "type":
		return decodeMember(prefix+name, value, &env.Type, "a string")
	case "data":
		env.Data = value
		return nil
	case "data_base64":
		if value[0] != '"' { // a list of numbers would do for the decoder
			return problem.InvalidRequest.In(prefix+name, "must be a string in standard base64")
		}
		return decodeMember(prefix+name, value, &env.DataBase64, "a string in standard base64")
	case "content_type":
		return decodeMember(prefix+name, value, &env.ContentType, "a string")
	case "attributes":
		return env.setAttributes(prefix+name, value)
	case "idempotency_key":
		return decodeMember(prefix+name, value, &env.IdempotencyKey, "a string")
	}
	return problem.InvalidRequest.In(prefix+httpapi.Clip(name), "is not a member of an event")
}

// setAttributes is as strict as parseEnvelope, because filters select the event's endpoints by attributes.
func (env *envelope) setAttributes(field string, value json.RawMessage) error {
	if value[0] != '{' {
		return problem.InvalidRequest.In(field, "must be an object of strings")
	}
	env.Attributes = map[string]string{}
	return eachMember(field+".", value, func(name string, value json.RawMessage) error {
		at := field + "." + httpapi.Clip(name)
		if _, twice := env.Attributes[name]; twice {
			return problem.InvalidRequest.In(at, "is given twice")
		}
		var text string
		if err := decodeMember(at, value, &text, "a string"); err != nil {
			return err
		}
		env.Attributes[name] = text
		return nil
	})
}

// decodeMember rejects null as well, because its meaning would be ambiguous.
func decodeMember(field string, value json.RawMessage, into any, want string) error {
	if text, ok := into.(*string); ok {
		if plain, ok := plainString(value); ok {
			*text = plain
			return nil
		}
	}
	if bytes.Equal(value, []byte("null")) || json.Unmarshal(value, into) != nil {
		return problem.InvalidRequest.In(field, "must be %s", want)
	}
	return nil
}

// event returns the event that the envelope describes, and its place in the request.
func (env *envelope) event(prefix string) (*intake.Event, place, error) {
	e := &intake.Event{
		Type: env.Type, ContentType: env.ContentType, Attributes: env.Attributes, Key: env.IdempotencyKey, Body: env.Data,
	}
	at, defaultType := place{prefix: prefix, payload: "data"}, jsonType
	if env.has["data_base64"] {
		e.Body, at.payload, defaultType = env.DataBase64, "data_base64", "application/octet-stream"
	}
	if !env.has["content_type"] {
		e.ContentType = defaultType
	} else if !intake.ValidMediaType(env.ContentType) {
		return nil, at, problem.Invalid.In(prefix+"content_type", "must be a media type, as in application/json")
	}
	return e, at, nil
}

// base64Of encodes a body for JSON.
func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
