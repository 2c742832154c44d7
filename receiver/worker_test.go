package receiver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/trace"
	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/sqlitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openSQLite(t testing.TB) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "webhooks.db"), sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// An office is a receiver with an inbox and a worker that is told when to work.
type office struct {
	*rig
	store  *sqlitestore.Store
	worker *receiver.Worker
	calls  atomic.Int32
	work   receiver.Handler
}

func newOffice(t testing.TB, change ...func(*receiver.WorkerOptions)) *office {
	t.Helper()
	f := &office{store: openSQLite(t)}
	clock := &clock{now: start}
	o := receiver.WorkerOptions{
		Inbox: f.store, Clock: clock.Now, Random: func() float64 { return 0.5 },
		Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
			f.calls.Add(1)
			if f.work == nil {
				return nil, nil
			}
			return f.work(ctx, d)
		},
	}
	for _, c := range change {
		c(&o)
	}
	var err error
	if f.worker, err = receiver.NewWorker(o); err != nil {
		t.Fatal(err)
	}
	f.rig = newRig(t, func(o *receiver.Options) {
		o.Scheme = receiver.Cybercube{Secrets: []string{secretA}}
		o.Handler, o.Inbox, o.Store, o.Clock = nil, f.worker, f.store, clock.Now
	})
	f.clock = clock
	return f
}

func (f *office) send(key string) answer {
	f.t.Helper()
	for _, m := range mechanisms() {
		if m.name == "cybercube" {
			return f.do(f.make(m, event{id: id(key)}, true))
		}
	}
	panic("no cybercube")
}

func (f *office) drain(want int) {
	f.t.Helper()
	n, err := f.worker.Drain(f.t.Context())
	if err != nil || n != want {
		f.t.Fatalf("%d attempts, %v; want %d", n, err, want)
	}
}

func (f *office) state(key string) (state, reason string, attempt int) {
	f.t.Helper()
	err := f.store.DB().QueryRow(`SELECT state, reason, attempt FROM webhook_inbox WHERE event_id = ?`, id(key)).Scan(&state, &reason, &attempt)
	if err != nil {
		f.t.Fatal(err)
	}
	return state, reason, attempt
}

// TestAcknowledgedThenProcessed: durable first, then the answer, then the work.
func TestAcknowledgedThenProcessed(t *testing.T) {
	trace.Covers(t, "CCW-RCV-7", "CCW-RCV-6", "CCW-RCV-5")
	f := newOffice(t)
	var seen *receiver.Delivery
	f.work = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) { seen = d; return nil, nil }
	a := f.want(f.send("x"), 200)
	if a.Body != `{"received":true,"event_id":"`+id("x")+`"}` {
		t.Errorf("answered %s", a.Body)
	}
	if f.calls.Load() != 0 {
		t.Error("the work was done before the answer")
	}
	var text, eventID, eventType, receivedAt string
	err := f.store.DB().QueryRow(`SELECT delivery, event_id, event_type, received_at FROM webhook_inbox`).Scan(&text, &eventID, &eventType, &receivedAt)
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Name string
		Data map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	if job.Name != "process-webhook" || len(job.Data) != 4 || eventID != id("x") || eventType != "order.paid" {
		t.Errorf("job %s", text)
	}
	for member, want := range map[string]string{
		"event_id": `"` + id("x") + `"`, "event_type": `"order.paid"`, "payload": fmt.Sprintf(`{"id":%q,"type":"order.paid","n":1}`, id("x")),
		"received_at": `"2026-07-01T12:00:00.000000Z"`,
	} {
		if string(job.Data[member]) != want {
			t.Errorf("%s is %s, want %s", member, job.Data[member], want)
		}
	}
	f.want(f.send("x"), 200) // a repeat, before the work
	f.drain(1)
	f.want(f.send("x"), 200) // and after it
	f.drain(0)
	if seen == nil || seen.EventID != id("x") || seen.Scheme != "cybercube" || string(seen.Body) == "" || seen.Header.Get("X-Webhook-Signature") != "" {
		t.Errorf("the worker saw %+v", seen)
	}
	if f.calls.Load() != 1 {
		t.Errorf("processed %d times", f.calls.Load())
	}
}

