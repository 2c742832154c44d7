package fastpath

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// response collects a handler's response, which is sent in one piece. A connection uses the same one for every request.
type response struct {
	header  http.Header
	status  int    // 0 until the handler has called WriteHeader
	body    []byte // what the handler has written
	written int64  // bytes that the handler tried to write
	close   bool   // the connection is not used again

	// Set by WriteHeader. Later changes of the header are ignored, as by net/http.
	fields     []byte // the header's fields as they are sent
	connection span   // the Connection fields among them
	length     int64  // Content-Length set by the handler; -1 without
	dated      bool   // the handler set Date
	typed      bool   // Content-Type must not be guessed
	saysClose  bool   // the handler's Connection field has the token "close"

	names []string // scratch of WriteHeader
}

// span is a range of bytes.
type span struct{ from, to int }

func (w *response) reset() {
	if w.header == nil {
		w.header = http.Header{}
	}
	clear(w.header)
	if cap(w.body) > 4*bufferSize {
		w.body = nil
	}
	*w = response{header: w.header, body: w.body[:0], fields: w.fields[:0], names: w.names[:0], length: -1}
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	switch {
	case w.status != 0:
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // so does net/http
	case status < 200:
		return // package doc: interim responses are not sent
	}
	w.status = status
	w.length = declaredLength(w.header)
	_, w.dated = w.header["Date"]
	_, w.typed = w.header["Content-Type"]
	w.typed = w.typed || w.header.Get("Content-Encoding") != ""
	w.names = w.names[:0]
	for name := range w.header {
		w.names = append(w.names, name)
	}
	slices.Sort(w.names)
	for _, name := range w.names {
		if w.suppressed(name) || !httpguts.ValidHeaderFieldName(name) {
			continue
		}
		from := len(w.fields)
		for _, value := range w.header[name] {
			w.fields = appendField(w.fields, name, value)
		}
		if name == "Connection" && len(w.header[name]) > 0 {
			w.connection = span{from, len(w.fields)}
			w.close = w.header[name][0] == "close"
			w.saysClose = httpguts.HeaderValuesContainsToken(w.header[name][:1], "close")
		}
	}
}

// declaredLength is the handler's Content-Length, or -1 if it has set none or an invalid one.
func declaredLength(h http.Header) int64 {
	values := h["Content-Length"]
	if len(values) == 0 {
		return -1
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// suppressed reports whether a field of the handler is not sent.
func (w *response) suppressed(name string) bool {
	switch name {
	case "Transfer-Encoding":
		return true
	case "Content-Length":
		return w.length < 0 || !hasBody(w.status)
	case "Content-Type":
		return w.status == http.StatusNotModified
	}
	return false
}

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case len(p) == 0:
		return 0, nil
	case !hasBody(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// finish is called when the handler has returned.
func (w *response) finish() { w.WriteHeader(http.StatusOK) }

// reusable reports whether the client can tell where the response ends, and was not told that the connection ends with it.
func (w *response) reusable() bool {
	return !w.close && (w.length < 0 || !hasBody(w.status) || w.written == w.length)
}

// appendTo appends the response as it is sent. The order of the fields is that of net/http. closing says that the server
// closes the connection after this response.
func (w *response) appendTo(out []byte, now time.Time, closing bool) []byte {
	out = append(out, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(w.status), 10)
	out = append(out, ' ')
	if text := http.StatusText(w.status); text != "" {
		out = append(out, text...)
	} else {
		out = append(out, "status code "...)
		out = strconv.AppendInt(out, int64(w.status), 10)
	}
	out = append(out, "\r\n"...)
	closes := closing || w.close && !w.saysClose
	if closes {
		out = append(out, w.fields[:w.connection.from]...)
		out = append(out, w.fields[w.connection.to:]...)
	} else {
		out = append(out, w.fields...)
	}
	if !w.dated {
		out = append(out, "Date: "...)
		out = now.UTC().AppendFormat(out, http.TimeFormat)
		out = append(out, "\r\n"...)
	}
	if w.length < 0 && hasBody(w.status) {
		out = append(out, "Content-Length: "...)
		out = strconv.AppendInt(out, int64(len(w.body)), 10)
		out = append(out, "\r\n"...)
	}
	if !w.typed && len(w.body) > 0 {
		out = appendField(out, "Content-Type", http.DetectContentType(w.body))
	}
	if closes {
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
	out = append(out, textproto.TrimString(value)...)
	return append(out, "\r\n"...)
}
