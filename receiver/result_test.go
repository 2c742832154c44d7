package receiver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
)

// TestGuidance: a handler may ask for a delay, only on answers that ask for a retry.
func TestGuidance(t *testing.T) {
	trace.Covers(t, "EDS-RTY-2", "EDS-RAF-1", "EDS-PRB-1")
	for _, c := range []struct {
		result receiver.Result
		status int
		after  string
	}{
		{receiver.RetryAfter{After: 7 * time.Second, Reason: "busy"}, 503, "7"},
		{receiver.RetryAfter{After: 6001 * time.Millisecond, Reason: "busy", TooMany: true}, 429, "7"},
		{receiver.RetryAfter{}, 503, "1"},
		{receiver.Accepted{Header: http.Header{"Retry-After": {"5"}}}, 204, ""},
		{receiver.Accepted{Header: http.Header{"retry-after": {"5"}}}, 204, ""},
		{receiver.Reject{Reason: "no"}, 422, ""},
		{receiver.Reject{Status: 410, Reason: "gone"}, 410, ""},
	} {
		g := newRig(t)
		g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) { return c.result, nil }
		a := g.want(g.do(g.eds(event{id: id("x")})), c.status)
		if got := a.Header.Get("Retry-After"); got != c.after {
			t.Errorf("%+v: Retry-After %q, want %q", c.result, got, c.after)
		}
		if c.status >= 400 && a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%+v: %s", c.result, a.Header.Get("Content-Type"))
		}
	}
}

// TestWhatDoesNotCount frees the key, so that a retry is a first request.
func TestWhatDoesNotCount(t *testing.T) {
	trace.Covers(t, "EDS-DUP-9", "EDS-DEF-3", "CCW-IDM-4")
	for name, first := range map[string]receiver.Handler{
		"put off": func(context.Context, *receiver.Delivery) (receiver.Result, error) { return receiver.RetryAfter{}, nil },
		"an error": func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			return nil, errors.New("secret detail")
		},
		"a panic":  func(context.Context, *receiver.Delivery) (receiver.Result, error) { panic("secret detail") },
		"an abort": func(context.Context, *receiver.Delivery) (receiver.Result, error) { panic(http.ErrAbortHandler) },
		"unfit": func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			return receiver.Accepted{Status: 302}, nil
		},
		"transient": func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			return receiver.Reject{Status: 429}, nil
		},
		"no refusal": func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			return receiver.Reject{Status: 500}, nil
		},
		"negative": func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			return receiver.RetryAfter{After: -1}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			effects := 0
			g.handle = func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
				if g.calls.Load() == 1 {
					return first(ctx, d)
				}
				effects++
				return receiver.Accepted{Status: 200}, nil
			}
			a := g.do(g.eds(event{id: id("x")}))
			want := 500
			if name == "put off" {
				want = 503
			}
			g.want(a, want)
			if strings.Contains(a.Body, "secret") || a.Header.Get("Link") == "" {
				t.Errorf("answer %s", a.Body)
			}
			g.want(g.do(g.eds(event{id: id("x")})), 200)
			g.want(g.do(g.eds(event{id: id("x")})), 200)
			if effects != 1 {
				t.Errorf("%d effects", effects)
			}
		})
	}
}

func TestMultiStatusNeedsAnAgreement(t *testing.T) {
	trace.Covers(t, "EDS-STA-207b")
	for _, agreement := range []string{"", "https://example.com/agreement"} {
		g := newRig(t, func(o *receiver.Options) { o.MultiStatusAgreement = agreement })
		g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
			return receiver.Accepted{Status: 207, Body: []byte("<multistatus/>")}, nil
		}
		want := 500
		if agreement != "" {
			want = 207
		}
		g.want(g.do(g.eds(event{id: id("x")})), want)
		if told := strings.Contains(g.log.String(), "207"); told == (agreement != "") {
			t.Errorf("with agreement %q: log says %s", agreement, g.log)
		}
	}
}

