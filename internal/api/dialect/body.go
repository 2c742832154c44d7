package dialect

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/problem"
)

// readBody reads a whole body of the media types that the route takes. No body at all is fine here: whether there must be
// one is the operation's matter.
func readBody(w http.ResponseWriter, r *http.Request, route Route) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, problem.UnsupportedMediaType.In("Content-Encoding", "send the body as it is, not encoded")
	}
	if r.ContentLength > route.Limit {
		return nil, tooLarge(route.Limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, route.Limit))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, tooLarge(route.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem.RequestTimeout.With("the body did not arrive in time")
	case err != nil:
		return nil, problem.InvalidRequest.In("body", "ended before its announced length")
	case len(body) == 0:
		return nil, nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(route.MediaTypes, media) {
		return nil, problem.UnsupportedMediaType.In("Content-Type", "must be %s", strings.Join(route.MediaTypes, " or "))
	}
	return body, nil
}

func tooLarge(limit int64) error { return problem.TooLarge.With("the limit is %d bytes", limit) }

// Members reads a JSON object and keeps the text of its members, so that absent, null and wrong types can be told apart.
// An empty body is an empty object.
func Members(body []byte) (map[string]json.RawMessage, error) {
	if len(body) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	if !json.Valid(body) {
		return nil, problem.MalformedJSON.In("body", "is not valid JSON")
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil || m == nil {
		return nil, problem.InvalidRequest.In("body", "must be a JSON object")
	}
	return m, nil
}
