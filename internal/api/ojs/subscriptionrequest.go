package ojs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
)

// subscriptionRequest holds the members of a request about a subscription. Members that the request does not name are nil.
type subscriptionRequest struct {
	url      *string
	events   []string
	active   *bool
	secret   string
	filter   *godwit.Filter // the criteria that this API can set; a pointer to nil removes the filter
	metadata *godwit.Metadata
	timeout  **float64
	headers  *map[string]string

	clearFilter bool
	wrong       []problem.Field
}

// Bounds of what a client may set here.
const (
	minSecret, maxSecret   = 16, 256 // characters (decision 9)
	minTimeout, maxTimeout = 5, 60   // seconds (OJS-DLV-13)
)

// readSubscriptionRequest reads the members of a request about a subscription and collects all errors.
func readSubscriptionRequest(body []byte) (*subscriptionRequest, map[string]json.RawMessage, error) {
	members, err := httpapi.Members(body)
	if err != nil {
		return nil, nil, err
	}
	w := &subscriptionRequest{}
	for _, m := range []struct {
		name string
		read func(json.RawMessage)
	}{
		{"url", w.readURL}, {"events", w.readEvents}, {"active", w.readActive}, {"secret", w.readSecret},
		{"filter", w.readFilter}, {"metadata", w.readMetadata}, {"timeout_seconds", w.readTimeout}, {"headers", w.readHeaders},
	} {
		if raw, given := members[m.name]; given {
			m.read(raw)
		}
	}
	return w, members, nil
}

func (w *subscriptionRequest) refuse(field, format string, args ...any) {
	w.wrong = append(w.wrong, problem.Field{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// err returns the collected errors; nil if there are none.
func (w *subscriptionRequest) err() error { return invalid(w.wrong) }

// maxErrors bounds the errors in a response. A client with more errors learns of the others after it has corrected these.
const maxErrors = 20

// invalid returns a problem with these fields; nil if there are none.
func invalid(fields []problem.Field) error {
	if len(fields) == 0 {
		return nil
	}
	p := problem.InvalidRequest.In(fields[0].Field, "%s", fields[0].Detail)
	p.Errors = fields[:min(len(fields), maxErrors)]
	return p
}

func (w *subscriptionRequest) readURL(raw json.RawMessage) {
	if w.url = textOf(raw); w.url == nil {
		w.refuse("url", "must be a string")
	} else if *w.url == "" {
		w.refuse("url", "must not be empty")
	}
}

func (w *subscriptionRequest) readEvents(raw json.RawMessage) {
	list, ok := textsOf(raw)
	switch {
	case !ok:
		w.refuse("events", "must be a list of event types")
	case len(list) == 0:
		w.refuse("events", "must name at least one event type; \"*\" is all of them")
	}
	w.events = list
}

func (w *subscriptionRequest) readActive(raw json.RawMessage) {
	var active bool
	if isNull(raw) || json.Unmarshal(raw, &active) != nil {
		w.refuse("active", "must be true or false")
		return
	}
	w.active = &active
}

func (w *subscriptionRequest) readSecret(raw json.RawMessage) {
	secret := textOf(raw)
	if secret == nil || utf8.RuneCountInString(*secret) < minSecret || utf8.RuneCountInString(*secret) > maxSecret {
		w.refuse("secret", "must be a string of %d to %d characters, or absent: then one is made", minSecret, maxSecret)
		return
	}
	w.secret = *secret
}

func (w *subscriptionRequest) readFilter(raw json.RawMessage) {
	var f godwit.Filter
	w.filter = &f
	if isNull(raw) {
		w.clearFilter = true
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		w.refuse("filter", "must be an object with queues, job_types, or both")
		return
	}
	for _, name := range sortedNames(members) {
		attribute := map[string]string{"queues": attributeQueue, "job_types": attributeJobType}[name]
		if attribute == "" {
			w.refuse("filter."+httpapi.Clip(name), "is not a criterion: use queues and job_types")
			continue
		}
		list, ok := textsOf(members[name])
		if !ok {
			w.refuse("filter."+name, "must be a list of strings")
			continue
		}
		if len(list) > 0 { // an empty list restricts nothing (OJS-FLT-9)
			if f == nil {
				f = godwit.Filter{}
			}
			f[attribute] = list
		}
	}
}

func (w *subscriptionRequest) readMetadata(raw json.RawMessage) {
	w.metadata = &godwit.Metadata{}
	if isNull(raw) {
		return
	}
	if json.Unmarshal(raw, w.metadata) != nil || *w.metadata == nil {
		w.refuse("metadata", "must be an object")
	}
}

func (w *subscriptionRequest) readTimeout(raw json.RawMessage) {
	var seconds *float64
	w.timeout = &seconds
	if isNull(raw) {
		return
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < minTimeout || n > maxTimeout {
		w.refuse("timeout_seconds", "must be a whole number from %d to %d", minTimeout, maxTimeout)
		return
	}
	f := float64(n)
	seconds = &f
}

func (w *subscriptionRequest) readHeaders(raw json.RawMessage) {
	w.headers = &map[string]string{}
	if isNull(raw) {
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		w.refuse("headers", "must be an object of strings")
		return
	}
	for _, name := range sortedNames(members) {
		value := textOf(members[name])
		if value == nil {
			w.refuse("headers."+httpapi.Clip(name), "must be a string")
			continue
		}
		(*w.headers)[name] = *value
	}
}

// apply applies the request to a subscription. Each member that the request names replaces the old one entirely. Criteria
// that only other APIs can set stay, unless the request removes the filter.
func (w *subscriptionRequest) apply(spec *management.EndpointSpec) {
	if w.url != nil {
		spec.URL = *w.url
	}
	if w.events != nil {
		spec.Patterns = w.events
	}
	if w.filter != nil {
		next := godwit.Filter{}
		for name, values := range spec.Filter {
			if name != attributeQueue && name != attributeJobType && !w.clearFilter {
				next[name] = values
			}
		}
		for name, values := range *w.filter {
			next[name] = values
		}
		spec.Filter = next
	}
	if w.metadata != nil {
		spec.Metadata = *w.metadata
	}
	if w.timeout != nil {
		spec.Policy.TimeoutSeconds = *w.timeout
	}
	if w.headers != nil {
		spec.Headers = *w.headers
	}
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// textOf reads a JSON string; nil if raw is not a string.
func textOf(raw json.RawMessage) *string {
	var text *string
	if json.Unmarshal(raw, &text) != nil {
		return nil
	}
	return text
}

// textsOf reads a JSON list of strings.
func textsOf(raw json.RawMessage) ([]string, bool) {
	var list []*string
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, false
	}
	texts := make([]string, len(list))
	for i, text := range list {
		if text == nil {
			return nil, false
		}
		texts[i] = *text
	}
	return texts, true
}

func sortedNames(members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
