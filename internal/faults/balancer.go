//go:build unix

package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A Balancer gives each request to a node that was ready at the last look. If that node dies with a request, the balancer gives the request to
// another node, but only if no node has seen it or it carries an Idempotency-Key.
type Balancer struct {
	*httptest.Server
	nodes     []*Node
	transport *http.Transport

	mu      sync.Mutex
	changed *sync.Cond
	ready   map[*Node]bool
	under   map[*Node]int // requests under way
	repeats int           // requests given to a second node
}

// lookEvery is how often the balancer asks a node whether it is ready. lookTimeout is how long it waits for the answer: a machine that is busy for a second
// must not make all nodes look dead.
const lookEvery, lookTimeout = 100 * time.Millisecond, 3 * time.Second

// StartBalancer starts a balancer and returns when it has asked all nodes. It ends with the test.
func StartBalancer(t testing.TB, nodes []*Node) *Balancer {
	t.Helper()
	b := &Balancer{nodes: nodes, transport: &http.Transport{MaxIdleConnsPerHost: 32}, ready: map[*Node]bool{}, under: map[*Node]int{}}
	b.changed = sync.NewCond(&b.mu)
	for _, n := range nodes {
		b.look(n)
	}
	stop := make(chan struct{})
	var looking sync.WaitGroup
	for _, n := range nodes {
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(lookEvery):
					b.look(n)
				}
			}
		})
	}
	b.Server = httptest.NewServer(b)
	t.Cleanup(func() {
		b.Close()
		b.transport.CloseIdleConnections()
		close(stop)
		looking.Wait()
	})
	return b
}

// Repeats counts the requests that were given to a second node.
func (b *Balancer) Repeats() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.repeats
}

// look asks a node whether it is ready.
func (b *Balancer) look(n *Node) {
	is := n.readyWithin(lookTimeout)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[n] = is
	b.changed.Broadcast()
}

// Avoids returns when the balancer has no request at the node and gives it no more.
func (b *Balancer) Avoids(n *Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.ready[n] || b.under[n] > 0 {
		b.changed.Wait()
	}
}

// choose takes a ready node, or any node if none is: it has reasons that the client should see. The node counts the request until end is called.
func (b *Balancer) choose(except *Node) (n *Node, ready bool, end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	best := -1
	for _, i := range rand.Perm(len(b.nodes)) {
		rank := 0
		if b.nodes[i] != except {
			rank = 1
			if b.ready[b.nodes[i]] {
				rank = 2
			}
		}
		if rank > best {
			n, best = b.nodes[i], rank
		}
	}
	b.under[n]++
	return n, best == 2, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.under[n]--
		b.changed.Broadcast()
	}
}

// ServeHTTP tries at most two nodes.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	n, ready, end := b.choose(nil)
	answer, err := b.forward(n, r, body)
	end()
	if err != nil && (unsent(err) || r.Header.Get("Idempotency-Key") != "") {
		b.mu.Lock()
		b.repeats++
		b.mu.Unlock()
		var end func()
		var other *Node
		other, ready, end = b.choose(n)
		answer, err = b.forward(other, r, body)
		end()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	if !ready {
		w.Header().Set(noneReady, "true")
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body)
}

// noneReady is the header field of answers that a node gave though it was not ready, because no node was.
const noneReady = "Balancer-None-Ready"

type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward gives a request to a node and reads the whole answer. The transport repeats no request by itself, since it cannot read the body twice.
func (b *Balancer) forward(n *Node, r *http.Request, body []byte) (*answer, error) {
	target, err := url.Parse(n.URL + r.URL.RequestURI())
	if err != nil {
		return nil, err
	}
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL, out.Host, out.RequestURI = target, "", ""
	if out.Body, out.ContentLength = http.NoBody, int64(len(body)); len(body) > 0 {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		out.Header.Del(name)
	}
	resp, err := b.transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header.Clone()}
	a.header.Del("Connection")
	a.body, err = io.ReadAll(resp.Body)
	return a, err
}

// unsent reports whether the node was not reached at all.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
