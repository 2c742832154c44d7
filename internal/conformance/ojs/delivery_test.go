package ojs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/sender"
	"github.com/godwit-hq/godwit/internal/trace"
)

// A scene is one event to one subscription whose receiver plays a script.
type scene struct {
	name   string
	rows   []string
	script []apptest.Reply

	codes  []int           // of the attempts
	status string          // of the delivery after the window
	waits  []time.Duration // before each further attempt
}

// play sends an event through each scene, advances the clock beyond the schedule, and checks after the server has stopped,
// when no more requests can arrive.
func play(t *testing.T, r *rig, scenes []scene) {
	t.Helper()
	subs := make([]sub, len(scenes))
	events := make([]godwit.EventID, len(scenes))
	for i, sc := range scenes {
		path, kind := fmt.Sprintf("/s%d", i), fmt.Sprintf("scene.s%d", i)
		r.sink.Script(path, sc.script...)
		subs[i] = r.subscribe(path, []string{kind})
		events[i] = r.publish(kind)
	}
	r.settle()
	step := time.Second
	for passed := time.Duration(0); passed < 50*time.Hour; passed += step {
		switch {
		case passed >= 2*time.Hour:
			step = time.Hour
		case passed >= 10*time.Minute:
			step = 10 * time.Minute
		case passed >= 2*time.Minute:
			step = 30 * time.Second
		}
		r.pass(step)
	}
	views := make([]deliveryView, len(scenes))
	for i := range scenes {
		views[i] = r.delivery(events[i], subs[i])
	}
	if err := r.Stop(); err != nil {
		t.Errorf("server ended: %v", err)
	}
	for i, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) {
			trace.Covers(t, sc.rows...)
			d := views[i]
			if !slices.Equal(d.codes(), sc.codes) || d.Status != sc.status {
				t.Errorf("attempts %v, status %s; want %v, %s", d.codes(), d.Status, sc.codes, sc.status)
			}
			requests := r.sink.Requests(subs[i].path)
			if len(requests) != len(sc.codes) {
				t.Errorf("%d requests", len(requests))
			}
			for k, want := range sc.waits {
				if k+1 < len(d.Attempts) {
					if got := d.Attempts[k+1].StartedAt.Sub(d.Attempts[k].StartedAt); got != want {
						t.Errorf("attempt %d began %v after the one before, want %v", k+2, got, want)
					}
				}
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		var scenes []scene
		for _, code := range []int{200, 201, 202, 204, 206, 226, 299} {
			scenes = append(scenes, scene{name: fmt.Sprint(code), rows: []string{"OJS-DLV-2"}, script: reply(code), codes: []int{code}, status: "delivered"})
		}
		for _, code := range []int{400, 401, 403, 404, 408, 409, 410, 418, 422, 425, 451, 499} {
			scenes = append(scenes, scene{name: fmt.Sprint(code), rows: []string{"OJS-DLV-6"}, script: reply(code), codes: []int{code}, status: "dead"})
		}
		for _, code := range []int{500, 502, 503, 504, 599} {
			scenes = append(scenes, scene{name: fmt.Sprint(code), rows: []string{"OJS-DLV-9"}, script: reply(code, 200), codes: []int{code, 200}, status: "delivered", waits: schedule[:1]})
		}
		for _, code := range []int{301, 302, 303, 307, 308} {
			scenes = append(scenes, scene{name: fmt.Sprintf("%d without Location", code), rows: []string{"OJS-DLV-5"}, script: reply(code, 200), codes: []int{code, 200}, status: "delivered", waits: schedule[:1]})
		}
		scenes = append(scenes,
			scene{name: "304", rows: []string{"OJS-DLV-5"}, script: reply(304, 200), codes: []int{304, 200}, status: "delivered", waits: schedule[:1]},
			scene{name: "300", rows: []string{"OJS-DLV-5"}, script: reply(300, 200), codes: []int{300, 200}, status: "delivered", waits: schedule[:1]},
			scene{name: "bad Location", rows: []string{"OJS-DLV-5"}, script: []apptest.Reply{apptest.Redirect(302, "http://%zz/"), apptest.Status(200)},
				codes: []int{302, 200}, status: "delivered", waits: schedule[:1]},
			scene{name: "1xx alone", rows: []string{"OJS-DLV-5"}, script: []apptest.Reply{apptest.Raw("HTTP/1.1 103 Early Hints\r\n\r\n"), apptest.Status(200)},
				codes: []int{0, 200}, status: "delivered", waits: schedule[:1]},

			scene{name: "429 with Retry-After", rows: []string{"OJS-DLV-7"}, script: []apptest.Reply{apptest.RetryAfter(429, "7"), apptest.Status(200)},
				codes: []int{429, 200}, status: "delivered", waits: []time.Duration{7 * time.Second}},
			scene{name: "429 without", rows: []string{"OJS-DLV-7"}, script: reply(429, 200), codes: []int{429, 200}, status: "delivered", waits: schedule[:1]},
			scene{name: "a date", rows: []string{"OJS-DLV-8"}, script: []apptest.Reply{apptest.RetryAfter(429, start.Add(90*time.Second).Format(http.TimeFormat)), apptest.Status(200)},
				codes: []int{429, 200}, status: "delivered", waits: []time.Duration{90 * time.Second}},
			scene{name: "a date that is over", rows: []string{"OJS-DLV-8"}, script: []apptest.Reply{apptest.RetryAfter(429, start.Add(-time.Hour).Format(http.TimeFormat)), apptest.Status(200)},
				codes: []int{429, 200}, status: "delivered", waits: schedule[:1]},
			scene{name: "no number and no date", rows: []string{"OJS-DLV-8"}, script: []apptest.Reply{apptest.RetryAfter(429, "soon"), apptest.RetryAfter(429, "-5"), apptest.Status(200)},
				codes: []int{429, 429, 200}, status: "delivered", waits: schedule[:2]},
			scene{name: "too long", rows: []string{"OJS-DLV-8"}, script: []apptest.Reply{apptest.RetryAfter(429, "9000000"), apptest.Status(200)},
				codes: []int{429, 200}, status: "delivered", waits: []time.Duration{24 * time.Hour}},
			scene{name: "each is an attempt", rows: []string{"OJS-DLV-8"}, script: []apptest.Reply{apptest.RetryAfter(429, "1")},
				codes: []int{429, 429, 429, 429, 429, 429, 429, 429}, status: "dead", waits: []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second}},

			scene{name: "reset", rows: []string{"OJS-DLV-11"}, script: []apptest.Reply{apptest.Reset(), apptest.Status(200)}, codes: []int{0, 200}, status: "delivered", waits: schedule[:1]},
			scene{name: "hung up", rows: []string{"OJS-DLV-11"}, script: []apptest.Reply{apptest.Hangup(), apptest.Status(200)}, codes: []int{0, 200}, status: "delivered", waits: schedule[:1]},
		)
		play(t, r, scenes)
	})
}

