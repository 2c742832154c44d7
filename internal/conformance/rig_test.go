package conformance

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
)

func TestMain(m *testing.M) { os.Exit(apptest.RemoveBinary(m.Run())) }

// start is the initial time of a rig's clock. Stores keep microseconds, the engine nanoseconds. The clock always stands at
// the end of a microsecond, so that both agree on what is due.
var start = time.Date(2026, 7, 1, 12, 0, 0, int(pastMicrosecond), time.UTC)

const pastMicrosecond = 999 * time.Nanosecond

// A rig is a server with a manual clock, and a receiver.
type rig struct {
	*apptest.Server
	t     testing.TB
	sink  *apptest.Sink
	fence apptest.Endpoint
}

// newRig starts a server. Leases outlast every jump of the clock, because other suites test ownership.
func newRig(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	r := newRigWithoutFence(t, o)
	r.fence = r.Endpoint(r.sink.URL("/fence"), apptest.Fields{"patterns": []string{"fence"}})
	return r
}

// newRigWithoutFence is for servers that would not take the endpoint that newRig registers.
func newRigWithoutFence(t testing.TB, o apptest.Options) *rig {
	t.Helper()
	if o.Clock == nil {
		o.Clock = clock.NewManual(start)
	}
	tune := o.Tune
	o.Tune = func(c *engine.Config) {
		c.LeaseTTL = 10000 * time.Hour
		if tune != nil {
			tune(c)
		}
	}
	r := &rig{t: t, sink: newSink(t)}
	r.Server = apptest.Start(t, o)
	return r
}

// wireKey is what an Idempotency-Key looks like on the wire: one structured-field String.
var wireKey = regexp.MustCompile(`^"(?:[\x20-\x21\x23-\x5B\x5D-\x7E]|\\["\\])+"$`)

// newSink starts a receiver. When it ends, it checks that every request had exactly one well-formed Idempotency-Key
// (EDS-KEY-1). Requests for tokens are no attempts.
func newSink(t testing.TB, options ...apptest.SinkOption) *apptest.Sink {
	t.Helper()
	sink := apptest.NewSink(t, options...)
	t.Cleanup(func() {
		for _, r := range sink.Requests("") {
			if keys := r.Header["Idempotency-Key"]; r.Path != tokenPath && (len(keys) != 1 || !wireKey.MatchString(keys[0])) {
				t.Errorf("%s %s came with Idempotency-Key %q", r.Method, r.Path, keys)
			}
		}
	})
	return sink
}

// tokenPath is where sinks play an OAuth2 token endpoint.
const tokenPath = "/token"

// pass advances the clock and waits for the deliveries that fall due.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	r.Advance(d)
	r.settle()
}

// settle waits until everything that is due has been attempted and recorded.
func (r *rig) settle() {
	r.t.Helper()
	r.WaitUntilNoneIsDue(r.due)
}

// due lists the deliveries that may be sent at this moment: due, and their endpoint neither at rest nor held back.
func (r *rig) due() []godwit.Delivery {
	now := r.Clock.Now()
	var due []godwit.Delivery
	held := map[godwit.EndpointID]time.Time{}
	for _, d := range r.Pending() {
		if d.DueAt.After(now) {
			continue
		}
		if _, asked := held[d.EndpointID]; !asked {
			held[d.EndpointID] = r.heldUntil(d.EndpointID)
		}
		if !held[d.EndpointID].After(now) {
			due = append(due, d)
		}
	}
	return due
}

// heldUntil returns the time before which nothing is sent to an endpoint.
func (r *rig) heldUntil(id godwit.EndpointID) time.Time {
	r.t.Helper()
	e, err := r.App.Store().Endpoint(context.Background(), r.Tenant, id)
	if err != nil {
		r.t.Fatalf("read endpoint: %v", err)
	}
	if e.Status != godwit.EndpointActive {
		return r.Clock.Now().Add(time.Hour)
	}
	// The stored health is read: that in memory changes before its result is recorded.
	h, err := r.App.Store().Health(context.Background(), id)
	if err != nil {
		r.t.Fatalf("read health: %v", err)
	}
	if h.HoldUntil.After(h.ProbeAt) {
		return h.HoldUntil
	}
	return h.ProbeAt
}

// passUntil advances the clock from one due time to the next until the condition holds.
func (r *rig) passUntil(what string, holds func() bool) {
	r.t.Helper()
	r.settle()
	for range 2000 {
		next := r.nextDue()
		if holds() {
			return
		}
		if next.IsZero() {
			break
		}
		r.pass(max(next.Truncate(time.Microsecond).Add(pastMicrosecond).Sub(r.Clock.Now()), time.Microsecond))
	}
	r.t.Fatalf("never: %s", what)
}

// nextDue is when something may be sent next; zero when nothing waits.
func (r *rig) nextDue() time.Time {
	r.t.Helper()
	var next time.Time
	held := map[godwit.EndpointID]time.Time{}
	for _, d := range r.Pending() {
		if _, asked := held[d.EndpointID]; !asked {
			held[d.EndpointID] = r.heldUntil(d.EndpointID)
		}
		at := d.DueAt
		if held[d.EndpointID].After(at) {
			at = held[d.EndpointID]
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// passWindow advances the clock beyond every retry policy: first in small steps, so that an early retry would be noticed,
// then in large ones.
func (r *rig) passWindow() {
	r.t.Helper()
	for range 20 {
		r.pass(500 * time.Millisecond)
	}
	for d := 5 * time.Second; d < 24*time.Hour; d *= 2 {
		r.pass(d)
	}
	r.cross()
}

// cross publishes an event and waits for its delivery, which shows that the server runs and has finished all earlier work.
func (r *rig) cross() {
	r.t.Helper()
	ev := r.Publish("fence", `{}`)
	r.WaitDelivery(ev, r.fence, godwit.DeliveryAccepted)
	r.settle()
}

// end stops the server in order; after it nothing more can be sent.
func (r *rig) end() {
	r.t.Helper()
	if err := r.Stop(); err != nil {
		r.t.Errorf("server ended: %v", err)
	}
}

// again starts another server on the data of this one, at the time it ended.
func (r *rig) again() *rig {
	r.t.Helper()
	r.end()
	next := newRig(r.t, apptest.Options{Data: r.Config.Data, Store: r.Config.Store, Clock: r.Clock})
	next.sink = r.sink
	return next
}

// A receipt is the answer to an event.
type receipt struct {
	ID  godwit.EventID `json:"id"`
	Key string         `json:"idempotency_key"`
}

// post posts an event and returns its receipt.
func (r *rig) post(c apptest.Call) receipt {
	r.t.Helper()
	c.Method = http.MethodPost
	var got receipt
	r.Must(c, &got)
	return got
}

// caPEM is the certificate of the test authority.
func caPEM(t testing.TB) []byte {
	t.Helper()
	pem, err := os.ReadFile(apptest.CAFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return pem
}

// trusting makes a server trust the certificates of TLS receivers.
func trusting(t testing.TB) func(*config.Config) {
	file := apptest.CAFile(t)
	return func(c *config.Config) { c.CAFile = file }
}
