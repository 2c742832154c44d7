package native

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// VersionParams is the condition of a request that changes an object.
type VersionParams struct {
	IfMatch string `header:"If-Match" doc:"ETag of the object as the caller knows it, or * for any. If the object has another version, or does not exist, the answer is 412."`
}

// MatchParams are the conditions of a request that creates or replaces an object.
type MatchParams struct {
	VersionParams
	IfNoneMatch string `header:"If-None-Match" doc:"* creates the object and replaces none: if it exists, the answer is 412."`
}

// expected refuses a request whose expectation of an object does not hold.
func expected(m godwit.Match, version int64) error {
	if m.Holds(version) {
		return nil
	}
	return problem.PreconditionFailed.With("the object has the version %d now; read it again", version)
}

func (p VersionParams) match() (godwit.Match, error) {
	var m godwit.Match
	switch p.IfMatch {
	case "":
	case "*":
		m.Exists = true
	default:
		quoted, found := strings.CutPrefix(p.IfMatch, `"`)
		number, closed := strings.CutSuffix(quoted, `"`)
		version, err := strconv.ParseInt(number, 10, 64)
		if !found || !closed || err != nil || version < 1 {
			return m, problem.InvalidRequest.In("If-Match", `must be the ETag of an earlier answer, as in "7", or *`)
		}
		m.Version = version
	}
	return m, nil
}

func (p MatchParams) match() (godwit.Match, error) {
	m, err := p.VersionParams.match()
	if err != nil {
		return m, err
	}
	switch p.IfNoneMatch {
	case "":
	case "*":
		m.Missing = true
	default:
		return m, problem.InvalidRequest.In("If-None-Match", "must be *")
	}
	return m, nil
}

// etag returns the ETag of an object with a version; none for objects that have none.
func etag(version int64) string {
	if version == 0 {
		return ""
	}
	return `"` + strconv.FormatInt(version, 10) + `"`
}

// A putOutput is the answer to a request that created or replaced an object.
type putOutput[T any] struct {
	Status   int
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     T
}

func written[T any](made bool, version int64, location string, body T) *putOutput[T] {
	out := &putOutput[T]{Status: http.StatusOK, ETag: etag(version), Body: body}
	if made {
		out.Status, out.Location = http.StatusCreated, location
	}
	return out
}

// creates describes both answers of an operation that creates or replaces an object.
func creates[T any](r *router, op huma.Operation) huma.Operation {
	var view T
	op.DefaultStatus = http.StatusOK
	op.Responses = r.failures(map[string]*huma.Response{
		"200": jsonResponse("Replaced, or already as the request says", r.refOf(view)), "201": jsonResponse("Created", r.refOf(view)),
	})
	return op
}
