package sender

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// MaxURLLength is the longest URL accepted, in bytes.
const MaxURLLength = 2048

// URLProblem names the problem of a URL. The values are stable and fit for an API.
type URLProblem string

// The problems of a URL.
const (
	ProblemSyntax    URLProblem = "syntax"    // cannot be parsed
	ProblemLength    URLProblem = "length"    // over MaxURLLength
	ProblemCharacter URLProblem = "character" // control character, space, backslash, or not ASCII outside the host
	ProblemScheme    URLProblem = "scheme"    // not https, nor http where allowed
	ProblemUserinfo  URLProblem = "userinfo"  // user name or password
	ProblemHost      URLProblem = "host"      // missing or not a host name
	ProblemPort      URLProblem = "port"      // not from 1 to 65535
	ProblemFragment  URLProblem = "fragment"  // has one
	ProblemAddress   URLProblem = "address"   // literal address or local name that is not a permitted destination
	ProblemRedirect  URLProblem = "redirect"  // the redirect leads to another host or from https to http
)

// A URLError says why a URL is not accepted. It never repeats the URL, which may hold a secret.
type URLError struct {
	Problem URLProblem
	Detail  string
}

func (e *URLError) Error() string { return "url " + string(e.Problem) + ": " + e.Detail }

func urlError(p URLProblem, detail string) *URLError { return &URLError{p, detail} }

// CheckURL checks whether a URL may be registered as a target: syntax, scheme, and literal addresses. It does not query DNS;
// the resolved address is checked on every connection. The error is a *URLError.
func (s *Sender) CheckURL(raw string) error {
	if _, err := s.parseURL(raw); err != nil {
		return err
	}
	return nil
}

// parseURL checks a URL and returns it in the form that is sent, with the host in ASCII.
func (s *Sender) parseURL(raw string) (*url.URL, *URLError) {
	if len(raw) > MaxURLLength {
		return nil, urlError(ProblemLength, "longer than "+strconv.Itoa(MaxURLLength)+" bytes")
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return nil, urlError(ProblemCharacter, "control character, space or backslash")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, urlError(ProblemSyntax, "cannot be parsed")
	}
	if err := s.checkParts(u, raw); err != nil {
		return nil, err
	}
	host, problem := s.checkHost(u.Hostname())
	if problem != nil {
		return nil, problem
	}
	u.Host = joinHostPort(host, u.Port())
	return u, nil
}

func (s *Sender) checkParts(u *url.URL, raw string) *URLError {
	switch {
	case u.Scheme == "http" && !s.allowHTTP:
		return urlError(ProblemScheme, "must be https")
	case u.Scheme != "https" && u.Scheme != "http":
		return urlError(ProblemScheme, "must be https")
	case u.User != nil:
		return urlError(ProblemUserinfo, "must not hold a user name or password")
	case u.Opaque != "" || u.Hostname() == "":
		return urlError(ProblemHost, "missing")
	case strings.Contains(raw, "#"):
		return urlError(ProblemFragment, "must not have one")
	case !ascii(u.RawQuery) || !ascii(rawPath(raw)):
		return urlError(ProblemCharacter, "outside the host, characters beyond ASCII must be percent-encoded")
	}
	if strings.HasSuffix(u.Host, ":") {
		return urlError(ProblemPort, "empty")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return urlError(ProblemPort, "must be from 1 to 65535")
		}
	}
	return nil
}

// rawPath is the part after the authority, as written.
func rawPath(raw string) string {
	_, rest, _ := strings.Cut(raw, "//")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[i:]
	}
	return ""
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// checkHost returns the host in lower-case ASCII, an IPv6 address without brackets.
func (s *Sender) checkHost(host string) (string, *URLError) {
	if !ascii(host) {
		// Before any comparison: full-width digits become digits here.
		mapped, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", urlError(ProblemHost, "not a valid internationalised name")
		}
		host = mapped
	}
	host = strings.ToLower(host)
	name := strings.TrimSuffix(host, ".")
	if strings.Contains(host, ":") || endsInNumber(name) {
		return name, s.checkLiteral(name)
	}
	if !validName(name) {
		return "", urlError(ProblemHost, "not a valid host name")
	}
	if localName(name) && !s.guard.allowsLoopback() {
		return "", urlError(ProblemAddress, "names this machine")
	}
	return host, nil
}

// checkLiteral accepts dotted-decimal IPv4 and IPv6 without a zone. It refuses every other way to write an address — decimal,
// octal, hexadecimal, shortened, IPv4 mapped into IPv6 — since programs read them differently.
func (s *Sender) checkLiteral(host string) *URLError {
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return urlError(ProblemAddress, "numeric, but not a plainly written IP address")
	case addr.Zone() != "":
		return urlError(ProblemAddress, "has an IPv6 zone")
	case addr.Is4In6():
		return urlError(ProblemAddress, "is an IPv4 address written as IPv6")
	}
	if err := s.guard.check(addr); err != nil {
		return urlError(ProblemAddress, err.Error())
	}
	return nil
}

// endsInNumber reports whether programs that follow the URL standard or the C library would read a host as an IPv4 address: its
// last label is digits, or 0x and hexadecimal digits.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			switch c := label[i]; {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			default:
				return false
			}
		}
	}
	return true
}

func localName(name string) bool {
	switch name {
	case "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback":
		return true
	}
	return strings.HasSuffix(name, ".localhost")
}

func joinHostPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	return host + ":" + port
}
