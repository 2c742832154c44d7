package receiver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// targetURI is the address as the request itself shows it.
func targetURI(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	host := r.Host
	if host == "" && r.URL != nil {
		host = r.URL.Host
	}
	if r.RequestURI == "" && r.URL != nil && r.URL.Scheme != "" { // a client request, not one received by a server
		scheme = strings.ToLower(r.URL.Scheme) + "://"
	}
	return scheme + host + requestTarget(r)
}

// requestTarget is path and query as received: handlers in front may have changed URL.
func requestTarget(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	if r.URL == nil {
		return "/"
	}
	return r.URL.RequestURI()
}

// parseOrigin reads scheme and host of a public origin.
func parseOrigin(text string) (string, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	scheme, rest = strings.ToLower(scheme), strings.TrimSuffix(rest, "/")
	if !ok || scheme != "http" && scheme != "https" || rest == "" || strings.ContainsAny(rest, "/?#@ ") {
		return "", fmt.Errorf("public origin %q is not a scheme and a host", text)
	}
	return scheme + "://" + rest, nil
}

// normalURI is the form in which addresses are compared: scheme and host in lower case, no default port, no fragment
// (EDS T-23). Path and query are as they were sent.
func normalURI(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	host, tail := rest, "/"
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		host, tail = rest[:end], rest[end:]
		if tail[0] == '?' {
			tail = "/" + tail
		}
	}
	host = strings.ToLower(host)
	switch {
	case scheme == "https" && strings.HasSuffix(host, ":443"):
		host = strings.TrimSuffix(host, ":443")
	case scheme == "http" && strings.HasSuffix(host, ":80"):
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + strings.TrimSuffix(host, ":") + tail
}

// scopeOf is the address within which a delivery's key is unique. An unsigned address must not let a captured request count as
// new because of an added query or another Host (EDS-SEC-THR-2). With a credential the sender could make new requests anyway.
func (r *Receiver) scopeOf(d *Delivery) Digest {
	if r.profile.SignsTarget || r.profile.Credentials {
		return ScopeOf(d.Principal, d.URL, d.Key)
	}
	path := d.URL
	if _, rest, ok := strings.Cut(path, "://"); ok {
		path = "/"
		if at := strings.IndexAny(rest, "/?#"); at >= 0 && rest[at] == '/' {
			path = rest[at:]
		}
	}
	path, _, _ = strings.Cut(path, "#")
	path, _, _ = strings.Cut(path, "?")
	return ScopeOf(d.Principal, r.o.PublicOrigin+plainPath(path), d.Key)
}

// plainPath is a path in its simplest spelling: servers route /%68ooks as /hooks, so both must be one address. Only bytes that
// cannot occur in a path stay escaped.
func plainPath(path string) string {
	decoded, err := url.PathUnescape(path) // the same text if nothing is escaped
	if err != nil {
		return path
	}
	var plain strings.Builder
	done := 0
	for i := range len(decoded) {
		if escaped(decoded[i]) {
			fmt.Fprintf(&plain, "%s%%%02X", decoded[done:i], decoded[i])
			done = i + 1
		}
	}
	if done == 0 {
		return decoded
	}
	return plain.String() + decoded[done:]
}

// escaped reports whether a byte must be escaped in a path.
func escaped(b byte) bool {
	return b <= ' ' || b > '~' || strings.IndexByte("\"#%<>?[\\]^`{|}", b) >= 0
}
