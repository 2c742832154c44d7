package httpapi

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

// ReadBody reads a whole body of at most limit bytes. Content-Length, if present, sets the size of the buffer. A body
// without one is read until it ends or exceeds the limit.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	for _, enc := range r.Header["Content-Encoding"] {
		if enc != "" && !strings.EqualFold(enc, "identity") {
			// Receivers get the stored bytes without this header, so an encoded body would be unreadable to them.
			return nil, problem.UnsupportedMediaType.In("Content-Encoding", "send the body as it is, not encoded")
		}
	}
	switch n := r.ContentLength; {
	case n > limit:
		return nil, tooLarge(limit)
	case n == 0:
		return nil, nil
	case n > 0:
		body := make([]byte, n)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, unreadable(err, limit)
		}
		return body, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, unreadable(err, limit)
	}
	return body, nil
}

func tooLarge(limit int64) error { return problem.TooLarge.With("the limit is %d bytes", limit) }

func unreadable(err error, limit int64) error {
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.RequestTimeout.With("the body did not arrive in time")
	}
	return problem.InvalidRequest.In("body", "ended before its announced length")
}

// CheckMediaType rejects a body whose media type is not listed. A request without a body needs no Content-Type; the
// operation decides whether it needs a body.
func CheckMediaType(r *http.Request, body []byte, allowed ...string) error {
	if len(body) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(allowed, media) || len(r.Header["Content-Type"]) > 1 {
		return problem.UnsupportedMediaType.In("Content-Type", "must be %s, and given once", strings.Join(allowed, " or "))
	}
	return nil
}

// Members reads a JSON object into the raw text of its members, so that handlers can tell absent, null and wrong types
// apart. An empty body counts as an empty object.
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

// Clip shortens a name that a client sent, so that the response that quotes it stays short.
func Clip(name string) string {
	const most = 64
	name = strings.ToValidUTF8(name, "?")
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
