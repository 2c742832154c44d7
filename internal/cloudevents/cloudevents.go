// Package cloudevents recognises a CloudEvent in an HTTP request (HTTP protocol binding 1.0.2), in either mode, so that
// Godwit can accept it and forward it unchanged (EDS-CE-1).
//
//	structured   Content-Type: application/cloudevents+json   the body is the event, and is sent on unchanged
//	binary       ce-specversion and other ce-* fields          the body is its data; the fields are sent on unchanged
//
// The event's id is never used as an idempotency key: it is unique only within its source, and may change over retries
// (EDS-CE-2 to 4). Batches are not supported.
package cloudevents

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// MediaType is the media type of an event in structured mode.
const MediaType = "application/cloudevents+json"

// TypeHeader is the header field of the type in binary mode.
const TypeHeader = "Ce-Type"

const (
	prefix      = "Ce-"
	versionName = "Ce-Specversion"
)

// An Event holds the attributes of a CloudEvent that Godwit uses.
type Event struct {
	Type string
	// Headers are the attributes of binary mode, as received; nil in structured mode.
	Headers []godwit.KeptHeader
	// Data is the payload in structured mode, and DataType its media type. Data is empty, not nil, if the event has none. In
	// binary mode the body is the payload, and both are unset.
	Data     []byte
	DataType string
}

// Present reports whether a request declares a CloudEvent.
func Present(h http.Header) bool { return h[versionName] != nil || Structured(h) }

// Structured reports whether the body is the event itself.
func Structured(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 || !strings.HasPrefix(strings.ToLower(values[0]), MediaType) {
		return false
	}
	media, _, err := mime.ParseMediaType(values[0])
	return err == nil && media == MediaType
}

// Read reads a CloudEvent. It returns nil if the request does not declare one. The error names the invalid attribute.
func Read(h http.Header, body []byte) (*Event, *godwit.FieldError) {
	switch {
	case Structured(h):
		return readStructured(body)
	case h[versionName] != nil:
		return readBinary(h)
	}
	return nil, nil
}

func readStructured(body []byte) (*Event, *godwit.FieldError) {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return nil, &godwit.FieldError{Field: "body", Detail: "must be a CloudEvent: a JSON object"}
	}
	attribute := func(name string) string {
		var text string
		if json.Unmarshal(members[name], &text) != nil {
			return ""
		}
		return text
	}
	e, err := check(attribute, "")
	if err != nil {
		return nil, err
	}
	e.Data, e.DataType = members["data"], cmp.Or(attribute("datacontenttype"), "application/json")
	if e.Data == nil {
		e.Data, _ = base64.StdEncoding.AppendDecode([]byte{}, []byte(attribute("data_base64"))) // up to a fault in it
	}
	return e, nil
}

func readBinary(h http.Header) (*Event, *godwit.FieldError) {
	e, err := check(func(name string) string {
		values := h[http.CanonicalHeaderKey(prefix+name)]
		if len(values) != 1 {
			return ""
		}
		text, err := url.PathUnescape(values[0])
		if err != nil {
			return values[0]
		}
		return text
	}, "ce-")
	if err != nil {
		return nil, err
	}
	for name, values := range h {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if len(values) != 1 || len(values[0]) > godwit.MaxKeptHeaderSize || !godwit.Carriable(values[0]) {
			return nil, &godwit.FieldError{Field: strings.ToLower(name), Detail: "must be given once, without control characters, in UTF-8 or better percent-encoded"}
		}
		e.Headers = append(e.Headers, godwit.KeptHeader{Name: name, Value: values[0]})
	}
	if len(e.Headers) > godwit.MaxKeptHeaders {
		return nil, &godwit.FieldError{Field: "ce-*", Detail: "has too many attributes"}
	}
	slices.SortFunc(e.Headers, func(a, b godwit.KeptHeader) int { return strings.Compare(a.Name, b.Name) })
	return e, nil
}

// check requires the attributes that every CloudEvent has.
func check(attribute func(name string) string, where string) (*Event, *godwit.FieldError) {
	if v := attribute("specversion"); v != "1.0" {
		return nil, &godwit.FieldError{Field: where + "specversion", Detail: `must be "1.0"`}
	}
	for _, name := range []string{"id", "source", "type"} {
		if attribute(name) == "" {
			return nil, &godwit.FieldError{Field: where + name, Detail: "is required in a CloudEvent, once, and must not be empty"}
		}
	}
	return &Event{Type: attribute("type")}, nil
}
