package sender

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Redirects says which redirects an attempt follows. The zero value follows none: every 3xx is returned as it is.
type Redirects struct {
	// Statuses are followed with the same method, body and header, unlike in a browser: a delivery never becomes a GET
	// (EDS-RED-5). Defaults to none.
	Statuses []int

	// MaxHops limits the redirects of one attempt. Defaults to 3.
	MaxHops int

	// AnyHost permits redirects to another host, for dialects that require it. The scheme rule, the URL rules and the address
	// guard still apply. Defaults to false.
	AnyHost bool
}

// CheckRedirect checks whether a redirect may lead from one URL to another: the target passes every check of a registered URL,
// keeps https, and stays on its host unless the operator allowed the other one. The error is a *URLError.
func (s *Sender) CheckRedirect(from, to string) error {
	source, err := s.parseURL(from)
	if err != nil {
		return err
	}
	if _, err := s.redirectTarget(source, to, false); err != nil {
		return err
	}
	return nil
}

// redirectTarget resolves a Location against the URL it came from, and checks it.
func (s *Sender) redirectTarget(from *url.URL, location string, anyHost bool) (*url.URL, *URLError) {
	ref, err := url.Parse(location)
	if err != nil || location == "" {
		return nil, urlError(ProblemSyntax, "Location is missing or cannot be parsed")
	}
	to := from.ResolveReference(ref)
	to.Fragment, to.RawFragment = "", "" // a fragment is not sent, and RFC 9110 lets a Location have one
	checked, problem := s.parseURL(to.String())
	switch {
	case problem != nil:
		return nil, problem
	case from.Scheme == "https" && checked.Scheme != "https":
		return nil, urlError(ProblemRedirect, "leads from https to http")
	case !anyHost && !s.sameOrAllowedHost(from.Hostname(), checked.Hostname()):
		return nil, urlError(ProblemRedirect, "leads to another host")
	}
	return checked, nil
}

func (s *Sender) sameOrAllowedHost(from, to string) bool {
	to = strings.TrimSuffix(to, ".")
	if to == strings.TrimSuffix(from, ".") {
		return true
	}
	return slices.ContainsFunc(s.redirectHosts, func(allowed string) bool {
		if suffix, ok := strings.CutPrefix(allowed, "*"); ok {
			return strings.HasSuffix(to, suffix)
		}
		return to == allowed
	})
}

// follow returns the next URL of a response that the caller wants followed, or why there is none. The receiver answered, so a
// failure here leaves nothing unknown: Sent stays false.
func (s *Sender) follow(r *Request, from *url.URL, hops int, header http.Header) (*url.URL, *godwit.Failure) {
	limit := r.Follow.MaxHops
	if limit <= 0 {
		limit = DefaultMaxHops
	}
	if hops >= limit {
		return nil, &godwit.Failure{Kind: godwit.FailureRedirectLimit, Detail: "more redirects than an attempt may follow"}
	}
	locations := header["Location"]
	if len(locations) != 1 {
		return nil, &godwit.Failure{Kind: godwit.FailureRedirectInvalid, Detail: "redirect does not have exactly one Location"}
	}
	to, problem := s.redirectTarget(from, locations[0], r.Follow.AnyHost)
	if problem == nil {
		return to, nil
	}
	failure := &godwit.Failure{Kind: godwit.FailureRedirectForbidden, Detail: problem.Error()}
	switch problem.Problem {
	case ProblemSyntax:
		failure.Kind = godwit.FailureRedirectInvalid
	case ProblemAddress:
		failure.Kind = godwit.FailureBlockedAddress
	}
	return nil, failure
}
