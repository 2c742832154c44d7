package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// micros returns the stored form of a time; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// within reports whether t lies between the bounds, inclusive, at the precision of stored times. A zero bound does not count.
func within(t, since, until time.Time) bool {
	return (since.IsZero() || micros(t) >= micros(since)) && (until.IsZero() || micros(t) <= micros(until))
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// document encodes a rarely used member: JSON, or NULL if it is empty.
func document(v any) (driver.Value, error) {
	text, err := documentText(v)
	if err != nil || text == "" {
		return nil, err
	}
	return text, nil
}

// documentText encodes a document as text; "" if it is empty.
func documentText(v any) (string, error) {
	if r := reflect.ValueOf(v); r.IsZero() || (r.Kind() == reflect.Map || r.Kind() == reflect.Slice) && r.Len() == 0 {
		return "", nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode document: %w", err)
	}
	return string(b), nil
}

// parse decodes a document; NULL leaves v unchanged.
func (r *rows) parse(i int, v any) error {
	return parseDocument(r.text(i), v)
}

func parseDocument(text string, v any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("decode document: %w", err)
	}
	return nil
}