// TestUsualAnswers: what each scheme's senders expect.
func TestUsualAnswers(t *testing.T) {
	trace.Covers(t, "CCW-RSP-14", "CCW-RCV-9", "CCW-RCV-18", "CCW-IDM-1", "CCW-IDM-2", "OJS-DLV-20", "OJS-DLV-19")
	for _, m := range mechanisms() {
		t.Run(m.name, func(t *testing.T) {
			g := newRig(t, withScheme(m.scheme))
			status, body := 200, ""
			switch m.name {
			case "eds", "standard-webhooks", "bearer", "basic":
				status = 204
			case "ojs":
				body = `{"received":true}`
			case "cybercube":
				body = `{"received":true,"event_id":"` + id("x") + `"}`
			}
			for range 2 { // the first, and the repeat, which is signed anew
				a := g.want(g.do(g.make(m, event{id: id("x")}, true)), status)
				if a.Body != body {
					t.Errorf("body %q, want %q", a.Body, body)
				}
				if body != "" && a.Header.Get("Content-Type") != "application/json" {
					t.Errorf("type %q", a.Header.Get("Content-Type"))
				}
				g.clock.Advance(time.Second)
			}
			g.wantCalls(1)
			if m.name == "cybercube" {
				if a := g.want(g.do(g.make(m, event{id: id("y")}, false)), 401); a.Body != `{"error":"Invalid signature"}` {
					t.Errorf("refusal %s", a.Body)
				}
			}
		})
	}
}

// TestAcceptedOnly: refusals are not kept, so that a mended handler sees the event again.
func TestAcceptedOnly(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) { o.Dedup.AcceptedOnly = true })
	g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
		if g.calls.Load() == 1 {
			return receiver.Reject{Status: 422}, nil
		}
		return nil, nil
	}
	g.want(g.do(g.eds(event{id: id("x")})), 422)
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	g.want(g.do(g.eds(event{id: id("x")})), 204)
	g.wantCalls(2)
}

// TestSenderHangsUp: the handler goes on, its result is kept, and the retry gets it.
func TestSenderHangsUp(t *testing.T) {
	trace.Covers(t, "IKH-DEF-6", "CCW-IDM-11", "EDS-NET-3")
	g := newRig(t)
	running, gone, seen := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	g.handle = func(ctx context.Context, _ *receiver.Delivery) (receiver.Result, error) {
		close(running)
		<-gone
		seen <- ctx.Err()
		return receiver.Accepted{Body: []byte("done")}, nil
	}
	conn, err := tls.Dial("tcp", g.server.Listener.Addr().String(), g.as(nil).Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.eds(event{id: id("x")}).Write(conn); err != nil {
		t.Fatal(err)
	}
	<-running
	conn.Close()
	close(gone)
	if err := <-seen; err != nil {
		t.Errorf("the handler's context ended: %v", err)
	}
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := g.want(g.do(g.eds(event{id: id("x")})), 200)
	if a.Body != "done" || a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the retry got %v %q", a.Header, a.Body)
	}
	g.wantCalls(1)
}

// TestHandlerIsLate: the sender is told to retry, no other handler runs at the same time, and the result is kept.
func TestHandlerIsLate(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) { o.Timeout = 10 * time.Millisecond })
	called, end := make(chan struct{}), make(chan struct{})
	g.handle = func(ctx context.Context, _ *receiver.Delivery) (receiver.Result, error) {
		close(called)
		<-ctx.Done()
		<-end
		return receiver.Accepted{Body: []byte("late")}, nil
	}
	a := g.want(g.do(g.eds(event{id: id("x")})), 503)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	g.want(g.do(g.eds(event{id: id("x")})), 503)
	<-called // on a slow machine its time is over before it begins
	g.wantCalls(1)
	close(end)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := g.want(g.do(g.eds(event{id: id("x")})), 200); a.Body != "late" {
		t.Errorf("the retry got %q", a.Body)
	}
	g.wantCalls(1)
	if _, err := receiver.New(receiver.Options{Scheme: edsScheme, Handler: accept, Timeout: time.Minute, Dedup: receiver.Dedup{Lease: time.Minute}}); err == nil {
		t.Error("a lease that is no longer than the timeout was taken")
	}
}

