package storetest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/receiver"
)

func job(id string, receivedAt time.Time) receiver.Job {
	return receiver.Job{
		ID: ScopeOf(id).String(),
		Delivery: &receiver.Delivery{
			Scheme: "ojs", Principal: "jobs", Identity: receiver.Identity{Key: id, EventID: "evt_" + id, EventType: "job.completed", Attempt: 2},
			Method: "POST", URL: "https://hooks.example.com/in?x=1", ContentType: "application/json",
			Header: http.Header{"Content-Type": {"application/json"}, "X-Ojs-Signature": {"sha256=secret"}, "X-Many": {"a", "b"}},
			Body:   []byte(`{"id":"evt_` + id + `", "n": 1.50}`), SignedAt: receivedAt.Add(-time.Second), ReceivedAt: receivedAt,
		},
		Replaces: receivedAt.Add(-window),
	}
}

// RunInbox tests an inbox.
func RunInbox(t *testing.T, open func(t *testing.T) receiver.Inbox) {
	for _, c := range []struct {
		name string
		test func(*testing.T, receiver.Inbox)
	}{
		{"a job comes out as it went in", testJobRoundTrip},
		{"bodies that are no UTF-8", testJobBytes},
		{"enqueueing twice makes one job", testJobOnce},
		{"oldest first, and only what is due", testJobOrder},
		{"a job is claimed by one of fifty", testJobClaims},
		{"a dead worker's job comes back", testJobLease},
		{"an interruption costs no attempt", testJobInterrupted},
		{"done jobs are purged in steps, dead ones stay", testJobPurge},
		{"a job of an earlier window is replaced", testJobReplaced},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func enqueue(t *testing.T, in receiver.Inbox, jobs ...receiver.Job) {
	t.Helper()
	for _, j := range jobs {
		must(t, in.Enqueue(t.Context(), j))
	}
}

func claim(t *testing.T, in receiver.Inbox, limit int, now time.Time, want int) []receiver.ClaimedJob {
	t.Helper()
	jobs, err := in.Claim(t.Context(), limit, now, now.Add(lease))
	must(t, err)
	if len(jobs) != want {
		t.Fatalf("claimed %d jobs, want %d", len(jobs), want)
	}
	return jobs
}

func settle(t *testing.T, in receiver.Inbox, j receiver.ClaimedJob, s receiver.Settlement, want bool) {
	t.Helper()
	ok, err := in.Settle(t.Context(), j, s)
	must(t, err)
	if ok != want {
		t.Fatalf("settled: %t, want %t", ok, want)
	}
}

func testJobRoundTrip(t *testing.T, in receiver.Inbox) {
	want := job("a", Start)
	enqueue(t, in, want)
	got := claim(t, in, 1, Start, 1)[0]
	d, w := got.Delivery, want.Delivery
	if got.ID != want.ID || got.Attempt != 1 || got.Token == "" {
		t.Errorf("job %+v", got)
	}
	if d.Scheme != w.Scheme || d.Principal != w.Principal || d.Identity != w.Identity || d.URL != w.URL || d.Method != w.Method ||
		d.ContentType != w.ContentType || string(d.Body) != string(w.Body) || !d.ReceivedAt.Equal(w.ReceivedAt) || !d.SignedAt.Equal(w.SignedAt) {
		t.Errorf("delivery %+v, want %+v", d, w)
	}
	if many := d.Header.Values("X-Many"); len(many) != 2 {
		t.Errorf("lines of a field: %q", many)
	}
	if d.Header.Get("X-Ojs-Signature") != "" {
		t.Error("a signature was kept")
	}
	settle(t, in, got, receiver.Settlement{State: receiver.JobDone, At: Start}, true)
	settle(t, in, got, receiver.Settlement{State: receiver.JobDone, At: Start}, false)
	claim(t, in, 1, Start.Add(lease), 0)
}

func testJobBytes(t *testing.T, in receiver.Inbox) {
	for i, body := range []string{"{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "\x00\xff", ""} {
		j := job(fmt.Sprint(i), Start)
		j.Delivery.Body = []byte(body)
		j.Delivery.EventID, j.Delivery.EventType = "\x00\xff", "\xff"
		j.Delivery.Header.Set("X-Latin", "caf\xe9")
		enqueue(t, in, j)
		if got := claim(t, in, 1, Start, 1)[0]; string(got.Delivery.Body) != body {
			t.Errorf("body %q, want %q", got.Delivery.Body, body)
		}
	}
}

func testJobOnce(t *testing.T, in receiver.Inbox) {
	enqueue(t, in, job("a", Start), job("a", Start))
	first := claim(t, in, 9, Start, 1)[0]
	enqueue(t, in, job("a", Start)) // while it is claimed
	claim(t, in, 9, Start, 0)
	settle(t, in, first, receiver.Settlement{State: receiver.JobDone, At: Start}, true)
	enqueue(t, in, job("a", Start.Add(time.Hour))) // after it is done
	claim(t, in, 9, Start.Add(time.Hour), 0)
}

func testJobOrder(t *testing.T, in receiver.Inbox) {
	for i := 4; i >= 0; i-- {
		enqueue(t, in, job(fmt.Sprint(i), Start.Add(time.Duration(i)*time.Second)))
	}
	now := Start.Add(time.Minute)
	jobs := claim(t, in, 3, now, 3)
	for i, j := range jobs {
		if j.Delivery.Key != fmt.Sprint(i) {
			t.Errorf("job %d is %s", i, j.Delivery.Key)
		}
	}
	settle(t, in, jobs[0], receiver.Settlement{State: receiver.JobWaiting, At: now.Add(time.Second), Reason: "failed \x00\xff"}, true)
	rest := claim(t, in, 9, now, 2)
	if rest[0].Delivery.Key != "3" || rest[1].Delivery.Key != "4" {
		t.Errorf("then %s and %s", rest[0].Delivery.Key, rest[1].Delivery.Key)
	}
	if again := claim(t, in, 9, now.Add(time.Second), 1)[0]; again.Delivery.Key != "0" || again.Attempt != 2 {
		t.Errorf("then %s, attempt %d", again.Delivery.Key, again.Attempt)
	}
}

func testJobClaims(t *testing.T, in receiver.Inbox) {
	const jobs = 40
	for i := range jobs {
		enqueue(t, in, job(fmt.Sprint(i), Start))
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	atOnce(func(int) {
		for {
			got, err := in.Claim(t.Context(), 1, Start, Start.Add(lease))
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			mu.Lock()
			for _, j := range got {
				claimed[j.ID]++
			}
			finished := len(claimed) == jobs || t.Failed()
			mu.Unlock()
			if len(got) == 0 && finished {
				return
			}
		}
	})
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("job %s was claimed %d times", id, n)
		}
	}
}

func testJobLease(t *testing.T, in receiver.Inbox) {
	enqueue(t, in, job("a", Start))
	dead := claim(t, in, 1, Start, 1)[0]
	claim(t, in, 1, Start.Add(lease-time.Millisecond), 0)
	next := claim(t, in, 1, Start.Add(lease), 1)[0]
	if next.Attempt != 2 {
		t.Errorf("attempt %d", next.Attempt)
	}
	settle(t, in, dead, receiver.Settlement{State: receiver.JobDone, At: Start}, false)
	settle(t, in, next, receiver.Settlement{State: receiver.JobDone, At: Start}, true)
}

func testJobInterrupted(t *testing.T, in receiver.Inbox) {
	enqueue(t, in, job("a", Start))
	first := claim(t, in, 1, Start, 1)[0]
	settle(t, in, first, receiver.Settlement{State: receiver.JobWaiting, At: Start, Interrupted: true}, true)
	if again := claim(t, in, 1, Start, 1)[0]; again.Attempt != 1 {
		t.Errorf("attempt %d", again.Attempt)
	}
}

func testJobPurge(t *testing.T, in receiver.Inbox) {
	for i := range 6 {
		enqueue(t, in, job(fmt.Sprint(i), Start))
	}
	for i, j := range claim(t, in, 6, Start, 6) {
		state := receiver.JobDone
		if i == 0 {
			state = receiver.JobDead
		}
		settle(t, in, j, receiver.Settlement{State: state, At: Start}, true)
	}
	for _, want := range []int{2, 2, 1, 0} {
		n, err := in.PurgeJobs(t.Context(), Start.Add(time.Second), 2)
		if err != nil || n != want {
			t.Fatalf("dropped %d, %v; want %d", n, err, want)
		}
	}
}

// testJobReplaced: after the window a key is new, and so is its job, even if the old one was not purged yet.
func testJobReplaced(t *testing.T, in receiver.Inbox) {
	enqueue(t, in, job("a", Start))
	first := claim(t, in, 1, Start, 1)[0]
	settle(t, in, first, receiver.Settlement{State: receiver.JobDone, At: Start}, true)
	later := Start.Add(window + time.Second)
	enqueue(t, in, job("a", later))
	if again := claim(t, in, 1, later, 1)[0]; again.Attempt != 1 || !again.Delivery.ReceivedAt.Equal(later) {
		t.Errorf("job %+v", again)
	}
}
