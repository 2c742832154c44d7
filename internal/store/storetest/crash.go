package storetest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/store"
)

// A Crash says how a process that will be killed opens a backend.
type Crash struct {
	// Location creates a place for an empty store that outlives the process, such as a directory or a database URL.
	Location func(t testing.TB) string
	// Open opens the store at a location, in the test's own process or in the child.
	Open func(ctx context.Context, location string) (store.Store, error)
}

// crashVariable passes the location of the store to a child.
const crashVariable = "GODWIT_STORETEST_CRASH"

const (
	crashRounds = 6
	crashOwner  = "crash"
)

// RunCrash repeatedly kills a committing process with SIGKILL. Each time it checks that everything acknowledged is stored and
// nothing is stored in part. The calling test function must be top-level and do nothing else, because the child runs the same
// test in a new process.
func RunCrash(t *testing.T, c Crash) {
	if location := os.Getenv(crashVariable); location != "" {
		err := crashChild(c, location)
		fmt.Println("failed:", err) // the child goes on until it is killed
		t.Fatal(err)
	}
	slowtest.Needs(t, "processes that are killed")
	location := c.Location(t)
	prepareCrash(t, c, location)
	var acked acknowledged
	for round := range crashRounds {
		acked.merge(runUntilKilled(t, location, 20+rand.IntN(200)))
		verifyCrash(t, c, location, &acked)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	if len(acked.batches) == 0 || len(acked.results) == 0 {
		t.Fatalf("%d batches and %d results were acknowledged: the test shows nothing", len(acked.batches), len(acked.results))
	}
}

// The store of a crash test has one tenant and one endpoint, with fixed ids.
var (
	crashTenant   = godwit.TenantID{15: 1}
	crashEndpoint = godwit.EndpointID{15: 2}
)

func prepareCrash(t *testing.T, c Crash, location string) {
	s := got(c.Open(t.Context(), location))(t)
	f := &fixture{t: t, ctx: t.Context(), s: s, now: base, tenant: crashTenant}
	f.must(s.CreateTenant(f.ctx, &godwit.Tenant{ID: crashTenant, Name: "crash", CreatedAt: base}))
	e := f.makeEndpoint()
	e.ID = crashEndpoint
	f.must(s.CreateEndpoint(f.ctx, e, nil))
	f.must(s.Close())
}

// acknowledged lists the writes that children reported as durable.
type acknowledged struct {
	batches []string // keys
	results []string // "delivery n"
}

func (a *acknowledged) merge(b acknowledged) {
	a.batches = append(a.batches, b.batches...)
	a.results = append(a.results, b.results...)
}

// runUntilKilled starts a child and kills it after some acknowledgements.
func runUntilKilled(t *testing.T, location string, acks int) acknowledged {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashVariable+"="+location)
	cmd.Stderr = os.Stderr
	out := got(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var a acknowledged
	lines := bufio.NewScanner(out)
	for lines.Scan() { // to the end: everything printed before the kill was acknowledged
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "batch":
			a.batches = append(a.batches, rest)
		case "result":
			a.results = append(a.results, rest)
		case "failed:":
			t.Errorf("child: %s", rest)
		}
		if acks--; acks == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	return a
}

const crashWriters = 4

// crashChild commits until it is killed. Each batch has some events under one key, which encodes their number, and a result
// for each delivery of the previous batch. The attempt of a result names the key of its batch.
func crashChild(c Crash, location string) error {
	ctx := context.Background()
	s, err := c.Open(ctx, location)
	if err != nil {
		return err
	}
	leases, err := TakeAll(ctx, s, crashOwner)
	if err != nil {
		return err
	}
	w := &crashWriter{s: s, f: fixture{ctx: ctx, s: s, now: base, tenant: crashTenant, epochs: map[int]int64{}}}
	for _, l := range leases {
		w.f.epochs[l.Shard] = l.Epoch
	}
	failures := make(chan error, crashWriters)
	for range crashWriters {
		go func() { failures <- w.run() }()
	}
	return <-failures
}

type crashWriter struct {
	s  store.Store
	f  fixture
	mu sync.Mutex // keeps lines whole
}

func (w *crashWriter) run() error {
	var held []godwit.Work
	for {
		n := 1 + rand.IntN(20)
		key := fmt.Sprintf("%x/%d/%d", mint[godwit.EventID](w.f.now), n, len(held))
		b := &store.Batch{Now: w.f.now}
		var results []string
		for _, h := range held {
			r := w.f.attempted(h, godwit.DeliveryAccepted)
			r.Attempt.URL = key
			b.Results = append(b.Results, r)
			results = append(results, fmt.Sprintf("%v %d", r.Delivery.ID, r.Attempt.N))
		}
		held = nil
		for i := range n {
			e := w.f.makeEvent()
			e.Key = key
			ne := w.f.fanOut(e, crashEndpoint)
			if i%2 == 0 {
				d := &ne.Deliveries[0]
				d.ClaimEpoch = w.f.epoch(crashEndpoint)
				held = append(held, godwit.Work{Event: e, Delivery: godwit.Delivery{
					ID: d.ID, TenantID: crashTenant, EventID: e.ID, EndpointID: crashEndpoint, Status: godwit.DeliveryPending,
					DueAt: e.CreatedAt, CreatedAt: e.CreatedAt, UpdatedAt: e.CreatedAt, Run: godwit.Run{Trigger: godwit.TriggerAccept},
				}})
			}
			b.Accepts = append(b.Accepts, store.Accept{Events: []store.NewEvent{ne}})
		}
		c, err := w.s.Commit(w.f.ctx, b)
		if err != nil {
			return err
		}
		if len(c.Fenced) != 0 {
			return fmt.Errorf("%d results were fenced", len(c.Fenced))
		}
		w.mu.Lock()
		fmt.Println("batch", key)
		for _, r := range results {
			fmt.Println("result", r)
		}
		w.mu.Unlock()
	}
}

// verifyCrash reopens the store and compares it with the acknowledged writes.
func verifyCrash(t *testing.T, c Crash, location string, acked *acknowledged) {
	t.Helper()
	s := got(c.Open(t.Context(), location))(t)
	f := &fixture{t: t, ctx: t.Context(), s: s, now: base, tenant: crashTenant, endpoint: crashEndpoint, epochs: map[int]int64{}}
	defer func() { f.must(s.Close()) }()

	events := map[string]int{}
	for p := (store.Page{Limit: 500}); ; {
		page := got(s.ListEvents(f.ctx, store.EventFilter{TenantID: crashTenant}, p))(t)
		for _, e := range page {
			events[e.Key]++
			p.After = e.ID
		}
		if len(page) < p.Limit {
			break
		}
	}
	recorded, attempts := crashAttempts(f)
	for key, n := range events {
		var id string
		var wantEvents, wantResults int
		if _, err := fmt.Sscanf(strings.ReplaceAll(key, "/", " "), "%s %d %d", &id, &wantEvents, &wantResults); err != nil {
			t.Fatal(err)
		}
		if n != wantEvents || attempts[key] != wantResults {
			t.Errorf("batch %s is there by half: %d of %d events, %d of %d results", id, n, wantEvents, attempts[key], wantResults)
		}
	}
	for key := range attempts {
		if events[key] == 0 {
			t.Errorf("batch %s has results without its events", key)
		}
	}
	for _, key := range acked.batches {
		if events[key] == 0 {
			t.Errorf("batch %s was acknowledged and is lost", key)
		}
	}
	for _, r := range acked.results {
		if !recorded[r] {
			t.Errorf("result %s was acknowledged and is lost", r)
		}
	}
	releaseCrashed(f)
}

// crashAttempts reads every attempt, by delivery and number, and counts them by batch.
func crashAttempts(f *fixture) (recorded map[string]bool, perBatch map[string]int) {
	f.t.Helper()
	recorded, perBatch = map[string]bool{}, map[string]int{}
	for p := (store.Page{Limit: 500}); ; {
		page := got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: crashTenant}, p))(f.t)
		for _, d := range page {
			p.After = d.ID
			if d.Attempts == 0 {
				continue
			}
			as := got(f.s.Attempts(f.ctx, crashTenant, d.ID))(f.t)
			if len(as) != d.Attempts || d.Status != godwit.DeliveryAccepted {
				f.t.Errorf("%v is %s with %d attempts, %d are recorded", d.ID, d.Status, d.Attempts, len(as))
			}
			for _, a := range as {
				recorded[fmt.Sprintf("%v %d", d.ID, a.N)] = true
				perBatch[a.URL]++
			}
		}
		if len(page) < p.Limit {
			return recorded, perBatch
		}
	}
}

// releaseCrashed takes over the shards under the killed process's name, so that all pending deliveries can be claimed.
func releaseCrashed(f *fixture) {
	f.t.Helper()
	pending := got(f.s.CountPending(f.ctx, f.endpoint))(f.t)
	f.now = f.tick(time.Second)
	f.acquire(crashOwner)
	var claimed int64
	for {
		c := f.claim(f.endpoint, 500)
		claimed += int64(len(c.Work))
		if len(c.Work) == 0 {
			break
		}
	}
	if claimed != pending {
		f.t.Errorf("%d deliveries are pending, %d could be claimed by the next owner", pending, claimed)
	}
}
