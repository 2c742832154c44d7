package httpsig

import (
	"net/http"
	"strconv"
	"strings"
)

// message provides the component values. All components of a signature share one message (RFC 9421, section 2).
type message struct {
	header  http.Header
	trailer http.Header
	method  string
	// host is the Host field, which net/http keeps outside the header map.
	host string
	uri  targetURI
	// requestTarget is the target as in an HTTP/1.1 request line. It is empty for requests yet to be sent; their target is
	// the path and query.
	requestTarget string
	// unsent is set for a request yet to be sent. net/http keeps some fields of such a request outside the header map and
	// ignores them inside it.
	unsent        bool
	contentLength int64
	// status and request are set for responses only.
	status  int
	request *message
}

// targetURI is a target URI in parts, each as it goes over the wire.
type targetURI struct {
	scheme, host, path, query string
	hasQuery                  bool
}

// requestMessage returns the message of a request that is to be sent, or that a server received (RequestURI is then set).
// publicURI, if not empty, replaces the target URI of the request.
func requestMessage(req *http.Request, publicURI string) (message, error) {
	m := message{header: req.Header, trailer: req.Trailer, method: req.Method, contentLength: req.ContentLength}
	if m.method == "" {
		m.method = http.MethodGet
	}
	err := m.setTarget(req)
	if err == nil && publicURI != "" {
		m.uri, err = parseTargetURI(publicURI)
	}
	return m, err
}

func (m *message) setTarget(req *http.Request) error {
	if req.RequestURI == "" {
		return m.setUnsentTarget(req)
	}
	m.requestTarget, m.host = req.RequestURI, req.Host
	m.uri = targetURI{scheme: "http", host: req.Host}
	if req.TLS != nil {
		m.uri.scheme = "https"
	}
	switch {
	case strings.HasPrefix(req.RequestURI, "/"):
		m.uri.path, m.uri.query, m.uri.hasQuery = strings.Cut(req.RequestURI, "?")
	case req.Method == http.MethodConnect, req.RequestURI == "*":
		// Authority form and asterisk form have no path.
	default:
		var err error
		m.uri, err = parseTargetURI(req.RequestURI)
		return err
	}
	return nil
}

func (m *message) setUnsentTarget(req *http.Request) error {
	if req.URL == nil || req.URL.Opaque != "" {
		return malformed(`"@target-uri"`, "request has no hierarchical URL")
	}
	m.unsent, m.host = true, req.Host
	if m.host == "" {
		m.host = req.URL.Host
	}
	m.uri = targetURI{
		scheme:   strings.ToLower(req.URL.Scheme),
		host:     m.host,
		path:     req.URL.EscapedPath(),
		query:    req.URL.RawQuery,
		hasQuery: req.URL.RawQuery != "" || req.URL.ForceQuery,
	}
	if m.uri.path == "" {
		m.uri.path = "/"
	}
	if strings.IndexByte(m.host, '%') >= 0 {
		// net/http drops an address zone on the wire; the receiver never sees it.
		return malformed(`"@target-uri"`, "host has an address zone")
	}
	return nil
}

// parseTargetURI splits an absolute http URI without decoding anything.
func parseTargetURI(raw string) (targetURI, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		return targetURI{}, malformed(`"@target-uri"`, "not an absolute http URI")
	}
	rest, _, _ = strings.Cut(rest, "#")
	u := targetURI{scheme: scheme, host: rest, path: "/"}
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		u.host = rest[:end]
		u.path, u.query, u.hasQuery = strings.Cut(rest[end:], "?")
		if u.path == "" {
			u.path = "/"
		}
	}
	if u.host == "" || strings.IndexByte(u.host, '@') >= 0 {
		return targetURI{}, malformed(`"@target-uri"`, "URI has no host, or a user name")
	}
	return u, nil
}

// fieldValues returns the values of a field, in order.
func (m *message) fieldValues(c *component) []string {
	if c.tr {
		return m.trailer[c.field]
	}
	switch c.field {
	case "Host":
		if m.host != "" {
			return []string{m.host}
		}
	case "Content-Length":
		if m.unsent && m.contentLength > 0 {
			return []string{strconv.FormatInt(m.contentLength, 10)}
		}
		if m.unsent {
			return nil
		}
	case "Transfer-Encoding", "Trailer":
		if m.unsent {
			return nil // net/http writes this field from other members of the request
		}
	}
	return m.header[c.field]
}

func (u *targetURI) append(dst []byte) []byte {
	dst = append(dst, u.scheme...)
	dst = append(dst, "://"...)
	dst = append(dst, u.host...)
	return u.appendPathAndQuery(dst)
}

func (u *targetURI) appendPathAndQuery(dst []byte) []byte {
	dst = append(dst, u.path...)
	if u.hasQuery {
		dst = append(append(dst, '?'), u.query...)
	}
	return dst
}

// appendAuthority appends the host in lower case, without the scheme's default
// port (RFC 9110, section 4.2.3).
func (u *targetURI) appendAuthority(dst []byte) []byte {
	host := u.host
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		port := host[colon+1:]
		if port == "" || u.scheme == "http" && port == "80" || u.scheme == "https" && port == "443" {
			host = host[:colon]
		}
	}
	for i := range len(host) {
		b := host[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		dst = append(dst, b)
	}
	return dst
}
