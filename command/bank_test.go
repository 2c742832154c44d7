package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// A bank is an external system, behind HTTP. It makes a charge for every request.
type bank struct {
	*httptest.Server
	honoursKeys bool // it recognises a repeat by its Idempotency-Key
	twice       bool // a proxy sends every request two times

	mu      sync.Mutex
	asked   int
	charges []charge
	refunds int
}

type charge struct {
	ID        string `json:"id"`
	Reference string `json:"reference"` // the shop's name for the charge
	Amount    int    `json:"amount"`
	key       string
}

func openBank() *bank {
	b := &bank{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", b.charge)
	mux.HandleFunc("GET /charges", b.list)
	mux.HandleFunc("DELETE /charges/{id}", b.refund)
	b.Server = httptest.NewServer(mux)
	return b
}

func (b *bank) charge(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.key = r.Header.Get("Idempotency-Key")
	for _, known := range b.charges {
		if b.honoursKeys && known.key == c.key {
			answer(w, known)
			return
		}
	}
	c.ID = fmt.Sprintf("ch_%d", len(b.charges)+1)
	b.charges = append(b.charges, c)
	if b.twice {
		again := c
		again.ID = fmt.Sprintf("ch_%d", len(b.charges)+1)
		b.charges = append(b.charges, again)
	}
	answer(w, c)
}

func (b *bank) list(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := []charge{}
	for _, c := range b.charges {
		if c.Reference == r.URL.Query().Get("reference") {
			found = append(found, c)
		}
	}
	answer(w, found)
}

func (b *bank) refund(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range b.charges {
		if c.ID == r.PathValue("id") {
			b.charges = append(b.charges[:i:i], b.charges[i+1:]...)
			b.refunds++
			answer(w, c)
			return
		}
	}
	http.NotFound(w, r)
}

func answer(w http.ResponseWriter, v any) { json.NewEncoder(w).Encode(v) }

// books describes the bank's state.
func (b *bank) books() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("the bank was asked %d×, has %d charge(s), took back %d", b.asked, len(b.charges), b.refunds)
}

// post makes a charge, as a client of the bank does.
func (b *bank) post(ctx context.Context, key string, c charge) (charge, error) {
	var made charge
	body, err := json.Marshal(c)
	if err != nil {
		return made, command.NoEffect(err)
	}
	err = b.request(ctx, http.MethodPost, "/charges", key, body, &made)
	return made, err
}

// find lists the bank's charges under a reference.
func (b *bank) find(ctx context.Context, reference string) ([]charge, error) {
	var found []charge
	err := b.request(ctx, http.MethodGet, "/charges?reference="+reference, "", nil, &found)
	return found, err
}

func (b *bank) request(ctx context.Context, method, path, key string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, b.URL+path, bytes.NewReader(body))
	if err != nil {
		return command.NoEffect(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	resp, err := b.Client().Do(req)
	if err != nil {
		return err // the request may have arrived
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest:
		return command.NoEffect(errors.New(resp.Status)) // a refused request has no effect
	case resp.StatusCode != http.StatusOK:
		return errors.New(resp.Status)
	}
	return json.Unmarshal(text, into)
}

// A shop is an application that embeds an executor. Tests move its clock.
type shop struct {
	Store    command.Store
	Registry *command.Registry

	mu  sync.Mutex
	now time.Time
}

func newShop(s command.Store) *shop {
	return &shop{Store: s, Registry: command.NewRegistry(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (s *shop) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) Pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Start starts a process of the shop. If crashAt is set, the process stops at that point for good.
func (s *shop) Start(crashAt string) (x *command.Executor, crashed context.Context, stop func()) {
	crashed, crash := context.WithCancel(context.Background())
	running, end := context.WithCancel(context.Background())
	sealer, err := command.NewSealer(make([]byte, 32))
	check(err)
	x, err = command.New(command.Config{
		Store: s.Store, Registry: s.Registry, Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: s.Now,
		Fault: func(point string) {
			if point == crashAt {
				crash()
				end()
				runtime.Goexit()
			}
		},
	})
	check(err)
	ended := make(chan struct{})
	go func() { defer close(ended); x.Run(running) }()
	return x, crashed, func() { crash(); end(); <-ended }
}

// Submit submits a customer's command and waits as long as the process lives.
func (s *shop) Submit(ctx context.Context, x *command.Executor, entity, action, target, args string) *command.Answer {
	a, err := x.Submit(ctx, command.Caller{Tenant: "shop", Actor: "customer"}, &command.Envelope{
		CommandID: command.NewID(s.Now()), TenantID: "shop", ActorID: "customer", IssuedAt: s.Now(),
		Intent: command.Intent{Entity: entity, Action: action, Target: target}, Args: json.RawMessage(args),
	})
	check(err)
	return a
}

// Ended waits for the end of a command that another process continues.
func (s *shop) Ended(x *command.Executor, id string) *command.Answer {
	_, err := x.Recover(context.Background())
	check(err)
	for {
		a, err := x.Status(context.Background(), command.Caller{Tenant: "shop", Actor: "customer"}, id)
		check(err)
		if a.Status.Terminal() {
			return a
		}
		runtime.Gosched()
	}
}
