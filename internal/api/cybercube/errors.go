package cybercube

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Errors writes error responses in the form of the standard's APIs. It logs 5xx errors like every other API.
type Errors struct {
	Problems *problem.Writer
	Now      func() time.Time
}

type errorBody struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Code      string        `json:"code"`
	Message   string        `json:"message"`
	Details   *errorDetails `json:"details,omitempty"`
	RequestID string        `json:"request_id"`
	Timestamp string        `json:"timestamp"`
}

type errorDetails struct {
	Fields     map[string][]string `json:"fields,omitempty"` // all errors of a member, by its name
	RetryAfter int                 `json:"retry_after,omitempty"`
}

// Write answers the request with err.
func (e *Errors) Write(w http.ResponseWriter, r *http.Request, err error) {
	httpapi.NameRequest(w, r)
	p := e.Problems.Complete(r, w.Header().Get(problem.RequestIDHeader), err)
	h := w.Header()
	for name, values := range p.GetHeaders() {
		h[name] = values
	}
	status, code := e.classify(r, p)
	out := errorObject{Code: code, Message: p.Title, RequestID: p.RequestID, Timestamp: timestamp(e.Now())}
	if p.Detail != "" {
		out.Message = p.Title + ": " + p.Detail
	}
	out.Details = details(p)
	h.Del("Location")
	writeJSON(w, r, status, errorBody{out})
}

// classify maps a problem to the standard's status and code. The standard uses 400 for every invalid request, where other
// APIs tell syntax errors from invalid values.
func (e *Errors) classify(r *http.Request, p *problem.Problem) (int, string) {
	switch k := p.Kind(); k {
	case problem.MalformedJSON, problem.InvalidRequest, problem.Invalid:
		return http.StatusBadRequest, "VALIDATION_ERROR"
	case problem.Unauthorized:
		if len(r.Header["Authorization"]) == 0 {
			return p.Status, "AUTH_TOKEN_MISSING"
		}
		return p.Status, "AUTH_TOKEN_INVALID"
	case problem.Forbidden:
		return p.Status, "AUTH_INSUFFICIENT_SCOPE"
	case problem.NotFound:
		return p.Status, "RESOURCE_NOT_FOUND"
	case problem.Conflict, problem.LimitReached:
		return p.Status, "RESOURCE_CONFLICT"
	case problem.TooManyRequests:
		return p.Status, "RATE_LIMIT_EXCEEDED"
	case problem.Internal:
		return p.Status, "SERVER_ERROR"
	case problem.Unavailable:
		return p.Status, "SERVER_UNAVAILABLE"
	}
	return p.Status, strings.ToUpper(strings.ReplaceAll(p.Code, "-", "_"))
}

func details(p *problem.Problem) *errorDetails {
	d := errorDetails{}
	for _, f := range p.Errors {
		if d.Fields == nil {
			d.Fields = map[string][]string{}
		}
		name := memberName(f.Field)
		d.Fields[name] = append(d.Fields[name], f.Detail)
	}
	if p.Status == http.StatusTooManyRequests {
		d.RetryAfter, _ = strconv.Atoi(p.GetHeaders().Get("Retry-After"))
	}
	if d.Fields == nil && d.RetryAfter == 0 {
		return nil
	}
	return &d
}

// memberName returns this API's name of a member that package management names.
func memberName(field string) string {
	if rest, ok := strings.CutPrefix(field, "patterns"); ok {
		return "events" + rest
	}
	if field == "" {
		return "body"
	}
	return field
}
