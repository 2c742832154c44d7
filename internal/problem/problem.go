package problem

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// ContentType is the media type of problem details.
const ContentType = "application/problem+json"

// A Problem is the body of a failed response.
type Problem struct {
	Type      string  `json:"type" format:"uri-reference" doc:"Documentation of this kind of problem"`
	Title     string  `json:"title" doc:"Short summary; the same for every problem of this kind"`
	Status    int     `json:"status" doc:"HTTP status code"`
	Code      string  `json:"code" doc:"Stable code of the kind of problem; decide by this"`
	Detail    string  `json:"detail,omitempty" doc:"What happened this time, for people"`
	Errors    []Field `json:"errors,omitempty" doc:"The fields that are wrong"`
	RequestID string  `json:"request_id,omitempty" doc:"Name of the request in the server's log"`

	Downstream []Downstream `json:"downstream,omitempty" doc:"Outcomes at the endpoints that have not accepted a relayed event"`

	kind   *Kind
	header http.Header
}

// Downstream is the outcome at one endpoint. It reports the endpoint's status but never uses it as the response's own: a 401
// or 410 of a receiver does not concern the upstream (EDS T-12).
type Downstream struct {
	Delivery string `json:"delivery" doc:"Id of the delivery"`
	Outcome  string `json:"outcome" enum:"pending,terminal,exhausted"`
	Status   int    `json:"status,omitempty" doc:"HTTP status of the endpoint's last answer"`
	Reason   string `json:"reason,omitempty"`
}

// A Field describes the error in one member of a request.
type Field struct {
	Field  string `json:"field" doc:"Path of the member, as in policy.max_retries or events[3].type"`
	Detail string `json:"detail" doc:"What is wrong with it"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Code + ": " + p.Detail
}

// Unwrap returns the kind, so that errors.Is(err, problem.NotFound) holds.
func (p *Problem) Unwrap() error {
	if p.kind == nil {
		return nil
	}
	return p.kind
}

// GetStatus returns the HTTP status. huma calls it.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the response headers. huma calls it.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType replaces the negotiated JSON type by that of problem details. huma calls it.
func (p *Problem) ContentType(string) string { return ContentType }

// WithHeader adds a response header.
func (p *Problem) WithHeader(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(name, value)
	return p
}

// Kind returns the kind of the problem.
func (p *Problem) Kind() *Kind { return p.kind }

// InField returns a problem of the same kind about the field. Other errors are returned unchanged.
func InField(field string, err error) error {
	var p *Problem
	if !errors.As(err, &p) || p.kind == nil {
		return err
	}
	return p.kind.In(field, "%s", p.Detail)
}

// From converts an error into the problem that a client sees.
func From(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var k *Kind
	if errors.As(err, &k) {
		return k.With("")
	}
	if fields := fieldErrors(err); len(fields) > 0 {
		return fromFields(fields)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return NotFound.With("")
	case errors.Is(err, store.ErrConflict):
		return Conflict.With("")
	case errors.Is(err, store.ErrUnavailable):
		return Unavailable.With("the store cannot be reached or written now")
	case errors.Is(err, engine.ErrStopping):
		return Unavailable.With("the server is stopping")
	case errors.Is(err, engine.ErrFanouts):
		return TooManyRequests.With("the deliveries of too many earlier events of this tenant are still being stored; nothing was stored of this request")
	case errors.Is(err, engine.ErrBroadcasts):
		return TooManyRequests.With("%d broadcasts of this environment are still being worked off, and it may have no more; nothing was stored of this request", godwit.MaxOpenBroadcasts)
	case errors.Is(err, engine.ErrInFlight):
		return Conflict.With("a request for it is on the wire at this moment")
	case errors.Is(err, engine.ErrInProgress):
		return KeyInProgress.With("the first request with this key has not been answered yet")
	case errors.Is(err, engine.ErrKeyReused):
		return KeyReused.With("this key came with another payload before")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable.With("the operation was not finished in time")
	case errors.Is(err, godwit.ErrBadID):
		return InvalidRequest.With("%s", godwit.ErrBadID.Error())
	}
	return Internal.With("")
}

func fromFields(fields []*godwit.FieldError) *Problem {
	p := Invalid.With("")
	var details []string
	for _, f := range fields {
		p.Errors = append(p.Errors, Field{Field: f.Field, Detail: f.Detail})
		details = append(details, f.Error())
	}
	p.Detail = strings.Join(details, "; ")
	return p
}

// fieldErrors collects every field error in err's tree.
func fieldErrors(err error) []*godwit.FieldError {
	switch e := err.(type) {
	case nil:
		return nil
	case *godwit.FieldError:
		return []*godwit.FieldError{e}
	case interface{ Unwrap() []error }:
		var all []*godwit.FieldError
		for _, one := range e.Unwrap() {
			all = append(all, fieldErrors(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return fieldErrors(e.Unwrap())
	}
	return nil
}

// Renamed returns the problem with the client's names of its fields.
func (p *Problem) Renamed(name func(field string) string) *Problem {
	own := *p
	own.Errors = make([]Field, len(p.Errors))
	for i, f := range p.Errors {
		own.Errors[i] = Field{Field: name(f.Field), Detail: f.Detail}
		if p.Detail == f.Field+": "+f.Detail {
			own.Detail = own.Errors[i].Field + ": " + f.Detail
		}
	}
	return &own
}
