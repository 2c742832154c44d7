package native

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/godwit-hq/godwit/internal/problem"
)

// readBody reads a whole body of at most limit bytes. A length that is announced gives the buffer its size; a body without
// one is read until it ends or is too long.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		// What is stored is what will be sent, and it will be sent without this header.
		return nil, problem.UnsupportedMediaType.In("Content-Encoding", "send the body as it is, not encoded")
	}
	switch n := r.ContentLength; {
	case n > limit:
		return nil, tooLarge(limit)
	case n == 0:
		return nil, nil
	case n > 0:
		body := make([]byte, n)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, cannotRead(err, limit)
		}
		return body, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, cannotRead(err, limit)
	}
	return body, nil
}

func tooLarge(limit int64) error { return problem.TooLarge.With("the limit is %d bytes", limit) }

func cannotRead(err error, limit int64) error {
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.RequestTimeout.With("the body did not arrive in time")
	}
	return problem.InvalidRequest.In("body", "ended before its announced length")
}

func rewound(body []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }

// checkJSONBody refuses a body that does not call itself JSON. No body at all is fine here: whether there must be one is
// the operation's matter.
func checkJSONBody(r *http.Request, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && (media == "application/json" || r.Method == http.MethodPatch && media == "application/merge-patch+json") {
		return nil
	}
	want := "application/json"
	if r.Method == http.MethodPatch {
		want += " or application/merge-patch+json"
	}
	return problem.UnsupportedMediaType.In("Content-Type", "must be %s", want)
}
