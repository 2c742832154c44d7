package relay

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// between is a store that lets something happen after the deliveries of an event were read for the second time: by a repeat,
// after the first upstream had begun to wait.
type between struct {
	engine.Store
	reads atomic.Int32
	began chan struct{} // closed by the first
	then  func()
}

func (s *between) ListDeliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]godwit.Delivery, error) {
	list, err := s.Store.ListDeliveries(ctx, f, p)
	switch s.reads.Add(1) {
	case 1:
		close(s.began)
	case 2:
		s.then()
	}
	return list, err
}

// TestRepeatDoesNotUndoAnOutcome: an outcome that arrives while a repeat reads the deliveries stands. An endpoint that
// accepts or refuses at that moment is not asked again.
func TestRepeatDoesNotUndoAnOutcome(t *testing.T) {
	for _, c := range []struct {
		status, want int
	}{{200, 200}, {422, 422}} {
		t.Run(http.StatusText(c.status), func(t *testing.T) {
			apptest.Backends(t, func(t *testing.T, o apptest.Options) {
				trace.Covers(t, "EDS-OUT-3", "EDS-OUT-7", "EDS-INT-12")
				look := &between{began: make(chan struct{})}
				o.Tune = func(c *engine.Config) { look.Store, c.Store = c.Store, look }
				r := newRig(t, o)
				open := make(chan struct{})
				r.sink.Script("/slow", apptest.Status(c.status).Until(open))
				ep := r.Endpoint(r.sink.URL("/slow"), apptest.Fields{"patterns": []string{"relayed.*"}})
				s := r.Source("upstream")
				d := delivery{Path: s.Path, Key: key("slow"), Sign: bearer(s)}
				var first <-chan answer
				look.then = func() {
					close(open)
					r.want(r.await(first), c.want) // its outcome is stored
				}
				first = r.begin(d)
				r.sink.WaitOn("/slow", 1)
				<-look.began
				r.want(r.send(d), c.want)
				r.settle(ep)
				if n := len(r.sink.Requests("/slow")); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// settle waits until everything before it has been sent: what the endpoint gets comes in turn.
func (r *rig) settle(ep apptest.Endpoint) {
	r.t.Helper()
	r.sink.Script("/fence", apptest.Status(200))
	fence := r.Endpoint(r.sink.URL("/fence"), apptest.Fields{"patterns": []string{"fence"}})
	r.WaitDelivery(r.Publish("fence", `{}`), fence, godwit.DeliveryAccepted)
	r.Must(apptest.Call{Method: "DELETE", Path: "/v1/endpoints/" + fence.ID.String()}, nil)
	list, err := r.App.Store().ListDeliveries(context.Background(), store.DeliveryFilter{
		TenantID: r.Tenant, EndpointID: ep.ID, Status: godwit.DeliveryPending}, store.Page{Limit: 5})
	if err != nil || len(list) != 0 {
		r.t.Errorf("still pending: %+v, %v", list, err)
	}
}

// TestRepeatLeavesCancelledAlone: a cancelled delivery stays cancelled. An event whose endpoint was deleted goes to the
// endpoints that match now.
func TestRepeatLeavesCancelledAlone(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.sink.Script("/a", apptest.Status(503))
		a := r.Endpoint(r.sink.URL("/a"))
		s := r.Source("upstream")
		d := delivery{Path: s.Path, Key: key("moves on"), Sign: bearer(s)}
		r.want(r.send(d), 502)
		r.Must(apptest.Call{Method: "DELETE", Path: "/v1/endpoints/" + a.ID.String()}, nil)
		r.until("the delivery is cancelled", func() bool { return r.all(a)[0].Status == godwit.DeliveryCancelled })
		if got := r.want(r.send(d), 502); got.Code != "no-downstream" {
			t.Errorf("nobody is there, and the answer is %q", got.Code)
		}
		r.Endpoint(r.sink.URL("/b"))
		r.want(r.send(d), 200)
		if n, m := len(r.sink.Requests("/a")), len(r.sink.Requests("/b")); n != 1 || m != 1 {
			t.Errorf("%d requests to the old endpoint, %d to the new one", n, m)
		}

		// An operator's decision overrides a repeat.
		r.sink.Script("/b", apptest.Status(503))
		again := delivery{Path: s.Path, Key: key("ended by hand"), Sign: bearer(s)}
		r.want(r.send(again), 502)
		var list struct{ Items []struct{ ID string } }
		r.Must(apptest.Call{Path: "/v1/deliveries?status=pending"}, &list)
		if len(list.Items) != 1 {
			t.Fatalf("%d are pending", len(list.Items))
		}
		r.Must(apptest.Call{Method: "POST", Path: "/v1/deliveries/" + list.Items[0].ID + "/cancel"}, nil)
		if got := r.want(r.send(again), 502); got.Code != "no-downstream" {
			t.Errorf("a cancelled delivery gives %q", got.Code)
		}
		if n := len(r.sink.Requests("/b")); n != 2 {
			t.Errorf("%d requests: what was cancelled was sent", n)
		}
	})
}

// all lists an endpoint's deliveries.
func (r *rig) all(ep apptest.Endpoint) []godwit.Delivery {
	r.t.Helper()
	list, err := r.App.Store().ListDeliveries(context.Background(), store.DeliveryFilter{TenantID: r.Tenant, EndpointID: ep.ID}, store.Page{Limit: 50})
	if err != nil || len(list) == 0 {
		r.t.Fatalf("deliveries: %v, %v", list, err)
	}
	return list
}

// until asks again after every fence: what is waited for makes no attempt that could be watched.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	fence := r.Endpoint(r.sink.URL("/fence"), apptest.Fields{"patterns": []string{"fence"}})
	defer r.Must(apptest.Call{Method: "DELETE", Path: "/v1/endpoints/" + fence.ID.String()}, nil)
	for range 1000 {
		if holds() {
			return
		}
		r.WaitDelivery(r.Publish("fence", `{}`), fence, godwit.DeliveryAccepted)
	}
	r.t.Fatalf("waited in vain until %s", what)
}

// TestCancelledWhileWaited: an operator cancels the delivery that the upstream waits for. The upstream is answered at once.
func TestCancelledWhileWaited(t *testing.T) {
	r := newRig(t, apptest.Options{})
	open := make(chan struct{})
	defer close(open)
	r.sink.Script("/slow", apptest.Status(200).Until(open))
	ep := r.Endpoint(r.sink.URL("/slow"), apptest.Fields{"policy": apptest.Fields{"concurrency": 1}})
	s := r.Source("upstream")
	ahead := r.Publish("relayed.thing", `{}`)
	r.sink.WaitOn("/slow", 1) // it keeps the endpoint busy
	waits := r.begin(delivery{Path: s.Path, Key: key("waits"), Sign: bearer(s)})
	r.timer(start.Add(20 * time.Second))
	for _, d := range r.all(ep) {
		if d.EventID != ahead {
			r.Must(apptest.Call{Method: "POST", Path: "/v1/deliveries/" + d.ID.String() + "/cancel"}, nil)
		}
	}
	if got := r.want(r.await(waits), 502); got.Code != "no-downstream" {
		t.Errorf("code %q", got.Code)
	}
}

// TestRepeatOfWhatIsForgotten: the key is known, but the event has expired. No status tells the upstream that it or its
// subscription is gone.
func TestRepeatOfWhatIsForgotten(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		r.Endpoint(r.sink.URL("/to"))
		s := r.Source("upstream")
		d := delivery{Path: s.Path, Key: key("forgotten"), Sign: bearer(s)}
		r.want(r.send(d), 200)
		for more := true; more; {
			swept, err := r.App.Store().Sweep(context.Background(), store.Sweep{Now: r.Clock.Now(), EventsBefore: r.Clock.Now().Add(time.Hour), Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			more = swept.More
		}
		if got := r.want(r.send(d), 502); got.Code != "downstream-failed" {
			t.Errorf("code %q", got.Code)
		}
	})
}

// TestRepeatHonoursWhatWasAskedFor: an endpoint asked for more time than the delivery had left. The delivery ends, and a
// repeat does not retry before that time either.
func TestRepeatHonoursWhatWasAskedFor(t *testing.T) {
	trace.Covers(t, "EDS-INT-4", "EDS-RAF-2")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/to", apptest.RetryAfter(503, "3600"), apptest.Status(200))
	r.Endpoint(r.sink.URL("/to"), apptest.Fields{"policy": apptest.Fields{"hold_scope": "event", "max_elapsed_seconds": 1800, "circuit_after": 0}})
	s := r.Source("upstream")
	d := delivery{Path: s.Path, Key: key("hasty"), Sign: bearer(s)}
	if got := r.want(r.send(d), 502); got.Downstream[0].Outcome != "exhausted" {
		t.Fatalf("outcome %s", got.Body)
	}
	r.want(r.send(d), 502)
	if n := len(r.sink.Requests("/to")); n != 1 {
		t.Errorf("%d requests before the time was over", n)
	}
	r.Advance(time.Hour)
	r.want(r.send(d), 200)
}

// TestOfferedOnce: an event had no endpoint. If many repeats find one at the same time, only one of them delivers the event.
func TestOfferedOnce(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		s := r.Source("upstream")
		d := delivery{Path: s.Path, Key: key("nobody"), Sign: bearer(s)}
		r.want(r.send(d), 502)
		ep := r.Endpoint(r.sink.URL("/new"))
		var done []<-chan answer
		for range 8 {
			done = append(done, r.begin(d))
		}
		for _, one := range done {
			if a := r.await(one); a.Status != 200 && a.Status != 503 {
				t.Errorf("answered %d %s", a.Status, a.Body)
			}
		}
		r.want(r.send(d), 200)
		if n, m := len(r.all(ep)), len(r.sink.Requests("/new")); n != 1 || m != 1 {
			t.Errorf("%d deliveries, %d requests", n, m)
		}
	})
}
