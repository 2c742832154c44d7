package ids

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/command"
)

// provider is an external system behind its own socket: it charges as often as it is asked. It reports its charges by
// reference, unless it is silent, and can refund a charge. Only "/keyed" treats a known key as the same charge.
type provider struct {
	*httptest.Server

	mu      sync.Mutex
	charges map[string][]string // ids by reference
	keys    map[string][]string // that it was given, by reference
	known   map[string]string   // charges by key
	refunds map[string]int      // by charge
	asked   map[string]int      // for charges, by reference
	silent  bool                // it cannot report its charges
	double  bool                // it does everything twice
	n       int
}

func newProvider(t testing.TB) *provider {
	p := &provider{charges: map[string][]string{}, keys: map[string][]string{}, known: map[string]string{}, refunds: map[string]int{}, asked: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges/{reference}", p.charge)
	mux.HandleFunc("POST /keyed/{reference}", p.charge)
	mux.HandleFunc("GET /charges/{reference}", p.list)
	mux.HandleFunc("DELETE /charges/{reference}/{id}", p.refund)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) charge(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref, key := r.PathValue("reference"), r.Header.Get("Idempotency-Key")
	p.asked[ref]++
	p.keys[ref] = append(p.keys[ref], key)
	keyed := r.URL.Path == "/keyed/"+ref
	id, again := p.known[key]
	if !keyed || !again {
		times := 1
		if p.double {
			times = 2
		}
		for range times {
			p.n++
			id = fmt.Sprintf("ch_%d", p.n)
			p.charges[ref] = append(p.charges[ref], id)
		}
		id = p.charges[ref][0]
		p.known[key] = id
	}
	json.NewEncoder(w).Encode(map[string]string{"charge": id})
}

func (p *provider) list(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		http.Error(w, "come back later", http.StatusServiceUnavailable)
		return
	}
	json.NewEncoder(w).Encode(append([]string{}, p.charges[r.PathValue("reference")]...))
}

func (p *provider) refund(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref, id := r.PathValue("reference"), r.PathValue("id")
	for i, have := range p.charges[ref] {
		if have == id {
			p.charges[ref] = append(p.charges[ref][:i:i], p.charges[ref][i+1:]...)
			p.refunds[id]++
			return
		}
	}
	http.NotFound(w, r)
}

// has returns the charges that were not refunded.
func (p *provider) has(ref string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.charges[ref]...)
}

// calls returns how often the provider was asked to charge, and with which keys.
func (p *provider) calls(ref string) (int, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[ref], append([]string{}, p.keys[ref]...)
}

// refunded counts the refunds.
func (p *provider) refunded() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, times := range p.refunds {
		n += times
	}
	return n
}

func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// charging is a handler that calls the provider.
type charging struct{ *provider }

var _ command.Compensator = charging{}

// reference is the provider's name of a command; no later command knows this id.
func reference(c *command.Call) string { return c.CommandID }

func (c charging) Execute(ctx context.Context, call *command.Call) (*command.Outcome, error) {
	path := "/charges/"
	if call.Intent.Action == "keyed" {
		path = "/keyed/"
	}
	result, err := call.Do(ctx, "charge", func(ctx context.Context, key string) (any, error) {
		return c.ask(ctx, "POST", path+reference(call), key)
	})
	if err != nil {
		return nil, err
	}
	return &command.Outcome{Summary: "Charged.", Result: result}, nil
}

func (c charging) Reconcile(ctx context.Context, call *command.Call) (command.Found, error) {
	text, err := c.ask(ctx, "GET", "/charges/"+reference(call), "")
	if err != nil {
		return command.Found{}, err
	}
	var ids []string
	if err := json.Unmarshal(text, &ids); err != nil {
		return command.Found{}, err
	}
	var found command.Found
	for _, id := range ids {
		found.Effects = append(found.Effects, command.ProviderEffect{ID: id, Result: json.RawMessage(`{"charge":"` + id + `"}`)})
	}
	return found, nil
}

func (c charging) Compensate(ctx context.Context, call *command.Call, e command.ProviderEffect) error {
	_, err := c.ask(ctx, "DELETE", "/charges/"+reference(call)+"/"+e.ID, "")
	return err
}

func (c charging) ask(ctx context.Context, method, path, key string) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, nil)
	if err != nil {
		return nil, command.NoEffect(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the provider answered %d", resp.StatusCode)
	}
	return body.Bytes(), nil
}
