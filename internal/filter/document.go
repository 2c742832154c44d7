package filter

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Document is an event as filters see it. It is not safe for concurrent use.
type Document struct {
	event  *godwit.Event
	body   any
	exists bool // the body is JSON
	parsed bool

	attributes, headers map[string]any // nil before a filter asked for them
}

// Open returns the document of an event. It parses nothing yet.
func Open(event *godwit.Event) *Document { return &Document{event: event} }

// member returns a member of the event.
func (d *Document) member(name string) (value any, exists bool) {
	switch name {
	case memberType:
		return d.event.Type, true
	case memberAttributes:
		if d.attributes == nil {
			d.attributes = attributesOf(d.event)
		}
		return d.attributes, true
	case memberHeaders:
		if d.headers == nil {
			d.headers = headersOf(d.event)
		}
		return d.headers, true
	case memberSource:
		if d.event.Origin.IsZero() {
			return nil, false
		}
		return d.event.Origin.Source.String(), true
	}
	if !d.parsed {
		d.body, d.exists = parse(d.event.Body)
		d.parsed = true
	}
	return d.body, d.exists
}

func attributesOf(event *godwit.Event) map[string]any {
	m := make(map[string]any, len(event.Attributes))
	for name, value := range event.Attributes {
		m[name] = value
	}
	return m
}

// headersOf returns the kept header fields by their names in small letters. A field that occurs more than once is a list.
func headersOf(event *godwit.Event) map[string]any {
	m := make(map[string]any, len(event.KeptHeaders))
	for _, h := range event.KeptHeaders {
		name := strings.ToLower(h.Name)
		switch old := m[name].(type) {
		case nil:
			m[name] = h.Value
		case []any:
			m[name] = append(old, h.Value)
		default:
			m[name] = []any{old, h.Value}
		}
	}
	return m
}

// parse reads a body. It reports false for one that is not a single JSON value.
func parse(body []byte) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, false
	}
	return v, true
}
