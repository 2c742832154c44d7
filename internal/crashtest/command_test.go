package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// provider is a tenant's own service. It recognises repeats by their key, as S1 asks, and its ledger is its own.
type provider struct {
	*httptest.Server
	calls atomic.Int64

	mu   sync.Mutex
	done map[string]string // key → args of what was done under it
}

func newProvider(t *testing.T) *provider {
	p := &provider{done: map[string]string{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var order struct {
			Args json.RawMessage `json:"args"`
		}
		if json.Unmarshal(body, &order) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.calls.Add(1)
		if rand.IntN(10) == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		key := r.Header.Get("Idempotency-Key")
		p.mu.Lock()
		if _, again := p.done[key]; !again {
			p.done[key] = string(order.Args)
		}
		n := len(p.done)
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"receipt":%d}`, n)
	}))
	t.Cleanup(p.Close)
	return p
}

// effects counts what was done for each args, under whatever key.
func (p *provider) effects() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for _, args := range p.done {
		n[args]++
	}
	return n
}

// commander submits commands over and over, whatever becomes of the server.
type commander struct {
	t      *testing.T
	url    string // a restart comes back where it was
	client *http.Client
	tenant string
	actor  string

	mu       sync.Mutex
	outcomes map[string]string // command → its result
	sent     atomic.Int64
}

// kinds are the ways of a command: an effect in the store, one after a confirmation, one at a service.
var kinds = []command.Intent{{Entity: "probe", Action: "touch"}, {Entity: "probe", Action: "delete"}, {Entity: "order", Action: "place"}}

// pursue repeats a command until it has seen its outcome twice.
func (c *commander) pursue(n int) {
	intent := kinds[n%len(kinds)]
	args := fmt.Sprintf(`{"n":%d,"run":"torture"}`, n)
	for seen := 0; seen < 2 && !c.t.Failed(); {
		answer, status := c.post("/ids/v1/commands", map[string]any{
			"command_id": godwit.NewCommandID(time.Now()).String(), "tenant_id": c.tenant, "actor_id": c.actor, "intent": intent,
			"args": json.RawMessage(args), "issued_at": time.Now().UTC().Format(time.RFC3339Nano), "message_id": strconv.Itoa(rand.Int()),
		})
		if answer.Token != "" {
			answer, status = c.post("/ids/v1/commands/"+answer.CommandID+"/confirm", map[string]any{"confirmation_token": answer.Token})
		}
		if status != http.StatusOK {
			if status != 0 && status != http.StatusAccepted && status != http.StatusServiceUnavailable && status != http.StatusGone {
				c.t.Errorf("command %d: status %d, %+v", n, status, answer)
				return
			}
			backOff := time.NewTimer(time.Duration(10+rand.IntN(90)) * time.Millisecond)
			<-backOff.C
			continue
		}
		seen++
		result := string(answer.Outcome.Result)
		c.mu.Lock()
		name := fmt.Sprintf("%s.%s %s", intent.Entity, intent.Action, args)
		if known, ok := c.outcomes[name]; ok && known != result {
			c.t.Errorf("%s was answered with %s, then with %s", name, known, result)
		}
		c.outcomes[name] = result
		c.mu.Unlock()
	}
}

type commandAnswer struct {
	Status    string `json:"status"`
	Substatus string `json:"substatus"`
	CommandID string `json:"command_id"`
	Token     string `json:"confirmation_token"`
	Reason    string `json:"reason"`
	Outcome   struct {
		Result json.RawMessage `json:"result"`
	} `json:"outcome"`
}

// post returns 0 when there was no answer: the server is dead, or died meanwhile.
func (c *commander) post(path string, body any) (a commandAnswer, status int) {
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Error(err)
		return a, 0
	}
	c.sent.Add(1)
	resp, err := c.client.Post(c.url+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return a, 0
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&a) != nil {
		return a, 0
	}
	return a, resp.StatusCode
}

func (c *commander) get(path string, into any) {
	c.t.Helper()
	resp, err := c.client.Get(c.url + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("GET %s: %d %v", path, resp.StatusCode, err)
	}
}

// A hundred clients submit the same commands again and again, while the server is killed at every step of the execution in turn. What was
// done, by the ledgers of those it was done at, is each command once; all clients got one answer; the evidence says the same and holds.
func TestKillsAtEveryStepOfACommand(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		trace.Covers(t, "IDS-DLV-5", "IDS-STO-16", "IDS-STO-17", "IDS-RPL-10")
		service := newProvider(t)
		p := apptest.StartProcess(t, apptest.ProcessOptions{Store: store, Args: []string{"--time-scale", "40"}})
		c := &commander{t: t, url: p.URL, client: p.NewClient(), outcomes: map[string]string{}}
		var about struct {
			Caller struct {
				Tenant string `json:"tenant_id"`
				Actor  string `json:"actor_id"`
			} `json:"caller"`
		}
		c.get("/ids/v1/registry", &about)
		c.tenant, c.actor = about.Caller.Tenant, about.Caller.Actor
		declared := declareOrder(t, c, service.URL)
		p.Kill()
		p.RestartWith(func(o *apptest.ProcessOptions) {
			o.Args = append(o.Args, "--commands", declared)
			o.Env = []string{"GODWIT_DEV_FAULT=" + deaths()[0] + ":3"}
		})

		const clients, each = 100, 3
		total := clients * each / 2 // every command is pursued by two clients
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				for k := range each {
					c.pursue((i*each + k) % total)
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		hit := killAtEach(t, p, c, done)
		if len(hit) != len(command.FaultPoints) {
			t.Errorf("died at %v, not at all of %v", hit, command.FaultPoints)
		}
		<-done
		check(t, c, service, total)
		t.Logf("%d commands, %d submissions, killed at %v; the service was called %d times", total, c.sent.Load(), hit, service.calls.Load())
	})
}

// killAtEach restarts the server after each of its deaths, to die at the next step. Steps that no death was seen at fail the test.
func killAtEach(t *testing.T, p *apptest.Process, c *commander, done <-chan struct{}) (hit []string) {
	t.Helper()
	points := deaths()
	var more sync.WaitGroup
	defer more.Wait() // it ends what it has begun
	for i := range points {
		deadline := time.NewTimer(5 * time.Minute)
		exited := p.Exited()
		select {
		case <-exited:
			hit = append(hit, points[i])
		case <-done:
			// All commands have ended: more of them, until it dies here too.
			more.Go(func() {
				for n := 10_000 + i*1000; ; n++ {
					select {
					case <-exited:
						return
					default:
						c.pursue(n)
					}
				}
			})
			select {
			case <-exited:
				hit = append(hit, points[i])
			case <-deadline.C:
				p.Kill()
				t.Fatalf("the server was never at %q", points[i])
			}
		case <-deadline.C:
			p.Kill()
			t.Fatalf("the server was never at %q", points[i])
		}
		deadline.Stop()
		p.RestartWith(func(o *apptest.ProcessOptions) {
			o.Env = nil
			if i+1 < len(points) {
				n := 1
				if points[i+1] != "recovered" {
					n += rand.IntN(5)
				}
				o.Env = []string{"GODWIT_DEV_FAULT=" + points[i+1] + ":" + strconv.Itoa(n)}
			}
		})
	}
	return hit
}

// deaths are all fault points, in an order in which each is reached: there is something to recover right after a death that left a
// command half done, whatever else goes on.
func deaths() (points []string) {
	for _, p := range command.FaultPoints {
		switch p {
		case "recovered":
		case "handled":
			points = append(points, p, "recovered")
		default:
			points = append(points, p)
		}
	}
	return points
}

// declareOrder makes an endpoint for the service and a declaration of what it executes.
func declareOrder(t *testing.T, c *commander, url string) (file string) {
	t.Helper()
	resp, err := c.client.Post(c.url+"/v1/endpoints", "application/json", bytes.NewReader([]byte(`{"url":"`+url+`","patterns":["never.this"]}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct {
		Endpoint struct {
			ID string `json:"id"`
		} `json:"endpoint"`
		ID string `json:"id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("create endpoint: %d %v", resp.StatusCode, err)
	}
	id := made.ID
	if id == "" {
		id = made.Endpoint.ID
	}
	file = filepath.Join(t.TempDir(), "commands.json")
	text := `{"commands":[{"entity":"order","action":"place","description":"Places an order.","class":"I3","class_justification":"calls the shop",
		"shielding":["S1"],"scopes":["ingest"],"tenant":"` + c.tenant + `","remote":{"endpoint":"` + id + `","timeout":"60s"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// check compares the ledgers with what was commanded.
func check(t *testing.T, c *commander, service *provider, total int) {
	t.Helper()
	want := map[string]int{}
	inStore := 0
	for name := range c.outcomes {
		want[name]++
		var place string
		if _, err := fmt.Sscanf(name, "%s", &place); err == nil && place != "order.place" {
			inStore++
		}
	}
	if len(want) < total {
		t.Errorf("%d commands have an outcome, of at least %d", len(want), total)
	}
	for args, n := range service.effects() {
		if n != 1 {
			t.Errorf("the service did %s %d times", args, n)
		}
	}
	if n := len(service.effects()); n != len(want)-inStore {
		t.Errorf("the service did %d things, commanded were %d", n, len(want)-inStore)
	}
	if n := countProbes(t, c); n != inStore {
		t.Errorf("%d effects in the store, commanded were %d", n, inStore)
	}
	resp, err := c.client.Get(c.url + "/ids/v1/evidence/export")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var sum evidence.Summary
	report, err := evidence.Verify(resp.Body, evidence.Options{Item: func(_ int64, it *evidence.Item) error { sum.Add(it); return nil }})
	if err != nil {
		t.Fatalf("the evidence does not hold: %v", err)
	}
	if n := report.Totals.Executions; n != int64(len(want)) {
		t.Errorf("the evidence tells of %d executions, commanded were %d", n, len(want))
	}
}

// countProbes counts the events that probes left, by the events themselves.
func countProbes(t *testing.T, c *commander) int {
	t.Helper()
	n := 0
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
			Next string `json:"next_cursor"`
		}
		c.get("/v1/events?limit=100&type=ids.probe&cursor="+cursor, &page)
		n += len(page.Items)
		if cursor = page.Next; cursor == "" {
			return n
		}
	}
}