func TestConnectionErrors(t *testing.T) {
	m := clock.NewManual(start)
	out, err := sender.New(sender.Config{
		Clock: m.Now, AllowHTTP: true, AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("there is no name server")
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	r := newRig(t, apptest.Options{Clock: m, Tune: func(c *engine.Config) { c.Sender = out }})
	dead := apptest.NewSink(t)
	dead.Close()
	for name, url := range map[string]string{
		"refused": dead.URL("/hook"),
		"name":    "http://nowhere.invalid/hook",
		"tls":     "https://" + strings.TrimPrefix(r.sink.URL("/plain"), "http://"), // it speaks no TLS
	} {
		t.Run(name, func(t *testing.T) {
			trace.Covers(t, "OJS-DLV-11")
			s := r.subscribeURL(url, []string{"job." + name})
			ev := r.publish("job." + name)
			r.settle()
			d := r.delivery(ev, s)
			if d.Status != "failed" || d.NextAttemptAt == nil || d.Attempts[0].Error == "" || d.Attempts[0].StatusCode != 0 {
				t.Errorf("%+v", d)
			}
			if name != "refused" {
				return
			}
			alive := apptest.NewSink(t, apptest.At(dead.Addr()))
			r.pass(schedule[0])
			if d := r.delivery(ev, s); d.Status != "delivered" || d.AttemptCount != 2 || len(alive.Requests("/hook")) != 1 {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	r := newRig(t, apptest.Options{})
	other := apptest.NewSink(t) // another origin
	t.Run("up to three", func(t *testing.T) {
		trace.Covers(t, "OJS-DLV-3")
		for i, code := range []int{301, 302, 303} {
			r.sink.Script(fmt.Sprintf("/three/%d", i), apptest.Redirect(code, fmt.Sprintf("/three/%d", i+1)))
		}
		s := r.subscribe("/three/0", []string{"job.three"})
		ev := r.publish("job.three")
		r.settle()
		if d := r.delivery(ev, s); d.Status != "delivered" || d.AttemptCount != 1 || !slices.Equal(d.codes(), []int{200}) {
			t.Errorf("%+v", d)
		}
		for i := range 4 {
			r.sink.Script(fmt.Sprintf("/four/%d", i), apptest.Redirect(307, fmt.Sprintf("/four/%d", i+1)))
		}
		s = r.subscribe("/four/0", []string{"job.four"})
		ev = r.publish("job.four")
		r.settle()
		if d := r.delivery(ev, s); d.Status != "failed" || d.AttemptCount != 1 {
			t.Errorf("%+v", d)
		}
		if n := len(r.sink.Requests("/four/3")); n != 1 {
			t.Errorf("%d requests to the third target", n)
		}
		if n := len(r.sink.Requests("/four/4")); n != 0 {
			t.Errorf("%d requests to the fourth target", n)
		}
	})
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprintf("%d keeps the request", code), func(t *testing.T) {
			trace.Covers(t, "OJS-DLV-4")
			from, to := fmt.Sprintf("/from%d", code), fmt.Sprintf("/to%d", code)
			r.sink.Script(from, apptest.Redirect(code, other.URL(to)))
			s := r.subscribe(from, []string{"job.moved"}, object{"headers": object{"Authorization": "Bearer hush", "X-Env": "prod"}})
			r.publish("job.moved")
			first := r.requests(s)[0]
			arrived := other.Requests(to)
			if len(arrived) != 1 {
				t.Fatalf("%d requests at the other place", len(arrived))
			}
			second := arrived[0]
			if second.Method != "POST" || string(second.Body) != string(first.Body) || second.Header.Get("Authorization") != "" || first.Header.Get("Authorization") != "Bearer hush" {
				t.Errorf("%s with %v\n%s", second.Method, second.Header, second.Body)
			}
			for _, name := range []string{"Content-Type", "User-Agent", "X-OJS-Event-Type", "X-OJS-Delivery-ID", "X-OJS-Subscription-ID"} {
				if second.Header.Get(name) != first.Header.Get(name) {
					t.Errorf("%s is %q, was %q", name, second.Header.Get(name), first.Header.Get(name))
				}
			}
			verify(t, second, s.secret, r.Clock.Now())
			r.send(t, 204, apptest.Call{Method: "DELETE", Path: s.at("")})
		})
	}
}

// TestRedirectsAreGuarded: a redirect to an address that a subscription may not use is not followed.
func TestRedirectsAreGuarded(t *testing.T) {
	trace.Covers(t, "OJS-DLV-4")
	ca := apptest.CAFile(t)
	r := newRig(t, apptest.Options{Configure: func(c *config.Config) { c.AllowHTTP, c.CAFile = false, ca }})
	secure := apptest.NewSink(t, apptest.WithTLS(apptest.SinkTLS{}))
	for name, location := range map[string]string{"plain": r.sink.URL("/plain"), "private": "https://10.1.2.3/"} {
		secure.Script("/"+name, apptest.Redirect(302, location))
		s := r.subscribeURL(secure.URL("/"+name), []string{"job." + name})
		ev := r.publish("job." + name)
		r.settle()
		if d := r.delivery(ev, s); d.Status == "delivered" || d.AttemptCount != 1 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if n := len(r.sink.Requests("")); n != 0 {
		t.Errorf("%d requests over http", n)
	}
}

// TestTimeouts: attempts time out by the rig's clock, so that the limits are exact.
func TestTimeouts(t *testing.T) {
	r := newRig(t, apptest.Options{ClockTimeouts: true})
	gate := make(chan struct{})
	r.sink.Script("/slow", apptest.Status(200).Until(gate))
	r.sink.Script("/never", apptest.Stall(), apptest.Status(200))
	r.sink.Script("/five", apptest.Stall(), apptest.Status(200))
	slow := r.subscribe("/slow", []string{"job.slow"})
	never := r.subscribe("/never", []string{"job.slow"})
	five := r.subscribe("/five", []string{"job.slow"}, object{"timeout_seconds": 5})
	ev := r.publish("job.slow")
	for _, path := range []string{"/slow", "/never", "/five"} {
		r.sink.WaitOn(path, 1)
	}
	r.Advance(5 * time.Second)
	r.WaitAttempts(ev, five.Endpoint, 1)
	r.Advance(24 * time.Second)
	close(gate)
	r.WaitDelivery(ev, slow.Endpoint, godwit.DeliveryAccepted)
	r.Advance(time.Second)
	r.WaitAttempts(ev, never.Endpoint, 1)
	r.pass(schedule[0])
	t.Run("thirty seconds", func(t *testing.T) {
		trace.Covers(t, "OJS-DLV-12")
		if d := r.delivery(ev, slow); !slices.Equal(d.codes(), []int{200}) || d.Attempts[0].DurationMS != 29_000 {
			t.Errorf("within the time: %+v", d)
		}
		if d := r.delivery(ev, never); d.Attempts[0].DurationMS != 30_000 {
			t.Errorf("beyond it: %+v", d)
		}
	})
	t.Run("is retried", func(t *testing.T) {
		trace.Covers(t, "OJS-DLV-10")
		if d := r.delivery(ev, never); !slices.Equal(d.codes(), []int{0, 200}) || d.Attempts[0].Error != "timeout" || d.Status != "delivered" {
			t.Errorf("%+v", d)
		}
	})
	t.Run("of its own", func(t *testing.T) {
		trace.Covers(t, "OJS-DLV-13")
		if d := r.delivery(ev, five); d.Attempts[0].Error != "timeout" || d.Attempts[0].DurationMS != 5_000 {
			t.Errorf("%+v", d)
		}
		for seconds, status := range map[int]int{4: 400, 5: 201, 60: 201, 61: 400} {
			r.send(t, status, apptest.Call{Path: subscriptionsPath, Body: object{"url": "https://example.com/", "events": []string{"x"}, "timeout_seconds": seconds}})
		}
	})
}

// TestFailOpen: an endpoint that hangs delays neither producers nor other subscriptions. Its request is answered only after
// every post was answered and every other delivery arrived; the time limit of the request never ends, because the clock
// stands.
func TestFailOpen(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-DLV-14")
		o.ClockTimeouts = true
		r := newRig(t, o)
		gate := make(chan struct{})
		r.sink.Script("/hangs", apptest.Status(200).Until(gate))
		hangs := r.subscribe("/hangs", []string{"job.*"})
		r.subscribe("/fine", []string{"job.*"})
		ev := r.publish("job.done")
		r.sink.WaitOn("/hangs", 1)
		const n = 500
		for range n - 1 {
			r.publish("job.done")
		}
		r.sink.WaitOn("/fine", n)
		if d := r.delivery(ev, hangs); d.AttemptCount != 0 {
			t.Errorf("the hanging request has ended: %+v", d)
		}
		close(gate)
		r.WaitDelivery(ev, hangs.Endpoint, godwit.DeliveryAccepted)
	})
}

func TestDeliveryIdentity(t *testing.T) {
	trace.Covers(t, "OJS-DLV-15")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/a", reply(500, 500, 404, 200)...)
	a, b := r.subscribe("/a", []string{"job.one"}), r.subscribe("/b", []string{"job.*"})
	ev := r.publish("job.one")
	r.settle()
	r.pass(schedule[0])
	r.pass(schedule[1])
	r.retry(t, 202, r.delivery(ev, a).ID)
	ids := map[string]bool{}
	requests := r.requests(a)
	for _, req := range requests {
		ids[req.Header.Get("X-OJS-Delivery-ID")] = true
	}
	if len(requests) != 4 || len(ids) != 1 {
		t.Errorf("%d requests with the ids %v", len(requests), ids)
	}
	r.publish("job.one")
	for _, s := range []sub{a, b} {
		for _, req := range r.requests(s) {
			ids[req.Header.Get("X-OJS-Delivery-ID")] = true
		}
	}
	if len(ids) != 4 { // two events, two subscriptions
		t.Errorf("ids %v", ids)
	}
}

func TestNoOrder(t *testing.T) {
	trace.Covers(t, "OJS-DLV-16")
	r := newRig(t, apptest.Options{})
	r.sink.Script("/hook", reply(500, 200)...)
	s := r.subscribe("/hook", []string{"job.*"})
	first := r.publish("job.first")
	r.settle()
	second := r.publish("job.second")
	r.settle()
	if d := r.delivery(second, s); d.Status != "delivered" {
		t.Errorf("the second: %+v", d)
	}
	if d := r.delivery(first, s); d.Status != "failed" {
		t.Errorf("the first: %+v", d)
	}
	r.pass(schedule[0])
	if got := r.types(s); !slices.Equal(got, []string{"job.first", "job.second", "job.first"}) {
		t.Errorf("%v", got)
	}
}

func TestFanOut(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "OJS-DLV-21", "OJS-DLV-22")
		r := newRig(t, o)
		r.sink.Script("/failing", reply(500, 500, 200)...)
		fine, failing := r.subscribe("/fine", []string{"job.*"}), r.subscribe("/failing", []string{"job.*"})
		r.subscribe("/idle", []string{"job.*"}, object{"active": false})
		ev := r.publish("job.done")
		count := func() int { return len(r.list("event_id=" + ev.String())) }
		for i, wait := range []time.Duration{0, schedule[0], schedule[1]} {
			r.pass(wait)
			if d := r.delivery(ev, failing); d.AttemptCount != i+1 || count() != 2 {
				t.Errorf("after %d attempts: %d deliveries, %+v", i+1, count(), d)
			}
		}
		if a, b := len(r.requests(fine)), len(r.requests(failing)); a != 1 || b != 3 {
			t.Errorf("%d and %d requests", a, b)
		}
		if d := r.delivery(ev, failing); d.Status != "delivered" {
			t.Errorf("%+v", d)
		}
		if n := len(r.sink.Requests("/idle")); n != 0 {
			t.Errorf("%d requests to the inactive one", n)
		}
	})
}

