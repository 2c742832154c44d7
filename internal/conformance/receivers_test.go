package conformance

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestStatelessReceiver: a receiver that keeps no state, ignores keys and fails at random gets every event in the end.
func TestStatelessReceiver(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "EDS-SCP-2", "EDS-IDM-5")
		const events = 100
		r := newRig(t, o)
		r.sink.ReplyFunc("/stateless", func(*apptest.Request) apptest.Reply {
			if rand.IntN(3) == 0 {
				return apptest.Status(503)
			}
			return apptest.Status(204)
		})
		ep := r.Endpoint(r.sink.URL("/stateless"), apptest.Fields{"patterns": []string{"x"}})
		var published []godwit.EventID
		for range events {
			published = append(published, r.Publish("x", eventBody))
		}
		r.settle()
		for len(r.Pending()) > 0 {
			r.pass(time.Second)
		}
		attempts := 0
		for _, ev := range published {
			d := r.Delivery(ev, ep)
			if d.Status != godwit.DeliveryAccepted {
				t.Errorf("event %s is %s", ev, d.Status)
			}
			attempts += d.Attempts
		}
		if n := len(r.sink.Requests("/stateless")); n != attempts || n == events {
			t.Errorf("%d requests, %d attempts", n, attempts)
		}
	})
}

// TestForgetfulReceiver: the receiver's deduplication is wiped between attempts. It processes the event twice, and delivery
// is not affected.
func TestForgetfulReceiver(t *testing.T) {
	trace.Covers(t, "EDS-DUP-3", "EDS-DUP-2")
	r := newRig(t, apptest.Options{})
	processed := 0
	r.sink.ReplyFunc("/forgetful", func(req *apptest.Request) apptest.Reply {
		remembered := map[string]bool{} // wiped: it lasts no longer than a request
		if !remembered[req.Key()] {
			processed++
		}
		if req.N == 1 {
			return apptest.Hangup()
		}
		return ok
	})
	ep := r.Endpoint(r.sink.URL("/forgetful"), apptest.Fields{"patterns": []string{"x"}})
	got := r.post(apptest.Call{Path: eventPath + "x", Body: eventBody})
	r.passUntil("accepted", func() bool { return r.Delivery(got.ID, ep).Status == godwit.DeliveryAccepted })
	r.passWindow()
	r.end()
	if processed != 2 || len(r.sink.Requests("/forgetful")) != 2 {
		t.Errorf("processed %d times in %d requests", processed, len(r.sink.Requests("/forgetful")))
	}
	wantSentence(t, "handlers must bear duplicates", "handler", "same event twice")
}
