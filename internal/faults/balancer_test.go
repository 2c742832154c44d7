//go:build unix

package faults

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A fakeNode is a server that is ready and takes requests unless told otherwise. It breaks the connection of a request that it dies with.
type fakeNode struct {
	*Node
	taken, dies, unready atomic.Int64
}

func newFakeNode(t *testing.T) *fakeNode {
	f := &fakeNode{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz" && f.unready.Load() > 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/readyz":
		case f.dies.Load() > 0:
			panic(http.ErrAbortHandler)
		default:
			body, _ := io.ReadAll(r.Body)
			f.taken.Add(1)
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(s.Close)
	f.Node = &Node{URL: s.URL}
	return f
}

// postThrough posts to the balancer and returns status and body.
func postThrough(t *testing.T, b *Balancer, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+"/v1/events?type=x", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := b.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The balancer gives a node that is not ready nothing.
func TestBalancerHeedsReadiness(t *testing.T) {
	a, b := newFakeNode(t), newFakeNode(t)
	x := StartBalancer(t, []*Node{a.Node, b.Node})
	a.unready.Store(1)
	x.Avoids(a.Node)
	for range 20 {
		if status, body := postThrough(t, x, ""); status != http.StatusAccepted || body != "body" {
			t.Fatalf("%d %q", status, body)
		}
	}
	if a.taken.Load() != 0 || b.taken.Load() != 20 {
		t.Errorf("%d and %d requests", a.taken.Load(), b.taken.Load())
	}
}

// A request with which a node died goes to another node if it has a key. Without a key it may have had its effect, and fails.
func TestBalancerRepeatsWithKeysOnly(t *testing.T) {
	a, b := newFakeNode(t), newFakeNode(t)
	x := StartBalancer(t, []*Node{a.Node, b.Node})
	a.dies.Store(1)
	for status := 0; status != http.StatusBadGateway; {
		status, _ = postThrough(t, x, "")
	}
	if x.Repeats() != 0 {
		t.Error("a request without a key was repeated")
	}
	for x.Repeats() == 0 {
		if status, body := postThrough(t, x, "k"); status != http.StatusAccepted || body != "body" {
			t.Fatalf("%d %q", status, body)
		}
	}
}

// A node that cannot be reached has seen nothing, so that any request may go to another one.
func TestBalancerRepeatsWhatNoNodeSaw(t *testing.T) {
	gone, b := &Node{URL: "http://" + freeAddress()}, newFakeNode(t)
	b.unready.Store(1) // so that the balancer may choose either
	x := StartBalancer(t, []*Node{gone, b.Node})
	for x.Repeats() == 0 {
		if status, _ := postThrough(t, x, ""); status != http.StatusAccepted {
			t.Fatal(status)
		}
	}
}