// TestAtLeastOnce kills the real program while a request is on the wire.
func TestAtLeastOnce(t *testing.T) {
	trace.Covers(t, "OJS-DLV-1", "OJS-RTY-9")
	t.Parallel()
	sink := apptest.NewSink(t)
	sink.Script("/hangs", apptest.Stall(), apptest.Status(200))
	sink.Script("/fails", apptest.Status(500), apptest.Status(200))
	p := apptest.StartProcess(t, apptest.ProcessOptions{Args: []string{"--time-scale", "10"}}) // 30 s take 3
	client := p.NewClient()
	for _, path := range []string{"/hangs", "/fails"} {
		exchange(t, client, "POST", p.URL+subscriptionsPath, fmt.Sprintf(`{"url":%q,"events":["job.*"]}`, sink.URL(path)), http.StatusCreated)
	}
	exchange(t, client, "POST", p.URL+eventsPath, `{"type":"job.done","source":"ojs://s","data":{}}`, http.StatusAccepted)
	sink.WaitOn("/hangs", 1)
	p.WaitAttempt("the failed attempt", func(json.RawMessage) bool { return true })
	p.Kill()
	killed := time.Now()
	p.Restart()
	for _, path := range []string{"/hangs", "/fails"} {
		requests := sink.WaitOn(path, 2)
		if requests[0].Header.Get("X-OJS-Delivery-ID") != requests[1].Header.Get("X-OJS-Delivery-ID") || string(requests[0].Body) != string(requests[1].Body) {
			t.Errorf("%s: another delivery after the restart: %v", path, requests[1].Header)
		}
		if gap := requests[1].At.Sub(requests[0].At); path == "/fails" && gap < 3*time.Second {
			t.Errorf("the retry came after %v, %v after the kill", gap, requests[1].At.Sub(killed))
		}
	}
}
