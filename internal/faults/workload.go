//go:build unix

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Workload uses a cluster until it is stopped: producers, operators who change endpoints, and clients who submit commands.
type Workload struct {
	t         testing.TB
	h         *History
	cluster   *Cluster
	receivers *Receivers
	client    *http.Client
	balancer  *Node                          // stands for the balancer
	balanced  bool                           // all requests go through it
	about     struct{ Tenant, Actor string } // of the API key

	running sync.WaitGroup
	stopped chan struct{}

	mu   sync.Mutex
	acks int
	next int // number of the next key, command and endpoint
}

// pace is the pause of a client between two requests. It keeps the load far below what the machine carries, so that backlogs of faults
// are worked off.
const pace = 40 * time.Millisecond

// StartWorkload creates the lasting endpoints, and starts all clients.
func StartWorkload(t testing.TB, h *History, c *Cluster, receivers *Receivers, o Options) *Workload {
	t.Helper()
	w := &Workload{t: t, h: h, cluster: c, receivers: receivers, balanced: o.Balanced, stopped: make(chan struct{})}
	w.balancer = &Node{Name: balancer, URL: c.Balancer.URL}
	seed := o.Seed
	w.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	t.Cleanup(w.client.CloseIdleConnections)
	var registry struct {
		Caller struct {
			Tenant string `json:"tenant_id"`
			Actor  string `json:"actor_id"`
		} `json:"caller"`
	}
	if status := w.call(c.Nodes[0], http.MethodGet, "/ids/v1/registry", "", nil, &registry); status != http.StatusOK {
		t.Fatalf("ask for the caller: status %d", status)
	}
	w.about.Tenant, w.about.Actor = registry.Caller.Tenant, registry.Caller.Actor
	r := rand.New(rand.NewPCG(seed, seed))
	for i := range lasting {
		w.newEndpoint(r, Rule{Endpoint: fmt.Sprintf("lasting-%d", i), Types: "faults."}, nil)
	}
	w.newEndpoint(r, Rule{Endpoint: "rated", Types: "faults.rated", Count: 10, Per: time.Second}, map[string]any{"per_second": 10})
	w.newEndpoint(r, Rule{Endpoint: hanging, Types: "faults.", Impatient: true}, map[string]any{"timeout_seconds": 1})
	for i := range producers {
		w.start(seed+uint64(i), func(r *rand.Rand) { w.produce(r, i) })
	}
	w.start(seed+100, w.churn)
	w.start(seed+101, w.churn)
	w.start(seed+102, w.command)
	w.start(seed+103, w.command)
	return w
}

const (
	lasting   = 6
	producers = 4
	hanging   = "hanging"
)

// start repeats an action, with a pause between, until the workload is stopped.
func (w *Workload) start(seed uint64, act func(r *rand.Rand)) {
	w.running.Go(func() {
		r := rand.New(rand.NewPCG(seed, seed))
		for {
			select {
			case <-w.stopped:
				return
			case <-time.After(pace/2 + rand.N(pace)):
			}
			act(r)
		}
	})
}

// Stop ends the clients; each ends what it has begun, so that the nodes must be able to answer.
func (w *Workload) Stop() {
	close(w.stopped)
	w.running.Wait()
}

// Await returns when so many more events are acknowledged.
func (w *Workload) Await(n int) {
	w.t.Helper()
	goal := w.acknowledged() + n
	await(w.t, fmt.Sprintf("%d events to be acknowledged", n), func() bool { return w.acknowledged() >= goal })
}

// AwaitNodes returns when each node has accepted a post since now. That a node is ready is not enough: the answer may be from a second ago, before it met the
// fault.
func (w *Workload) AwaitNodes() {
	w.t.Helper()
	for _, n := range w.cluster.Nodes {
		key := fmt.Sprintf("recovery-of-a-node-%08d", w.number())
		await(w.t, "node "+n.Name+" to accept a post", func() bool {
			status, detail := w.request(n, http.MethodPost, "/v1/events?type=recovery", key, map[string]any{"key": key}, nil)
			if status >= 400 && status < 500 && status != busy {
				w.t.Fatalf("post to node %s: status %d: %s", n.Name, status, detail)
			}
			return status == accepted
		})
	}
}

