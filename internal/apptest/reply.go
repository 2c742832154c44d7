package apptest

import (
	"fmt"
	"net/http"
	"strings"
)

// A Reply is the sink's reaction to a request. The zero Reply is 200 without a body. Methods return changed copies.
type Reply struct {
	status   int
	fields   []field
	body     string
	declared int // announced Content-Length; 0 means the body's
	early    []Reply
	raw      *string
	gate     <-chan struct{}
	stall    bool
	ending   ending
}

type field struct{ name, value string }

// ending says what happens to the connection after a reply.
type ending int

const (
	keepOpen ending = iota
	closeAnnounced
	closeSilent
	resetConnection
)

// Status answers with a status code and header fields given as name, value, name, value...
func Status(code int, fields ...string) Reply {
	return Reply{status: code}.Fields(fields...)
}

// RetryAfter answers with a status code and a Retry-After field.
func RetryAfter(code int, value string) Reply { return Status(code, "Retry-After", value) }

// Redirect answers with a status code and a Location field.
func Redirect(code int, location string) Reply { return Status(code, "Location", location) }

// Raw writes exactly these bytes instead of a response, and closes the connection. HTTP/1.1 only.
func Raw(bytes string) Reply { return Reply{raw: &bytes, ending: closeSilent} }

// Hangup reads the request and closes the connection without a response (HTTP/2: resets the stream).
func Hangup() Reply { return Raw("") }

// Reset reads the request and resets the TCP connection without a response (HTTP/2: resets the stream).
func Reset() Reply { return Reply{raw: new(string), ending: resetConnection} }

// Stall never answers; the connection stays open until the sender or the sink closes it.
func Stall() Reply { return Reply{stall: true} }

// Truncated announces a body of the given length, sends less and closes.
func Truncated(code, announced int, sent string) Reply {
	return Reply{status: code, body: sent, declared: announced, ending: closeSilent}
}

// Fields adds header fields given as name, value, name, value...
func (r Reply) Fields(fields ...string) Reply {
	if len(fields)%2 != 0 {
		panic("apptest: header fields come in pairs of name and value")
	}
	r.fields = append([]field(nil), r.fields...)
	for i := 0; i < len(fields); i += 2 {
		r.fields = append(r.fields, field{fields[i], fields[i+1]})
	}
	return r
}

// Body gives the response a body.
func (r Reply) Body(contentType, body string) Reply {
	r.body = body
	if contentType == "" {
		return r
	}
	return r.Fields("Content-Type", contentType)
}

// Early sends a 1xx response first. Several are sent in order.
func (r Reply) Early(code int, fields ...string) Reply {
	r.early = append(append([]Reply(nil), r.early...), Status(code, fields...))
	return r
}

// Until delays the response until the channel is closed.
func (r Reply) Until(gate <-chan struct{}) Reply { r.gate = gate; return r }

// ThenClose announces the end of the connection (Connection: close) and closes it after the response.
func (r Reply) ThenClose() Reply { r.ending = closeAnnounced; return r }

// ThenHangup closes the connection after the response without announcing it, so that a sender which reuses the connection
// finds it closed.
func (r Reply) ThenHangup() Reply { r.ending = closeSilent; return r }

// head renders the HTTP/1.1 response up to the empty line.
func (r Reply) head() string {
	var b strings.Builder
	code := r.code()
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
	for _, f := range r.fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	switch {
	case code < 200 || code == http.StatusNoContent || code == http.StatusNotModified:
	case r.has("Content-Length") || r.has("Transfer-Encoding"):
	case r.declared > 0:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", r.declared)
	default:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	if r.ending == closeAnnounced {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.String()
}

func (r Reply) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

func (r Reply) has(name string) bool {
	for _, f := range r.fields {
		if strings.EqualFold(f.name, name) {
			return true
		}
	}
	return false
}
