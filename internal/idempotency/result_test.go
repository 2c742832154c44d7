package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/store"
)

// TestPassingFailuresFreeTheKey: a response that may differ next time is not the request's result (EDS T-3).
func TestPassingFailuresFreeTheKey(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504, 429, 409, 400, 401, 403, 413, 415, 425, 408} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			f := newFixture(t, nil)
			good := f.handler
			f.handler = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
			if r := f.post(`{}`, "Idempotency-Key", key1); r.status != status {
				t.Errorf("first: %+v", r)
			}
			f.handler = good
			if r := f.post(`{}`, "Idempotency-Key", key1); r.status != 201 || r.replayed() {
				t.Errorf("second: %+v", r)
			}
			f.wantCalls(2)
		})
	}
}

func TestPanicFreesTheKey(t *testing.T) {
	f := newFixture(t, nil)
	good := f.handler
	f.handler = func(http.ResponseWriter, *http.Request) { panic("password is hunter2") }
	r := f.post(`{}`, "Idempotency-Key", key1)
	if p := r.problem(t); r.status != 500 || p.Code != "internal" || strings.Contains(r.body, "hunter2") {
		t.Errorf("answer to a panic: %+v", r)
	}
	f.handler = good
	if r := f.post(`{}`, "Idempotency-Key", key1); r.status != 201 {
		t.Errorf("afterwards: %+v", r)
	}
}

// TestClientThatGoesAway: the handler finishes and its result is stored although the client disconnected (K-10).
func TestClientThatGoesAway(t *testing.T) {
	f := newFixture(t, nil)
	running, gone, finished := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.handler = func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-gone
		finished <- r.Context().Err()
		io.WriteString(w, "done")
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", f.server.URL+"/things", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Test-Principal", "alice")
	req.Header.Set("Idempotency-Key", key1)
	req.Header.Set("Content-Type", "application/json")
	lost := make(chan error, 1)
	go func() { _, err := f.server.Client().Do(req); lost <- err }()
	<-running
	cancel()
	if err := <-lost; err == nil {
		t.Fatal("the client got an answer")
	}
	close(gone)
	if err := <-finished; err != nil {
		t.Errorf("the handler was cancelled with its client: %v", err)
	}
	f.server.Close() // waits for the request to end
	rec, err := f.recorded("alice", "POST /things", key1)
	if err != nil || rec.InProgress() || rec.Response.Status != 200 {
		t.Errorf("result was not kept: %+v, %v", rec, err)
	}
}

func TestStoreDownFailsClosed(t *testing.T) {
	f := newFixture(t, nil)
	f.spy.Idempotency = down{}
	r := f.post(`{}`, "Idempotency-Key", key1)
	if p := r.problem(t); r.status != 503 || p.Code != "unavailable" || r.header.Get("Retry-After") == "" {
		t.Errorf("answer without a store: %+v", r)
	}
	f.wantCalls(0)
}

type down struct{ store.Idempotency }

func (down) Reserve(context.Context, *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error) {
	return nil, fmt.Errorf("reserve: %w", store.ErrUnavailable)
}

func TestStoredAnswersAreSealed(t *testing.T) {
	f := newFixture(t, nil)
	f.handler = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"secret":"open-sesame"}`) }
	f.post(`{}`, "Idempotency-Key", key1)
	rec, err := f.recorded("alice", "POST /things", key1)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(rec.Response.Body), "sesame") {
		t.Error("a secret lies readable in the store")
	}
	if r := f.post(`{}`, "Idempotency-Key", key1); r.body != `{"secret":"open-sesame"}` {
		t.Errorf("repeat: %+v", r)
	}
	// A stored body that is moved to another record cannot be decrypted.
	f.post(`{}`, "Idempotency-Key", key2)
	other, err := f.recorded("alice", "POST /things", key2)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Complete(context.Background(), other, rec.Response, f.clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r := f.post(`{}`, "Idempotency-Key", key2); r.status != 500 || strings.Contains(r.body, "sesame") {
		t.Errorf("moved answer: %+v", r)
	}
}

func TestLongAnswersKeepTheirStatus(t *testing.T) {
	f := newFixture(t, func(c *idempotency.Config) { c.MaxStoredBody = 100 })
	f.handler = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, strings.Repeat("x", 101))
	}
	if r := f.post(`{}`, "Idempotency-Key", key1); len(r.body) != 101 {
		t.Errorf("first: %+v", r)
	}
	if r := f.post(`{}`, "Idempotency-Key", key1); r.status != 201 || r.body != "" || !r.replayed() {
		t.Errorf("repeat: %+v", r)
	}
	f.wantCalls(1)
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := idempotency.New(idempotency.Config{}); err == nil {
		t.Error("an empty config was accepted")
	}
	f := newFixture(t, nil)
	bad := f.guard.Policy()
	bad.Lease = bad.Timeout
	if _, err := idempotency.New(bad); err == nil {
		t.Error("a lease not longer than the timeout was accepted")
	}
}
