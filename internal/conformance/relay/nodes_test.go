package relay

import (
	"runtime"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestPassThroughOverTwoNodes: the upstream delivers to one node, and the other node owns the endpoint. The upstream gets
// the endpoint's outcome, not a timeout.
func TestPassThroughOverTwoNodes(t *testing.T) {
	trace.Covers(t, "EDS-INT-11", "EDS-INT-6")
	database := apptest.PostgresURL(t)
	node := func(name string, deadline time.Duration) *apptest.Server {
		return apptest.Start(t, apptest.Options{Store: database, Configure: func(c *config.Config) {
			c.Node, c.RelayDeadline = name, config.Duration(deadline)
		}, Tune: func(c *engine.Config) {
			c.PollInterval = 50 * time.Millisecond // by which the owner finds what the other node has stored
		}})
	}
	near, far := node("near", time.Minute), node("far", time.Second)
	sink := apptest.NewSink(t)
	r := &rig{Server: near, t: t, sink: sink}
	for near.App.Engine().Stats().Shards != godwit.Shards/2 || far.App.Engine().Stats().Shards != godwit.Shards/2 {
		runtime.Gosched()
	}
	var ours, theirs apptest.Endpoint
	for ours.ID.IsZero() || theirs.ID.IsZero() {
		if ep := near.Endpoint(sink.URL("/spare"), apptest.Fields{"patterns": []string{"none"}, "policy": apptest.Fields{"circuit_after": 0, "base_seconds": 600, "cap_seconds": 600}}); near.App.Engine().Owns(ep.ID) {
			ours = ep
		} else {
			theirs = ep
		}
	}
	for path, ep := range map[string]apptest.Endpoint{"/ours": ours, "/theirs": theirs} {
		near.EndpointCall(ep, "PATCH", "", apptest.Fields{"url": sink.URL(path), "patterns": []string{"relayed.*"}})
	}
	s := r.Source("upstream")
	send := func(name string, want int) answer {
		t.Helper()
		return r.want(r.send(delivery{Path: s.Path, Key: key(name), Sign: bearer(s)}), want)
	}
	counts := func(at, there int) {
		t.Helper()
		if n, m := len(sink.Requests("/ours")), len(sink.Requests("/theirs")); n != at || m != there {
			t.Errorf("%d and %d requests, want %d and %d", n, m, at, there)
		}
	}
	send("accepted", 200)
	counts(1, 1)
	// A refusal for now is known as soon as it is stored; a repeat goes to the rest, whichever node's it is.
	sink.Script("/theirs", apptest.Status(503), apptest.Status(422), apptest.Status(200))
	send("in the end", 502)
	counts(2, 2)
	send("in the end", 422)
	send("in the end", 200)
	counts(2, 4)

	// An outcome that is unknown at the deadline is reported as such, and a result of the last moment is not missed.
	open := make(chan struct{})
	sink.Script("/theirs", apptest.Status(200).Until(open))
	r2 := &rig{Server: far, t: t, sink: sink}
	waits := r2.begin(delivery{Path: s.Path, Key: key("in the end"), Sign: bearer(s)}) // known there, too
	r2.want(r2.await(waits), 200)
	hangs := r.begin(delivery{Path: s.Path, Key: key("hangs"), Sign: bearer(s)})
	sink.WaitOn("/theirs", 5)
	r2.want(r2.send(delivery{Path: s.Path, Key: key("hangs"), Sign: bearer(s)}), 504)
	close(open)
	r.want(r.await(hangs), 200)
	counts(3, 5)
}
