package cybercube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// A form reads the members of a request and collects all errors, so that a client learns of them at once.
type form struct {
	members map[string]json.RawMessage
	errs    []error
}

// readForm reads a JSON object and rejects members that are not in known.
func readForm(body []byte, known ...string) (*form, error) {
	if !utf8.Valid(body) {
		return nil, problem.MalformedJSON.In("body", "must be UTF-8")
	}
	members, err := httpapi.Members(body)
	if err != nil {
		return nil, err
	}
	f := &form{members: members}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			f.wrong(httpapi.Clip(name), "is not a member that is known")
		}
	}
	return f, nil
}

// maxWrong bounds the errors in a response. A client with more errors learns of the others after it has corrected these.
const maxWrong = 20

func (f *form) wrong(field, format string, args ...any) {
	if len(f.errs) == maxWrong {
		return
	}
	f.errs = append(f.errs, &godwit.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

func (f *form) err() error { return errors.Join(f.errs...) }

func (f *form) has(name string) bool { return f.members[name] != nil }

func (f *form) null(name string) bool { return string(f.members[name]) == "null" }

// text reads a string; an absent member gives "".
func (f *form) text(name string) string {
	var v string
	f.read(name, &v, "must be a string")
	return v
}

func (f *form) texts(name string) []string {
	var v []string
	f.read(name, &v, "must be a list of strings")
	return v
}

func (f *form) bool(name string) bool {
	var v bool
	f.read(name, &v, "must be true or false")
	return v
}

// time reads a time; an absent member gives the zero time.
func (f *form) time(name string) time.Time {
	text := f.text(name)
	if text == "" {
		if f.has(name) && len(f.errs) == 0 {
			f.wrong(name, timeForm)
		}
		return time.Time{}
	}
	t, err := parseTime(text)
	if err != nil {
		f.wrong(name, timeForm)
	}
	return t
}

func (f *form) required(names ...string) {
	for _, name := range names {
		if !f.has(name) {
			f.wrong(name, "is required")
		}
	}
}

// read decodes a member. Null is a value of the wrong type; callers that allow null check for it first.
func (f *form) read(name string, into any, otherwise string) {
	raw, given := f.members[name]
	if !given {
		return
	}
	if f.null(name) || json.Unmarshal(raw, into) != nil {
		f.wrong(name, "%s", otherwise)
	}
}

const timeForm = "must be a time as in 2026-01-17T12:00:00Z"

// parseTime reads a time and rejects one that cannot be stored or formatted again.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, err
	}
	t = t.UTC()
	if t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, errors.New("out of range")
	}
	return t, nil
}

// query reads the query parameters of a request and rejects unknown, empty and repeated ones.
func query(r *url.URL, known ...string) (*params, error) {
	values, err := url.ParseQuery(r.RawQuery)
	if err != nil {
		return nil, problem.InvalidRequest.In("query", "is not a valid query string")
	}
	p := &params{values: values}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			p.wrong(httpapi.Clip(name), "is not a parameter of this operation")
		} else if len(values[name]) > 1 {
			p.wrong(name, "must be given once")
		} else if values.Get(name) == "" && name != "cursor" { // an empty cursor means the first page
			p.wrong(name, "must not be empty; leave the parameter out")
		}
	}
	return p, nil
}

type params struct {
	form
	values url.Values
}

// limit reads the number of entries that the client asks for.
func (p *params) limit(usual, most int) int {
	text := p.values.Get("limit")
	if !p.values.Has("limit") {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.wrong("limit", "must be a number from 1 to %d", most)
		return usual
	}
	return n
}

func (p *params) time(name string) time.Time {
	if !p.values.Has(name) {
		return time.Time{}
	}
	t, err := parseTime(p.values.Get(name))
	if err != nil {
		p.wrong(name, timeForm)
	}
	return t
}