func (w *Workload) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acks
}

func (w *Workload) number() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return w.next
}

// node chooses a node for a request.
func (w *Workload) node(r *rand.Rand) *Node {
	if w.balanced {
		return w.balancer
	}
	return w.cluster.Nodes[r.IntN(len(w.cluster.Nodes))]
}

// produce posts an event, to any node or through the balancer, again and again until it is acknowledged. One event in ten meets a conflicting one, and one
// in five is posted twice at once.
func (w *Workload) produce(r *rand.Rand, producer int) {
	p := Post{Key: fmt.Sprintf("producer-%d-event-%08d", producer, w.number()), Type: "faults.plain"}
	if r.IntN(8) == 0 { // fewer than the limited endpoint may get, or its backlog would grow as long as the run lasts
		p.Type = "faults.rated"
	}
	node := func() *Node {
		if producer%2 == 1 {
			return w.balancer
		}
		return w.node(r)
	}
	var both sync.WaitGroup
	if r.IntN(5) == 0 {
		twin, other := p, node()
		both.Go(func() { w.post(twin, other) })
	}
	for w.post(p, node()) != accepted {
		select {
		case <-time.After(pace):
		case <-w.stopped: // without an acknowledgement it is no loss
			both.Wait()
			return
		}
	}
	both.Wait()
	w.mu.Lock()
	w.acks++
	w.mu.Unlock()
	if r.IntN(10) == 0 {
		p.Variant = 1
		w.post(p, node())
	}
}

// post posts once.
func (w *Workload) post(p Post, n *Node) (status int) {
	var answer struct {
		ID string `json:"id"`
	}
	p.Node, p.From = n.Name, w.h.Now()
	p.Status = w.call(n, http.MethodPost, "/v1/events?type="+p.Type, p.Key, map[string]any{"key": p.Key, "variant": p.Variant}, &answer)
	p.To, p.Event = w.h.Now(), answer.ID
	add(w.h, &w.h.Posts, p)
	return p.Status
}

// newEndpoint creates an endpoint whose path is its name in the history, and returns its id.
func (w *Workload) newEndpoint(r *rand.Rand, rule Rule, policy map[string]any) (id string) {
	full := map[string]any{"base_seconds": 0.05, "cap_seconds": 1, "max_retries": 200, "circuit_after": 0, "disable_after": 0, "timeout_seconds": 60}
	for k, v := range policy {
		full[k] = v
	}
	patterns := []string{rule.Types + "*"}
	if rule.Types == "faults.rated" {
		patterns = []string{rule.Types}
	}
	w.change(r, rule.Endpoint, Create, http.MethodPost, "/v1/endpoints",
		map[string]any{"url": w.receivers.URL + "/" + rule.Endpoint, "patterns": patterns, "policy": full}, &id)
	if id != "" {
		add(w.h, &w.h.Rules, rule)
	}
	return id
}

// change carries a change out, at any node, again and again until it is done.
func (w *Workload) change(r *rand.Rand, endpoint, kind, method, path string, body any, id *string) {
	c := Change{Endpoint: endpoint, Kind: kind, Span: Span{From: w.h.Now()}}
	key := ""
	if kind == Create { // the others may be done twice
		key = "create-endpoint-" + endpoint
	}
	for try := 0; ; try++ {
		var answer struct {
			ID string `json:"id"`
		}
		status := w.call(w.node(r), method, path, key, body, &answer)
		if status >= 200 && status < 300 || kind == Delete && try > 0 && status == http.StatusNotFound {
			if id != nil {
				*id = answer.ID
			}
			break
		}
		if status >= 400 && status < 500 && status != http.StatusConflict && status != http.StatusTooManyRequests {
			w.t.Errorf("%s endpoint %s: status %d", kind, endpoint, status)
			return
		}
		select {
		case <-w.stopped:
			if kind == Create { // a dead node may have its key for a minute
				c.To = endless
				add(w.h, &w.h.Changes, c)
				return
			}
		default:
		}
		time.Sleep(pace)
	}
	c.To = w.h.Now()
	add(w.h, &w.h.Changes, c)
}

