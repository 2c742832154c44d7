package receiver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
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
	before := time.Now()
	a := f.want(f.send("x"), 200)
	if a.Body != `{"received":true,"event_id":"`+id("x")+`"}` || time.Since(before) > 30*time.Second {
		t.Errorf("%s after %s", a.Body, time.Since(before))
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
		g.want(g.do(g.make(m, event{id: id("x")}, true)), 500) // it was not acknowledged, so it may come again
	}
}

// TestQueuePanics: a queue of somebody's own may, and the process lives.
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

// TestRunPurges: nobody has to ask for it.
func TestRunPurges(t *testing.T) {
	n := make(chan int, 1)
	f := newOffice(t, func(o *receiver.WorkerOptions) { o.Inbox = purged{o.Inbox.(*sqlitestore.Store), n} })
	f.want(f.send("x"), 200)
	f.drain(1)
	f.clock.Advance(31 * 24 * time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- f.worker.Run(ctx) }()
	if got := <-n; got != 1 {
		t.Errorf("%d were dropped", got)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestWorkersShare: several of them do each job once.
func TestWorkersShare(t *testing.T) {
	const jobs = 40
	f := newOffice(t)
	var mu sync.Mutex
	done := map[string]int{}
	all := make(chan struct{})
	f.work = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if done[d.Key]++; len(done) == jobs {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		return nil, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { _ = f.worker.Run(ctx) })
	}
	for i := range jobs {
		f.want(f.send(fmt.Sprint(i)), 200)
	}
	<-all
	stop()
	workers.Wait()
	for key, n := range done {
		if n != 1 {
			t.Errorf("%s was done %d times", key, n)
		}
	}
}

// TestTransactionalWork: an effect and the end of its job happen together or not at all.
func TestTransactionalWork(t *testing.T) {
	f := newOffice(t, func(o *receiver.WorkerOptions) { o.Transactional = true })
	if _, err := f.store.DB().Exec(`CREATE TABLE effects (n INTEGER)`); err != nil {
		t.Fatal(err)
	}
	f.work = func(ctx context.Context, _ *receiver.Delivery) (receiver.Result, error) {
		if _, err := sqlitestore.Tx(ctx).ExecContext(ctx, `INSERT INTO effects VALUES (1)`); err != nil {
			return nil, err
		}
		switch f.calls.Load() {
		case 1:
			return nil, errors.New("after the effect")
		case 2:
			panic("after the effect")
		case 3:
			return receiver.RetryAfter{}, nil
		}
		return nil, nil
	}
	f.want(f.send("x"), 200)
	for i := 1; i <= 5; i++ {
		if _, err := f.worker.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		var n, want int
		if err := f.store.DB().QueryRow(`SELECT count(*) FROM effects`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if i >= 4 {
			want = 1
		}
		if n != want {
			t.Errorf("after attempt %d: %d effects, want %d", i, n, want)
		}
		f.clock.Advance(time.Hour)
	}
	if state, _, _ := f.state("x"); state != "done" {
		t.Error(state)
	}
	if _, err := receiver.NewWorker(receiver.WorkerOptions{Inbox: brokenInbox{}, Handler: accept, Transactional: true}); err == nil {
		t.Error("an inbox without transactions was taken")
	}
	if _, err := receiver.NewWorker(receiver.WorkerOptions{Handler: accept}); err == nil {
		t.Error("no inbox was taken")
	}
}

func TestJobsArePurged(t *testing.T) {
	f := newOffice(t)
	f.want(f.send("x"), 200)
	f.drain(1)
	f.clock.Advance(29 * 24 * time.Hour)
	if n, err := f.worker.Purge(t.Context()); n != 0 || err != nil {
		t.Error(n, err)
	}
	f.clock.Advance(2 * 24 * time.Hour)
	if n, err := f.worker.Purge(t.Context()); n != 1 || err != nil {
		t.Error(n, err)
	}
	f.want(f.send("x"), 200) // a new event now
	f.drain(1)
}

// TestQueueOfYourOwn: a job goes through JSON and is a delivery again.
func TestQueueOfYourOwn(t *testing.T) {
	var queued []byte
	g := newRig(t, func(o *receiver.Options) {
		o.Handler = nil
		o.Inbox = queue(func(j receiver.Job) (err error) { queued, err = json.Marshal(j); return err })
	})
	g.want(g.do(g.eds(event{id: id("x"), body: "not JSON \x00\xff", typ: "application/octet-stream"})), 204)
	var j receiver.Job
	if err := json.Unmarshal(queued, &j); err != nil {
		t.Fatal(err)
	}
	if d := j.Delivery; d.Key != id("x") || string(d.Body) != "not JSON \x00\xff" || d.ContentType != "application/octet-stream" || len(j.ID) != 64 {
		t.Errorf("job %+v", d)
	}
	for _, broken := range []string{`{`, `{}`, `{"delivery":{"received_at":"x"}}`, `{"delivery":{"received_at":"2026-07-01T12:00:00Z","signed_at":"x"}}`} {
		if json.Unmarshal([]byte(broken), &j) == nil {
			t.Errorf("%s was read", broken)
		}
	}
	if _, err := json.Marshal(receiver.Job{}); err == nil {
		t.Error("a job without a delivery was written")
	}
}

type queue func(receiver.Job) error

func (q queue) Enqueue(_ context.Context, j receiver.Job) error { return q(j) }

// TestTransactionalHandler: through the receiver, effect and key are one.
func TestTransactionalHandler(t *testing.T) {
	store := openSQLite(t)
	if _, err := store.DB().Exec(`CREATE TABLE effects (n INTEGER)`); err != nil {
		t.Fatal(err)
	}
	effects := func() (n int) {
		t.Helper()
		if err := store.DB().QueryRow(`SELECT count(*) FROM effects`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	results := []func() (receiver.Result, error){
		func() (receiver.Result, error) { return nil, errors.New("after the effect") },
		func() (receiver.Result, error) { panic("after the effect") },
		func() (receiver.Result, error) { return receiver.RetryAfter{}, nil },
		func() (receiver.Result, error) { return receiver.Accepted{Status: 201}, nil },
	}
	g := newRig(t, func(o *receiver.Options) { o.Store, o.Transactional = store, true })
	g.handle = func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
		if _, err := sqlitestore.Tx(ctx).ExecContext(ctx, `INSERT INTO effects VALUES (1)`); err != nil {
			return nil, err
		}
		if d.Key == id("refused") {
			return receiver.Reject{Status: 422}, nil
		}
		return results[g.calls.Load()-1]()
	}
	for i, status := range []int{500, 500, 503, 201, 201} {
		g.want(g.do(g.eds(event{id: id("x")})), status)
		if n := effects(); n != min(1, i/3) {
			t.Errorf("after request %d: %d effects", i, n)
		}
	}
	g.wantCalls(4)
	g.want(g.do(g.eds(event{id: id("refused")})), 422)
	g.want(g.do(g.eds(event{id: id("refused")})), 422)
	g.wantCalls(5)
	if n := effects(); n != 1 {
		t.Errorf("a refusal left %d effects", n)
	}
}

// stuckRollback is an inbox whose connections break while they roll back.
type stuckRollback struct{ *sqlitestore.Store }

func (s stuckRollback) BeginJob(ctx context.Context, j receiver.ClaimedJob) (receiver.JobTx, error) {
	tx, err := s.Store.BeginJob(ctx, j)
	return brokenTx{tx}, err
}

type brokenTx struct{ receiver.JobTx }

func (t brokenTx) Rollback(ctx context.Context) error {
	return errors.Join(t.JobTx.Rollback(ctx), errors.New("connection is gone"))
}

// flaky is an inbox whose transactions begin, and end, only at the second try.
type flaky struct {
	*sqlitestore.Store
	begun, settled *int
}

func (s flaky) BeginJob(ctx context.Context, j receiver.ClaimedJob) (receiver.JobTx, error) {
	if *s.begun++; *s.begun == 1 {
		return nil, errors.New("no connection")
	}
	tx, err := s.Store.BeginJob(ctx, j)
	return flakyTx{tx, s.settled}, err
}

type flakyTx struct {
	receiver.JobTx
	settled *int
}

func (t flakyTx) Settle(ctx context.Context, s receiver.Settlement) (bool, error) {
	if *t.settled++; *t.settled == 1 {
		return false, errors.New("connection is gone")
	}
	return t.JobTx.Settle(ctx, s)
}

// TestTransactionFails: the job is tried again soon, and not when its lease ends.
func TestTransactionFails(t *testing.T) {
	f := newOffice(t, func(o *receiver.WorkerOptions) {
		o.Inbox, o.Transactional = flaky{o.Inbox.(*sqlitestore.Store), new(int), new(int)}, true
	})
	f.want(f.send("x"), 200)
	for i, want := range []struct {
		state, reason string
		attempt       int
	}{{"waiting", "could not begin", 0}, {"waiting", "could not commit", 1}, {"done", "", 2}} {
		if _, err := f.worker.Drain(t.Context()); (err == nil) != (want.state == "done") {
			t.Errorf("turn %d: %v", i, err)
		}
		if state, reason, attempt := f.state("x"); state != want.state || reason != want.reason || attempt != want.attempt {
			t.Errorf("turn %d: %s, %s, %d attempts", i, state, reason, attempt)
		}
		f.clock.Advance(time.Second)
	}
}

// TestRollbackFails: what was written is gone with the connection, and the job is put off as it should be.
func TestRollbackFails(t *testing.T) {
	f := newOffice(t, func(o *receiver.WorkerOptions) {
		o.Inbox, o.Transactional = stuckRollback{o.Inbox.(*sqlitestore.Store)}, true
	})
	f.work = func(context.Context, *receiver.Delivery) (receiver.Result, error) { return nil, errors.New("not yet") }
	f.want(f.send("x"), 200)
	f.drain(1)
	if state, reason, _ := f.state("x"); state != "waiting" || reason != "failed" {
		t.Errorf("%s: %s", state, reason)
	}
}

// TestStuckHandler: one that does not return, although its time is over, does not keep others from the database.
func TestStuckHandler(t *testing.T) {
	store, end := openSQLite(t), make(chan struct{})
	g := newRig(t, func(o *receiver.Options) {
		o.Store, o.Transactional, o.Timeout, o.StoreTimeout = store, true, 50*time.Millisecond, 200*time.Millisecond
	})
	defer close(end)
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		if d.Key == id("stuck") {
			<-end
		}
		return nil, nil
	}
	g.want(g.do(g.eds(event{id: id("stuck")})), 503)
	status := 0
	for tries := 0; status != 204 && tries < 50; tries++ { // each waits for the database as long as it may
		status = g.do(g.eds(event{id: id("other")})).Status
	}
	if status != 204 {
		t.Errorf("another delivery is answered %d", status)
	}
}

// slowTx is a store whose transactions end too late: somebody else has the key by then.
type slowTx struct{ receiver.Transactor }

func (s slowTx) Begin(ctx context.Context, h receiver.Hold) (receiver.Tx, error) {
	return nil, fmt.Errorf("begin: %w", receiver.ErrLeaseLost)
}

func TestLeaseIsLost(t *testing.T) {
	g := newRig(t, func(o *receiver.Options) { o.Store, o.Transactional = slowTx{openSQLite(t)}, true })
	a := g.want(g.do(g.eds(event{id: id("x")})), 503)
	if a.Header.Get("Retry-After") == "" || !strings.Contains(g.log.String(), "lease was lost") {
		t.Errorf("%v, %s", a.Header, g.log)
	}
	g.wantCalls(0)
}

// TestAnswerIsFlushed: an acknowledgement is on the wire before the worker is woken.
func TestAnswerIsFlushed(t *testing.T) {
	woken := make(chan struct{})
	release := make(chan struct{})
	g := newRig(t, func(o *receiver.Options) {
		o.Handler, o.Inbox = nil, waker{queue(func(receiver.Job) error { return nil }), func() { close(woken); <-release }}
	})
	conn, err := tls.Dial("tcp", g.server.Listener.Addr().String(), g.as(nil).Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := g.eds(event{id: id("x")}).Write(conn); err != nil {
		t.Fatal(err)
	}
	<-woken
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil) // although the handler has not returned
	if err != nil || resp.StatusCode != 204 {
		t.Errorf("%v, %v", resp, err)
	}
	close(release)
}

type waker struct {
	queue
	wake func()
}

func (w waker) Wake() { w.wake() }
