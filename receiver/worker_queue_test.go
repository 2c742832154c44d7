package receiver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/sqlitestore"
)

// TestRunPurges: without a call of Purge.
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
	store, stuck, end := openSQLite(t), make(chan struct{}, 1), make(chan struct{})
	g := newRig(t, func(o *receiver.Options) {
		o.Store, o.Transactional, o.Timeout, o.StoreTimeout = store, true, 50*time.Millisecond, 500*time.Millisecond
	})
	defer close(end)
	g.handle = func(_ context.Context, d *receiver.Delivery) (receiver.Result, error) {
		if d.Key == id("stuck") {
			stuck <- struct{}{}
			<-end
		}
		return nil, nil
	}
	for len(stuck) == 0 { // on a slow machine the store may be late for a first request
		g.want(g.do(g.eds(event{id: id("stuck")})), 503)
	}
	for limit := time.Now().Add(5 * time.Minute); ; { // each try waits for the database as long as it may
		status := g.do(g.eds(event{id: id("other")})).Status
		if status == 204 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("another delivery is answered %d", status)
		}
	}
}

// slowTx is a store whose transactions end too late: another caller has the key by then.
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