// TestAnswerComesBeforeTheWork: on a live worker, the work begins when the answer is out.
func TestAnswerComesBeforeTheWork(t *testing.T) {
	trace.Covers(t, "CCW-RCV-8", "CCW-RCV-6")
	f := newOffice(t, func(o *receiver.WorkerOptions) { o.Poll = time.Hour })
	answered, worked := make(chan struct{}), make(chan struct{})
	f.work = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
		<-answered // had the work to be done before the answer, this would be for ever
		close(worked)
		return nil, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- f.worker.Run(ctx) }()
	f.want(f.send("x"), 200)
	close(answered)
	<-worked
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

type brokenInbox struct{ receiver.Inbox }

func (brokenInbox) Enqueue(context.Context, receiver.Job) error { return errors.New("queue is down") }

func TestQueueIsDown(t *testing.T) {
	trace.Covers(t, "CCW-RCV-7")
	for _, m := range mechanisms() {
		g := newRig(t, withScheme(m.scheme), func(o *receiver.Options) { o.Handler, o.Inbox = nil, brokenInbox{} })
		g.want(g.do(g.make(m, event{id: id("x")}, true)), 500)
		g.want(g.do(g.make(m, event{id: id("x")}, true)), 500) // it was not acknowledged, so it may be sent again
	}
}

// TestQueuePanics: an application's own queue may panic, and the process lives.
func TestQueuePanics(t *testing.T) {
	trace.Covers(t, "EDS-DEF-3")
	g := newRig(t, func(o *receiver.Options) {
		o.Handler, o.Inbox = nil, queue(func(receiver.Job) error { panic("queue") })
	})
	g.want(g.do(g.eds(event{id: id("x")})), 500)
	g.want(g.do(g.eds(event{id: id("x")})), 500) // the key is free
}

func TestWorkIsRetried(t *testing.T) {
	f := newOffice(t)
	f.work = func(context.Context, *receiver.Delivery) (receiver.Result, error) {
		switch f.calls.Load() {
		case 1:
			return nil, errors.New("not yet")
		case 2:
			panic("not yet")
		case 3:
			return receiver.RetryAfter{After: time.Hour, Reason: "later"}, nil
		}
		return nil, nil
	}
	f.want(f.send("x"), 200)
	for i, wait := range []time.Duration{0, 500 * time.Millisecond, time.Second, time.Hour} {
		f.clock.Advance(wait - time.Millisecond)
		if wait > 0 {
			f.drain(0)
		}
		f.clock.Advance(time.Millisecond)
		f.drain(1)
		if int(f.calls.Load()) != i+1 {
			t.Fatalf("attempt %d: %d calls", i, f.calls.Load())
		}
	}
	if state, _, attempt := f.state("x"); state != "done" || attempt != 4 {
		t.Errorf("%s after %d attempts", state, attempt)
	}
}

func TestWorkIsGivenUp(t *testing.T) {
	var dead []string
	f := newOffice(t, func(o *receiver.WorkerOptions) {
		o.MaxAttempts = 3
		o.OnDead = func(j receiver.ClaimedJob, reason string) { dead = append(dead, j.Delivery.EventID+": "+reason) }
	})
	f.work = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		switch d.Key {
		case id("refused"):
			return receiver.Reject{Reason: "no such order"}, nil
		case id("late"):
			return receiver.RetryAfter{Reason: "busy"}, nil
		}
		return nil, errors.New("always")
	}
	for _, key := range []string{"failing", "refused", "late"} {
		f.want(f.send(key), 200)
		for range 5 {
			if _, err := f.worker.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.clock.Advance(time.Hour)
		}
	}
	want := []string{id("failing") + ": failed 3 times", id("refused") + ": no such order", id("late") + ": put off 3 times: busy"}
	if strings.Join(dead, "|") != strings.Join(want, "|") || f.calls.Load() != 7 {
		t.Errorf("dead %q after %d calls", dead, f.calls.Load())
	}
	if state, reason, _ := f.state("refused"); state != "dead" || reason != "no such order" {
		t.Errorf("%s: %s", state, reason)
	}
	f.want(f.send("failing"), 200) // it was acknowledged, and stays so
}

