package ojs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Errors answers failed requests in the form of the specification's HTTP binding. It is also how this API's idempotency guard
// refuses.
type Errors struct {
	Log *slog.Logger
}

type errorBody struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Code      string       `json:"code"`
	Message   string       `json:"message"`
	Retryable bool         `json:"retryable"` // the same request may succeed later
	Details   errorDetails `json:"details"`
	RequestID string       `json:"request_id,omitempty"`
}

type errorDetails struct {
	Fields []fieldDetail `json:"fields,omitempty"`
}

type fieldDetail struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// duplicate is an event whose id and source came with other content before.
var duplicate = problem.Conflict.With("this id and source came with other content before; a different event needs an id of its own")

// Write answers the request with what the error is to a client.
func (e *Errors) Write(w http.ResponseWriter, r *http.Request, err error) {
	h := w.Header()
	httpapi.NameRequest(w, r)
	p := (&problem.Writer{Log: e.Log}).Complete(r, h.Get(problem.RequestIDHeader), err)
	for name, values := range p.GetHeaders() {
		h[name] = values
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	status, object := describe(p)
	if err == error(duplicate) {
		object.Code = "duplicate"
	}
	object.RequestID = p.RequestID
	writeJSON(w, status, errorBody{object})
}

// codes are the specification's own where it has one; the others are ours, in its spelling.
var codes = map[*problem.Kind]string{
	problem.MalformedJSON:   "invalid_request",
	problem.InvalidRequest:  "invalid_request",
	problem.Invalid:         "invalid_request",
	problem.TooManyRequests: "rate_limited",
	problem.Internal:        "backend_error",
}

// describe turns a problem into an error object and the status that goes with it.
func describe(p *problem.Problem) (int, errorObject) {
	o := errorObject{Code: codes[p.Kind()], Message: p.Title, Details: errorDetails{Fields: named(p)}}
	if o.Code == "" {
		o.Code = strings.ReplaceAll(p.Code, "-", "_")
	}
	switch {
	case len(p.Errors) > 0:
		var each []string
		for _, f := range o.Details.Fields {
			each = append(each, f.Field+": "+f.Reason)
		}
		o.Message = strings.Join(each, "; ")
	case p.Detail != "":
		o.Message = p.Detail
	}
	status := p.Status
	if p.Kind() == problem.Invalid { // the specification has one status for all that is wrong with a request
		status = http.StatusBadRequest
	}
	o.Retryable = status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout ||
		p.Kind() == problem.KeyInProgress
	return status, o
}

// fieldNames are what the members of a subscription are called by the registry and here.
var fieldNames = []struct{ registry, here string }{
	{"patterns", "events"},
	{"filter.queue", "filter.queues"},
	{"filter.job_type", "filter.job_types"},
	{"policy.timeout_seconds", "timeout_seconds"},
}

// named lists the fields by what the client calls them. Only the registry's own findings need that.
func named(p *problem.Problem) []fieldDetail {
	var list []fieldDetail
	for _, f := range p.Errors {
		field := f.Field
		for _, n := range fieldNames {
			rest, ok := strings.CutPrefix(field, n.registry)
			if ok && p.Kind() == problem.Invalid && (rest == "" || rest[0] == '[' || rest[0] == '.') {
				field = n.here + rest
			}
		}
		list = append(list, fieldDetail{Field: field, Reason: f.Detail})
	}
	return list
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := encode(v)
	if err != nil { // what is encoded are texts, numbers and JSON that was checked
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"backend_error","message":"Internal error","retryable":true,"details":{}}}`)
	}
	w.Header().Set("Content-Type", openJobSpec)
	w.WriteHeader(status)
	w.Write(body)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Redact takes secrets out of an answer, so that a repeat of a request does not show them a second time (OT-26).
func Redact(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return body
	}
	if nested, ok := members["subscription"]; ok {
		members["subscription"] = Redact(nested)
	}
	if _, shown := members["secret"]; shown {
		members["secret_redacted"] = json.RawMessage("true") // who lost it rotates (IDS IT-14)
	}
	delete(members, "secret")
	delete(members, "new_secret")
	redacted, err := encode(members)
	if err != nil {
		return nil // better no answer than one with a secret in it
	}
	return redacted
}
