package cybercube

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
)

// data is the envelope of every successful response.
type data[T any] struct {
	Data T `json:"data"`
}

// list is the envelope of one page of a list.
type list[T any] struct {
	Data  []T   `json:"data"`
	Meta  meta  `json:"meta"`
	Links links `json:"links"`
}

type meta struct {
	Pagination pagination `json:"pagination"`
}

type pagination struct {
	PageSize int  `json:"page_size"` // entries of this page
	HasNext  bool `json:"has_next"`
	HasPrev  bool `json:"has_prev"`
}

type links struct {
	Self string `json:"self"`
	Next string `json:"next,omitempty"`
}

func answer[T any](c *httpapi.Call, status int, v T) error {
	writeJSON(c.W, c.R, status, data[T]{v})
	return nil
}

const jsonType = "application/json"

func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	body := encode(v)
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// The values are strings, numbers and JSON that was valid when it was stored, so encoding cannot fail.
		return []byte(`{"error":{"code":"SERVER_ERROR","message":"Internal error"}}`)
	}
	return b.Bytes()
}

// timestamp formats a time in UTC, with milliseconds only if they are not zero.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }

// moment formats a time; the zero time gives "".
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return timestamp(t)
}

// compact removes insignificant spaces from valid JSON.
func compact(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}
