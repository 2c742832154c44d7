package fastpath

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// response gathers an answer, which leaves in one piece. It is used again for the connection's next one.
type response struct {
	header http.Header
	status int
	body   []byte
	names  []string
	close  bool // the connection is not to be used again
}

func (w *response) reset() {
	if w.header == nil {
		w.header = http.Header{}
	}
	clear(w.header)
	w.status, w.body, w.close = 0, w.body[:0], false
	if cap(w.body) > 4*bufferSize {
		w.body = nil
	}
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 && status <= 999 { // an interim answer says nothing that must be heard
		w.status = status
	}
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !hasBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// appendTo writes the answer as it goes on the wire. What it says of its length and of the connection is true, whatever the
// handler put into the header.
func (w *response) appendTo(out []byte, now time.Time) []byte {
	w.WriteHeader(http.StatusOK)
	out = append(out, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(w.status), 10)
	out = append(out, ' ')
	out = append(out, http.StatusText(w.status)...)
	out = append(out, "\r\nDate: "...)
	out = now.UTC().AppendFormat(out, http.TimeFormat)
	out = append(out, "\r\n"...)
	if len(w.body) > 0 && w.header["Content-Type"] == nil {
		out = appendField(out, "Content-Type", http.DetectContentType(w.body))
	}
	w.names = slices.AppendSeq(w.names[:0], maps.Keys(w.header))
	slices.Sort(w.names)
	for _, name := range w.names {
		switch {
		case name == "Connection":
			w.close = w.close || slices.Contains(w.header[name], "close")
		case name == "Content-Length", name == "Date", name == "Transfer-Encoding", !httpguts.ValidHeaderFieldName(name):
		default:
			for _, value := range w.header[name] {
				out = appendField(out, name, value)
			}
		}
	}
	if hasBody(w.status) {
		out = append(out, "Content-Length: "...)
		out = strconv.AppendInt(out, int64(len(w.body)), 10)
		out = append(out, "\r\n"...)
	}
	if w.close {
		out = append(out, "Connection: close\r\n"...)
	}
	out = append(out, "\r\n"...)
	return append(out, w.body...)
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

func appendField(out []byte, name, value string) []byte {
	if strings.ContainsAny(value, "\r\n") {
		value = lineBreaks.Replace(value)
	}
	out = append(out, name...)
	out = append(out, ": "...)
	out = append(out, value...)
	return append(out, "\r\n"...)
}
