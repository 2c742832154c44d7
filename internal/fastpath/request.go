package fastpath

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

var headEnd = []byte("\r\n\r\n")

const (
	linePrefix = "POST "
	lineSuffix = " HTTP/1.1"
)

// foreign lists the fields that change the framing of a message or the use of the connection, or that net/http treats
// specially. A request with one of them goes to net/http.
var foreign = map[string]bool{
	"Expect": true, "Http2-Settings": true, "Keep-Alive": true, "Pragma": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// understand returns the request at the start of text and the length of its header. It returns nil unless this is an ordinary
// request for a hot path.
func (s *Server) understand(text []byte) (*http.Request, int) {
	end := bytes.Index(text, headEnd)
	if end < 0 {
		return nil, 0
	}
	head := string(text[:end])
	line, fields, _ := strings.Cut(head, "\r\n")
	if len(line) < len(linePrefix)+len(lineSuffix) || !strings.HasPrefix(line, linePrefix) || !strings.HasSuffix(line, lineSuffix) {
		return nil, 0
	}
	target := line[len(linePrefix) : len(line)-len(lineSuffix)]
	path, _, _ := strings.Cut(target, "?")
	if !s.hot[path] || !plain(target) {
		return nil, 0
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, 0
	}
	r := http.Request{
		Method: http.MethodPost, URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, 8), ContentLength: -1,
	}
	if !readFields(&r, fields) || r.Host == "" || r.ContentLength < 0 || r.ContentLength > maxBody {
		return nil, 0
	}
	return r.WithContext(s.cfg.Context), end + len(headEnd)
}

// plain reports whether a request target is visible ASCII.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// readFields reads the header's fields. It reports false if net/http must read them.
func readFields(r *http.Request, fields string) bool {
	values := make([]string, strings.Count(fields, "\r\n")+1)
	for fields != "" {
		line, rest, _ := strings.Cut(fields, "\r\n")
		fields = rest
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return false
		}
		value = textproto.TrimString(value)
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case foreign[name]:
			return false
		case name == "Host":
			if r.Host != "" || value == "" || !httpguts.ValidHostHeader(value) {
				return false
			}
			r.Host = value
			continue
		case name == "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return false
			}
		case name == "Content-Length":
			if r.ContentLength >= 0 || !digits(value) {
				return false
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return false
			}
			r.ContentLength = n
		}
		if earlier := r.Header[name]; earlier != nil {
			r.Header[name] = append(earlier, value)
			continue
		}
		values[0] = value
		r.Header[name], values = values[:1:1], values[1:]
	}
	return true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
