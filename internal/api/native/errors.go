package native

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/godwit-hq/godwit/internal/problem"
)

// huma is configured by package variables. This API is the only user of huma in the program.
func init() {
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return fromHuma(status, msg, errs)
	}
	validation.MsgExpectedRequiredProperty = requiredPrefix + "%s"
}

// requiredPrefix marks huma's message about a missing member, so that fieldOf can name the member.
const requiredPrefix = "missing member: "

// complete turns an error into the problem that huma writes.
func (r *router) complete(ctx context.Context, err error) *problem.Problem {
	in := sessionOf(ctx)
	return r.problems.Complete(in.request, in.requestID, err)
}

// fromHuma converts the errors that huma found before the handler ran. It leaves values out, because they may be secrets.
func fromHuma(status int, msg string, errs []error) *problem.Problem {
	var fields []problem.Field
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok {
			fields = append(fields, fieldOf(d.ErrorDetail()))
		}
	}
	kind := kindOf(status, fields)
	if len(fields) == 0 && kind == problem.InvalidRequest {
		fields = []problem.Field{{Field: "body", Detail: msg}} // the only error that huma reports without a place: the body is missing
	}
	p := kind.With("")
	p.Errors = fields
	for i, f := range fields {
		if i > 0 {
			p.Detail += "; "
		}
		p.Detail += f.Field + ": " + f.Detail
	}
	if p.Detail == "" {
		p.Detail = msg
	}
	return p
}

func kindOf(status int, fields []problem.Field) *problem.Kind {
	switch status {
	case http.StatusUnprocessableEntity:
		return problem.InvalidRequest
	case http.StatusBadRequest:
		if len(fields) == 1 && fields[0].Field == "body" {
			return problem.MalformedJSON
		}
		return problem.InvalidRequest
	case http.StatusRequestEntityTooLarge:
		return problem.TooLarge
	case http.StatusUnsupportedMediaType:
		return problem.UnsupportedMediaType
	case http.StatusRequestTimeout:
		return problem.RequestTimeout
	}
	return problem.Internal
}

// fieldOf turns body.policy.max_retries into policy.max_retries. For a missing member it replaces the parent by the member.
func fieldOf(d *huma.ErrorDetail) problem.Field {
	f := problem.Field{Field: d.Location, Detail: d.Message}
	if name, missing := strings.CutPrefix(d.Message, requiredPrefix); missing {
		f.Field += "." + name
		f.Detail = "is required"
	}
	for _, part := range []string{"body.", "query.", "path.", "header."} {
		if rest, ok := strings.CutPrefix(f.Field, part); ok {
			f.Field = rest
			break
		}
	}
	if len(f.Field) > 200 {
		f.Field = fmt.Sprintf("%.200s…", f.Field)
	}
	return f
}