// TestWaitsGrow: full jitter below a doubling bound, which ends at the cap.
func TestWaitsGrow(t *testing.T) {
	f := newOffice(t, func(o *receiver.WorkerOptions) { o.Random = func() float64 { return 1 }; o.Cap = 10 * time.Second })
	f.work = func(context.Context, *receiver.Delivery) (receiver.Result, error) { return nil, errors.New("no") }
	f.want(f.send("x"), 200)
	f.drain(1)
	for _, wait := range []time.Duration{1, 2, 4, 8, 10, 10, 10} {
		f.clock.Advance(wait*time.Second - time.Millisecond)
		f.drain(0)
		f.clock.Advance(time.Millisecond)
		f.drain(1)
	}
}

// TestWorkerStops: what has begun is finished, nothing more is taken up, and what does not finish is put back for nothing.
func TestWorkerStops(t *testing.T) {
	for _, c := range []struct {
		name    string
		patient bool
	}{{"what has begun is finished", true}, {"what does not finish is put back", false}} {
		t.Run(c.name, func(t *testing.T) {
			f := newOffice(t, func(o *receiver.WorkerOptions) {
				o.Concurrency, o.Poll = 1, time.Hour
				if !c.patient {
					o.StopTimeout = time.Millisecond
				}
			})
			running, release := make(chan struct{}), make(chan struct{})
			f.work = func(ctx context.Context, _ *receiver.Delivery) (receiver.Result, error) {
				close(running)
				if c.patient {
					<-release
					return nil, ctx.Err()
				}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			for _, key := range []string{"a", "b", "c"} {
				f.want(f.send(key), 200)
				f.clock.Advance(time.Second)
			}
			ctx, stop := context.WithCancel(t.Context())
			stopped := make(chan error, 1)
			go func() { stopped <- f.worker.Run(ctx) }()
			<-running
			stop()
			close(release)
			if err := <-stopped; err != nil {
				t.Fatal(err)
			}
			if f.calls.Load() != 1 {
				t.Errorf("%d were taken up", f.calls.Load())
			}
			want, attempts := "done", 1
			if !c.patient {
				want, attempts = "waiting", 0
			}
			if state, _, attempt := f.state("a"); state != want || attempt != attempts {
				t.Errorf("%s after %d attempts", state, attempt)
			}
		})
	}
}

// stopping is an inbox that is told to stop while a job is being claimed.
type stopping struct {
	receiver.Inbox
	stop context.CancelFunc
}

func (s stopping) Claim(ctx context.Context, limit int, now, leaseUntil time.Time) ([]receiver.ClaimedJob, error) {
	jobs, err := s.Inbox.Claim(context.WithoutCancel(ctx), limit, now, leaseUntil)
	s.stop()
	if ctx.Err() != nil { // as when the answer of the database is not waited for
		return nil, ctx.Err()
	}
	return jobs, err
}

// TestClaimIsNotLost: a job that is claimed while the worker is told to stop does not wait for its lease to end.
func TestClaimIsNotLost(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	f := newOffice(t, func(o *receiver.WorkerOptions) { o.Inbox, o.Concurrency = stopping{o.Inbox, stop}, 1 })
	f.want(f.send("x"), 200)
	if err := f.worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if state, _, attempt := f.state("x"); state != "done" || attempt != 1 {
		t.Errorf("%s after %d attempts", state, attempt)
	}
}

// TestWorkThatKills: a job that no worker ever finished is given up, or it would kill workers for ever.
func TestWorkThatKills(t *testing.T) {
	var dead []string
	f := newOffice(t, func(o *receiver.WorkerOptions) {
		o.MaxAttempts = 3
		o.OnDead = func(_ receiver.ClaimedJob, reason string) { dead = append(dead, reason) }
	})
	f.want(f.send("x"), 200)
	for range 3 { // workers that die
		jobs, err := f.store.Claim(t.Context(), 1, f.clock.Now(), f.clock.Now().Add(time.Minute))
		if err != nil || len(jobs) != 1 {
			t.Fatal(jobs, err)
		}
		f.clock.Advance(time.Minute)
	}
	f.drain(1)
	if state, reason, _ := f.state("x"); state != "dead" || len(dead) != 1 || dead[0] != reason || f.calls.Load() != 0 {
		t.Errorf("%s: %q, %q; %d calls", state, reason, dead, f.calls.Load())
	}
	f.drain(0)
}

// purged tells when a purge is over.
type purged struct {
	*sqlitestore.Store
	n chan int
}

func (p purged) PurgeJobs(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := p.Store.PurgeJobs(ctx, before, limit)
	p.n <- n
	return n, err
}
