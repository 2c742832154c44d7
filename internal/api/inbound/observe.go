package inbound

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
)

// A Recorder counts requests. Its labels come from fixed lists, never from a request. Its methods must not block.
type Recorder interface {
	// Received counts a request by the scheme of its source and by its verdict.
	Received(scheme, verdict string)
	// Rejected counts a refused request by reason.
	Rejected(reason string)
	// Waiting changes the number of upstreams that wait for endpoints.
	Waiting(change int)
}

// The verdicts on a request.
const (
	verdictStored      = "stored"      // acknowledged before delivery
	verdictAccepted    = "accepted"    // every endpoint accepted it
	verdictHandshake   = "handshake"   // not an event
	verdictCommanded   = "commanded"   // a command with an outcome
	verdictRefused     = "refused"     // the upstream's fault
	verdictDownstream  = "downstream"  // stored, but not accepted by every endpoint
	verdictUnavailable = "unavailable" // the server's fault
)

// noScheme is the label for sources that do not exist and for schemes that this release does not know.
const noScheme = "none"

type silent struct{}

func (silent) Received(string, string) {}
func (silent) Rejected(string)         {}
func (silent) Waiting(int)             {}

// succeeded counts a request just before its successful response.
func (x *exchange) succeeded(verdict string) { x.cfg.Recorder.Received(x.scheme(), verdict) }

// failed counts a request just before its problem response.
func (x *exchange) failed(p *problem.Problem) {
	verdict := verdictRefused
	switch {
	case taken(p):
		verdict = verdictDownstream
	case p.Status >= http.StatusInternalServerError:
		verdict = verdictUnavailable
	}
	x.cfg.Recorder.Received(x.scheme(), verdict)
	if verdict == verdictRefused {
		x.cfg.Recorder.Rejected(cmp.Or(x.reason, p.Code))
	}
}

func (x *exchange) scheme() string {
	if x.src == nil || !slices.Contains(source.Schemes(), x.src.Scheme) {
		return noScheme
	}
	return x.src.Scheme
}

// taken reports whether the problem is about an event that was stored. Its cause is then an endpoint, and the deliveries
// record it.
func taken(p *problem.Problem) bool {
	switch p.Kind() {
	case problem.DownstreamRejected, problem.DownstreamFailed, problem.DownstreamTimeout, problem.NoDownstream:
		return true
	}
	return false
}