// TestOneFinalAnswer: whatever the handler does, a request on the wire gets one answer, and the connection goes on.
func TestOneFinalAnswer(t *testing.T) {
	trace.Covers(t, "EDS-DEF-3")
	g := newRig(t)
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		if strings.HasSuffix(d.Key, "panic") {
			panic("at the disco")
		}
		return nil, nil
	}
	conn, err := tls.Dial("tcp", g.server.Listener.Addr().String(), g.as(nil).Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for i, key := range []string{"1", "panic", "2", "panic", "3"} {
		if err := g.eds(event{id: id(key)}).Write(conn); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 500, false: 204}[key == "panic"]; resp.StatusCode != want {
			t.Errorf("answer %d: %d", i, resp.StatusCode)
		}
	}
	if answers.Buffered() != 0 {
		t.Error("there is more than one answer to a request")
	}
}

// pusher would push if it was asked to.
type pusher struct {
	*httptest.ResponseRecorder
	pushed int
}

func (p *pusher) Push(string, *http.PushOptions) error { p.pushed++; return nil }

func TestNothingIsPushed(t *testing.T) {
	trace.Covers(t, "EDS-VER-6")
	g := newRig(t)
	for _, status := range []int{204, 401} {
		req := g.eds(event{id: id("x")})
		if status == 401 {
			req.Header.Del("Signature")
		}
		served := httptest.NewRequest("POST", req.URL.String(), req.Body)
		served.Header, served.ProtoMajor = req.Header, 2
		w := &pusher{ResponseRecorder: httptest.NewRecorder()}
		g.ServeHTTP(w, served)
		if w.Code != status || w.pushed != 0 {
			t.Errorf("%d, %d pushed", w.Code, w.pushed)
		}
	}
}

// TestHandlersRunBesideEachOther: a key delays only its own repeats.
func TestHandlersRunBesideEachOther(t *testing.T) {
	g := newRig(t)
	const many = 20
	var together, all sync.WaitGroup
	together.Add(many)
	g.handle = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
		together.Done()
		together.Wait()
		return nil, nil
	}
	for i := range many {
		req := g.eds(event{id: id(fmt.Sprint(i))})
		all.Go(func() {
			if a, err := g.try(req); err != nil || a.Status != 204 {
				t.Errorf("%d, %v", a.Status, err)
			}
		})
	}
	all.Wait()
}

// TestWhatAHandlerSees.
func TestWhatAHandlerSees(t *testing.T) {
	g := newRig(t)
	var got *receiver.Delivery
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) { got = d; return nil, nil }
	req := g.eds(event{id: id("x"), path: "/hooks?a=1", body: " {\"a\": 1.0}\x00", typ: "application/vnd.acme+json; v=2"})
	req.Header.Set("Godwit-Event-Type", "unsigned") // is not believed
	g.want(g.do(req), 204)
	if got.Scheme != "eds" || got.Principal != "shop" || got.Key != id("x") || got.EventID != id("x") || got.EventType != "" || got.Method != "POST" ||
		got.URL != g.server.URL+"/hooks?a=1" || got.ContentType != "application/vnd.acme+json; v=2" || string(got.Body) != " {\"a\": 1.0}\x00" ||
		!got.ReceivedAt.Equal(start) || !got.SignedAt.Equal(start) || got.Header.Get("Godwit-Event-Type") != "unsigned" {
		t.Errorf("delivery %+v", got)
	}
	var into map[string]any
	if err := got.JSON(&into); err == nil {
		t.Error("a body that is no JSON was decoded")
	}
}

func TestSlackChallenge(t *testing.T) {
	for _, m := range mechanisms() {
		if m.name != "slack" {
			continue
		}
		g := newRig(t, withScheme(m.scheme))
		e := event{body: `{"type":"url_verification","challenge":"3eZbrw1a"}`}
		g.want(g.do(g.make(m, e, false)), 401)
		if a := g.want(g.do(g.make(m, e, true)), 200); a.Body != "3eZbrw1a" {
			t.Errorf("answer %q", a.Body)
		}
		g.wantCalls(0)
	}
}
