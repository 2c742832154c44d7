package powercut

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// acknowledged is everything that the servers of a series have promised.
type acknowledged struct {
	mu        sync.Mutex
	count     int
	changed   *sync.Cond
	tenant    string
	endpoints []string          // those that get all events
	events    map[string]string // id → body
	others    []string          // further endpoints
	keys      map[string]bool   // token → revoked
	commands  map[string]string // id → id of the event that it published
	accepted  map[string]bool   // deliveries that were read as accepted
}

func newAcknowledged() *acknowledged {
	a := &acknowledged{events: map[string]string{}, keys: map[string]bool{}, commands: map[string]string{}, accepted: map[string]bool{}}
	a.changed = sync.NewCond(&a.mu)
	return a
}

func (a *acknowledged) note(note func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	note()
	a.count++
	a.changed.Broadcast()
}

// A client uses one life of the server.
type client struct {
	t       *testing.T
	life    *life
	http    *http.Client
	actor   string
	promise *acknowledged
}

// call sends a request. It returns 0 if there was no complete answer: the power was cut.
func (c *client) call(method, path string, header map[string]string, body any, into any) int {
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			c.t.Error(err)
			return 0
		}
	}
	req, err := http.NewRequest(method, c.life.URL+path, bytes.NewReader(text))
	if err != nil {
		c.t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+c.life.Key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	switch {
	case resp.StatusCode == http.StatusServiceUnavailable:
		if resp.Header.Get("Retry-After") == "" {
			c.t.Errorf("%s %s: 503 without Retry-After: %s", method, path, answer)
		}
	case resp.StatusCode >= 300 && !c.t.Failed(): // one is enough
		c.t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	case into != nil:
		if err := json.Unmarshal(answer, into); err != nil {
			c.t.Errorf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return resp.StatusCode
}

// each repeats a request until the server is gone.
func (c *client) each(request func(n int) int) {
	for n := 0; ; n++ {
		if request(n) == 0 {
			select {
			case <-c.life.ended:
				return
			default: // a stopping server refuses connections before it ends
			}
		}
	}
}

type made struct {
	ID    string `json:"id"`
	Token string `json:"token"`
	Items []made `json:"items"`
}

// subscribe creates the endpoints that get all events, unless earlier lives did.
func (c *client) subscribe(receiver string) {
	for n := len(c.promise.endpoints); n < 2; {
		var e made
		status := c.call("POST", "/v1/endpoints", nil, map[string]any{
			"url": fmt.Sprintf("%s/%d", receiver, n), "patterns": []string{"cut.*"},
			"policy": map[string]any{"base_seconds": 0.05, "cap_seconds": 0.2, "circuit_after": 0},
		}, &e)
		switch status {
		case http.StatusCreated:
			c.promise.note(func() { c.promise.endpoints = append(c.promise.endpoints, e.ID) })
			n++
		case http.StatusServiceUnavailable: // a fault that passes
		default:
			return
		}
	}
	var about struct {
		Caller struct {
			Actor string `json:"actor_id"`
		} `json:"caller"`
	}
	c.call("GET", "/ids/v1/registry", nil, nil, &about)
	c.actor = about.Caller.Actor
}

// load uses the server from all sides until it is gone.
func (c *client) load() {
	if len(c.promise.endpoints) < 2 || c.actor == "" {
		<-c.life.ended
		return
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { c.each(c.post) })
	}
	for _, request := range []func(int) int{c.batch, c.manage, c.submit, c.look} {
		all.Go(func() { c.each(request) })
	}
	all.Wait()
}

func newKey() map[string]string {
	return map[string]string{"Idempotency-Key": fmt.Sprintf(`"cut-%016x%016x"`, rand.Uint64(), rand.Uint64())}
}

func (c *client) post(int) int {
	size := 10
	if rand.IntN(10) == 0 {
		size = rand.IntN(20_000)
	}
	body := fmt.Sprintf(`{"n":%d,"filler":"%s"}`, rand.Uint64(), strings.Repeat("x", size))
	var e made
	status := c.call("POST", "/v1/events?type=cut.posted", newKey(), body, &e)
	if status == http.StatusAccepted {
		c.promise.note(func() { c.promise.events[e.ID] = body })
	}
	return status
}

func (c *client) batch(int) int {
	n := rand.Uint64()
	var b strings.Builder
	b.WriteString(`{"events":[`)
	var bodies []string
	for i := range 8 {
		if i > 0 {
			b.WriteByte(',')
		}
		bodies = append(bodies, fmt.Sprintf(`{"n":%d,"i":%d}`, n, i))
		fmt.Fprintf(&b, `{"type":"cut.batch","data":%s}`, bodies[i])
	}
	b.WriteString(`]}`)
	var answer made
	status := c.call("POST", "/v1/events/batch", newKey(), b.String(), &answer)
	if status == http.StatusAccepted {
		c.promise.note(func() {
			for i, e := range answer.Items {
				c.promise.events[e.ID] = bodies[i]
			}
		})
	}
	return status
}

// manage makes endpoints and keys, and revokes every other key.
func (c *client) manage(n int) int {
	var m made
	if n%2 == 0 {
		status := c.call("POST", "/v1/endpoints", nil, map[string]any{"url": "http://127.0.0.1:9/", "patterns": []string{"never.this"}}, &m)
		if status == http.StatusCreated {
			c.promise.note(func() { c.promise.others = append(c.promise.others, m.ID) })
		}
		return status
	}
	status := c.call("POST", "/v1/keys", nil, map[string]any{"name": "cut", "scopes": []string{"read"}}, &m)
	if status != http.StatusCreated {
		return status
	}
	c.promise.note(func() { c.promise.keys[m.Token] = false })
	if n%4 == 1 {
		return status
	}
	if status = c.call("DELETE", "/v1/keys/"+m.ID, nil, nil, nil); status == http.StatusOK || status == http.StatusNoContent {
		c.promise.note(func() { c.promise.keys[m.Token] = true })
	}
	return status
}

// submit executes commands that publish an event each.
func (c *client) submit(int) int {
	body := fmt.Sprintf(`{"command":"%d"}`, rand.Uint64())
	id := godwit.NewCommandID(time.Now()).String()
	var answer struct {
		Outcome struct {
			Result struct {
				Event string `json:"event_id"`
			} `json:"result"`
		} `json:"outcome"`
	}
	status := c.call("POST", "/ids/v1/commands", nil, map[string]any{
		"command_id": id, "tenant_id": c.life.Tenant, "actor_id": c.actor, "intent": map[string]string{"entity": "event", "action": "publish"},
		"args":      map[string]any{"type": "cut.commanded", "data": json.RawMessage(body)},
		"issued_at": time.Now().UTC().Format(time.RFC3339Nano), "message_id": id,
	}, &answer)
	if status == http.StatusOK && answer.Outcome.Result.Event != "" {
		c.promise.note(func() {
			c.promise.commands[id] = answer.Outcome.Result.Event
			c.promise.events[answer.Outcome.Result.Event] = body
		})
	}
	return status
}

// look remembers deliveries that the server shows as accepted: a result that was read once must stay.
func (c *client) look(int) int {
	var page made
	status := c.call("GET", "/v1/deliveries?status=accepted&limit=100", nil, nil, &page)
	c.promise.note(func() {
		for _, d := range page.Items {
			c.promise.accepted[d.ID] = true
		}
	})
	return status
}