// churn creates an endpoint, changes it some times and deletes it, or leaves it running.
func (w *Workload) churn(r *rand.Rand) {
	name := fmt.Sprintf("passing-%d", w.number())
	id := w.newEndpoint(r, Rule{Endpoint: name, Types: "faults."}, nil)
	if id == "" {
		return
	}
	path := "/v1/endpoints/" + id
	rest := func() bool {
		select {
		case <-w.stopped:
			return false
		case <-time.After(time.Duration(r.IntN(1000)) * time.Millisecond):
			return true
		}
	}
	for range 1 + r.IntN(3) {
		if !rest() {
			break
		}
		if r.IntN(2) == 0 {
			w.change(r, name, Pause, http.MethodPost, path+"/pause", nil, nil)
			rest()
			w.change(r, name, Resume, http.MethodPost, path+"/resume", nil, nil)
		} else {
			w.change(r, name, Refuse, http.MethodPatch, path, map[string]any{"patterns": []string{"other.*"}}, nil)
			rest()
			w.change(r, name, Want, http.MethodPatch, path, map[string]any{"patterns": []string{"faults.*"}}, nil)
		}
	}
	rest()
	w.change(r, name, Refuse, http.MethodPatch, path, map[string]any{"patterns": []string{"other.*"}}, nil)
	if r.IntN(2) == 0 {
		w.change(r, name, Delete, http.MethodDelete, path, nil, nil)
	}
}

// command submits a command to two nodes at once, and then until it has seen its result.
func (w *Workload) command(r *rand.Rand) {
	n := w.number()
	var twin sync.WaitGroup
	node := w.node(r)
	twin.Go(func() { w.submit(n, node) })
	for w.submit(n, w.node(r)) != http.StatusOK {
		select {
		case <-time.After(pace):
		case <-w.stopped:
			twin.Wait()
			return
		}
	}
	twin.Wait()
	w.submit(n, w.node(r))
}

func (w *Workload) submit(n int, node *Node) (status int) {
	var answer struct {
		Outcome struct {
			Result json.RawMessage `json:"result"`
		} `json:"outcome"`
	}
	c := Command{N: n, Span: Span{From: w.h.Now()}}
	c.Status = w.call(node, http.MethodPost, "/ids/v1/commands", "", map[string]any{
		"command_id": godwit.NewCommandID(time.Now()).String(), "tenant_id": w.about.Tenant, "actor_id": w.about.Actor,
		"intent": map[string]string{"entity": "probe", "action": "touch"}, "args": map[string]any{"n": n, "run": "faults"},
		"issued_at": time.Now().UTC().Format(time.RFC3339Nano), "message_id": fmt.Sprint(rand.Int()),
	}, &answer)
	c.To, c.Result = w.h.Now(), string(answer.Outcome.Result)
	add(w.h, &w.h.Commands, c)
	return c.Status
}

// call makes one request. It returns unknown when there was no complete answer. Failures of the balancer go into the history.
func (w *Workload) call(n *Node, method, path, key string, body, into any) (status int) {
	s := Span{From: w.h.Now()}
	status, detail := w.request(n, method, path, key, body, into)
	if s.To = w.h.Now(); n == w.balancer && (status == unknown || status >= 500) {
		add(w.h, &w.h.Failures, Failure{s, fmt.Sprintf("%s %s", method, path), status, detail})
	}
	return status
}

// request returns the status of the answer and, if it is no success, the start of it or the reason for which there is none.
func (w *Workload) request(n *Node, method, path, key string, body, into any) (status int, detail string) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			panic(err) // of ours
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), method, n.URL+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.cluster.Key)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return unknown, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return unknown, err.Error()
	}
	if resp.StatusCode >= 300 {
		detail = string(answer[:min(len(answer), detailLength)])
		if resp.Header.Get(noneReady) != "" {
			detail += " (no node was ready)"
		}
		return resp.StatusCode, detail
	}
	if len(answer) > 0 && into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			return unknown, err.Error()
		}
	}
	return resp.StatusCode, ""
}

// detailLength is how much of an answer a failure keeps.
const detailLength = 300
