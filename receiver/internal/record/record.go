// Package record defines how stores write a receiver's records. The tables and keys are the same in every language, so that
// receivers in different languages can share a store: digests in hex, header fields as a JSON object, bodies in base64, times
// in milliseconds since 1970.
package record

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/receiver"
)

// Digest is the hex form; "" for the zero digest.
func Digest(d receiver.Digest) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// Millis is a time as it is stored.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// Header is header fields as a JSON object with names in lower case.
func Header(h http.Header) (string, error) {
	fields := make(map[string]string, len(h))
	for name, values := range h {
		fields[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	text, err := json.Marshal(fields)
	return string(text), err
}

// Body is a body in base64; not valid if there is none.
func Body(b []byte) sql.NullString {
	if b == nil {
		return sql.NullString{}
	}
	return sql.NullString{String: base64.StdEncoding.EncodeToString(b), Valid: true}
}

// A Row is a key as SQL stores keep it.
type Row struct {
	Fingerprint string
	Status      sql.NullInt64
	Headers     sql.NullString
	Body        sql.NullString
	Until       int64
}

// Live reports whether the row has not expired.
func (r *Row) Live(now time.Time) bool { return r.Until > Millis(now) }

// Reservation is the state that a repeat finds.
func (r *Row) Reservation() (receiver.Reservation, error) {
	fingerprint, ok := receiver.ParseDigest(r.Fingerprint)
	if !ok {
		return receiver.Reservation{}, fmt.Errorf("read key: malformed fingerprint")
	}
	found := receiver.Reservation{State: receiver.InProgress, Fingerprint: fingerprint}
	if !r.Status.Valid {
		return found, nil
	}
	outcome, err := Outcome(int(r.Status.Int64), r.Headers.String, r.Body)
	found.State, found.Outcome = receiver.Completed, outcome
	return found, err
}

// Outcome reads a kept answer.
func Outcome(status int, headers string, body sql.NullString) (receiver.Outcome, error) {
	o := receiver.Outcome{Status: status, Header: http.Header{}}
	if status < 200 || status > 599 { // not a kept answer, and net/http panics on some of these
		return o, fmt.Errorf("read status: %d", status)
	}
	fields := map[string]string{}
	if headers != "" {
		if err := json.Unmarshal([]byte(headers), &fields); err != nil {
			return o, fmt.Errorf("read header fields: %w", err)
		}
	}
	for name, value := range fields {
		o.Header.Set(name, value)
	}
	if body.Valid {
		var err error
		if o.Body, err = base64.StdEncoding.DecodeString(body.String); err != nil {
			return o, fmt.Errorf("read body: %w", err)
		}
	}
	return o, nil
}
