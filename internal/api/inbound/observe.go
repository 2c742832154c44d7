package inbound

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/source"
)

// A Recorder counts. Its labels come from fixed lists, never from a request. Its methods must not block.
type Recorder interface {
	// Received counts a request, by the scheme of its source and by what became of it.
	Received(scheme, verdict string)
	// Rejected counts a request that was not taken in, by the reason.
	Rejected(reason string)
	// Waiting counts the upstreams that wait for endpoints.
	Waiting(change int)
}

// What becomes of a request.
const (
	verdictStored      = "stored"      // acknowledged before it is delivered
	verdictAccepted    = "accepted"    // every endpoint has it
	verdictHandshake   = "handshake"   // no event
	verdictCommanded   = "commanded"   // a command has its outcome
	verdictRefused     = "refused"     // the upstream's doing
	verdictDownstream  = "downstream"  // taken in, but not accepted by every endpoint
	verdictUnavailable = "unavailable" // ours
)

// noScheme is for requests to sources that do not exist, and to those of another release.
const noScheme = "none"

type silent struct{}

func (silent) Received(string, string) {}
func (silent) Rejected(string)         {}
func (silent) Waiting(int)             {}

// succeeded counts a request that is about to be answered well.
func (x *exchange) succeeded(verdict string) { x.cfg.Recorder.Received(x.scheme(), verdict) }

// failed counts a request that is about to be answered with a problem.
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

// taken reports a problem of an event that was taken in: it is the endpoints', and the deliveries tell of it.
func taken(p *problem.Problem) bool {
	switch p.Kind() {
	case problem.DownstreamRejected, problem.DownstreamFailed, problem.DownstreamTimeout, problem.NoDownstream:
		return true
	}
	return false
}
