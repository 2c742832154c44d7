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

// Errors writes error responses in the form of the specification's HTTP binding. This API's idempotency guard refuses with
// it too.
type Errors struct {
	Log *slog.Logger
	// Outage is that of problem.Writer. May be nil.
	Outage *problem.Outage
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

// duplicate is the error for an id and source that came with other content before.
var duplicate = problem.Conflict.With("this id and source came with other content before; a different event needs an id of its own")

// Write answers the request with err.
func (e *Errors) Write(w http.ResponseWriter, r *http.Request, err error) {
	h := w.Header()
	httpapi.NameRequest(w, r)
	p := (&problem.Writer{Log: e.Log, Outage: e.Outage}).Complete(r, h.Get(problem.RequestIDHeader), err)
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

// codes are the specification's own where it defines one. The others are ours, in the same spelling.
var codes = map[*problem.Kind]string{
	problem.MalformedJSON:   "invalid_request",
	problem.InvalidRequest:  "invalid_request",
	problem.Invalid:         "invalid_request",
	problem.TooManyRequests: "rate_limited",
	problem.Internal:        "backend_error",
}

// describe turns a problem into an error object and its status.
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
	if p.Kind() == problem.Invalid { // the specification has one status for every invalid request
		status = http.StatusBadRequest
	}
	o.Retryable = status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout ||
		p.Kind() == problem.KeyInProgress
	return status, o
}

// fieldNames maps the names in package management of subscription members to this API's names.
var fieldNames = []struct{ management, here string }{
	{"patterns", "events"},
	{"filter.queue", "filter.queues"},
	{"filter.job_type", "filter.job_types"},
	{"policy.timeout_seconds", "timeout_seconds"},
}

// named lists the fields under this API's names. Only errors of package management need renaming.
func named(p *problem.Problem) []fieldDetail {
	var list []fieldDetail
	for _, f := range p.Errors {
		field := f.Field
		for _, n := range fieldNames {
			rest, ok := strings.CutPrefix(field, n.management)
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
	if err != nil { // the values are strings, numbers and checked JSON, so encoding does not fail
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

// Redact removes secrets from a response, so that a repeat of the request does not show them again (OT-26).
func Redact(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return body
	}
	if nested, ok := members["subscription"]; ok {
		members["subscription"] = Redact(nested)
	}
	if _, shown := members["secret"]; shown {
		members["secret_redacted"] = json.RawMessage("true") // a client that lost the secret must rotate it (IDS IT-14)
	}
	delete(members, "secret")
	delete(members, "new_secret")
	redacted, err := encode(members)
	if err != nil {
		return nil // no response is better than one that shows a secret
	}
	return redacted
}
