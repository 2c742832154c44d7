package powercut

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/store/sqlite/faultdisk"
)

const (
	cutsVariable = "GODWIT_POWERCUT_CUTS" // how many cuts; scripts/powercut sets it
	seedVariable = "GODWIT_POWERCUT_SEED" // of one series

	cutsInTest = 40
	cutsEach   = 10 // lives of a series
)

// The power is cut at random moments, at starts and stops too. Nothing that was acknowledged is lost, the file is never damaged,
// and what was pending is delivered in the end.
func TestPowerCuts(t *testing.T) {
	cutAgain(t, cutsInTest, 0)
}

// One sync in some fails, and the system takes what it should have written for written: later syncs succeed without it. Then the
// power is cut. Nothing that was acknowledged is lost even so.
func TestFailedSyncsThenPowerCuts(t *testing.T) {
	cutAgain(t, cutsInTest/2, 12)
}

// cutAgain runs series of lives. failSyncs is as in plan.
func cutAgain(t *testing.T, cuts, failSyncs int) {
	slowtest.Needs(t, "processes that end with a power cut")
	if text := os.Getenv(cutsVariable); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil || cuts < 1 {
			t.Fatalf("%s=%s: must be a number, 1 or more", cutsVariable, text)
		}
	}
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		run(t, seed, cutsEach, failSyncs)
		return
	}
	begun := time.Now()
	var sum totals
	done := 0
	for ; (done < cuts || !sum.whole() && done < mostSeries*cuts) && !t.Failed(); done += cutsEach {
		sum.add(run(t, rand.Uint64(), cutsEach, failSyncs))
		if os.Getenv(cutsVariable) != "" {
			fmt.Printf("%d cuts in %s: %s\n", done+cutsEach, time.Since(begun).Round(time.Second), &sum)
		}
	}
	t.Logf("%d cuts: %s", done, &sum)
	if !t.Failed() && !sum.whole() {
		t.Error("not everything happened at least once: the test shows too little")
	}
}

// mostSeries bounds how many times the planned cuts are made. On a busy machine a life ends early, and perhaps no cut of the plan meets a WAL that had begun
// anew; the test goes on until one does.
const mostSeries = 10

type totals struct{ events, endpoints, keys, commands, accepted, restarts int }

// whole reports whether everything happened at least once.
func (a *totals) whole() bool {
	return a.events > 0 && a.commands > 0 && a.accepted > 0 && a.restarts > 0
}

func (a *totals) add(b totals) {
	a.events += b.events
	a.endpoints += b.endpoints
	a.keys += b.keys
	a.commands += b.commands
	a.accepted += b.accepted
	a.restarts += b.restarts
}

func (a *totals) String() string {
	return fmt.Sprintf("%d events, %d endpoints, %d keys, %d commands, %d results acknowledged; the WAL had begun anew at %d cuts",
		a.events, a.endpoints, a.keys, a.commands, a.accepted, a.restarts)
}

// A series is a sequence of lives on the same data.
type series struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	root     string
	ring     string
	promise  *acknowledged
	receiver *receiver
	lies     bool
	failSync int // plan.FailSyncs of each life
	restarts int // cuts at which the WAL had been copied and begun anew
}

// run lets the server live and lose power several times, then lets it finish its work.
func run(t *testing.T, seed uint64, cuts, failSyncs int) totals {
	t.Helper()
	s := newSeries(t, seed)
	s.failSync = failSyncs
	data := s.directory("life-0")
	for n := 1; n <= cuts && !t.Failed(); n++ {
		next := s.directory(fmt.Sprintf("life-%d", n))
		p := s.plan(data, next)
		s.live(p)
		s.verify(p, n)
		data = next
	}
	if !t.Failed() {
		s.finish(data)
	}
	if t.Failed() {
		t.Logf("seed %d; repeat with %s=%d; what survived each cut is in %s", seed, seedVariable, seed, s.root)
	}
	a := s.promise
	return totals{len(a.events), len(a.endpoints) + len(a.others), len(a.keys), len(a.commands), len(a.accepted), s.restarts}
}

func newSeries(t *testing.T, seed uint64) *series {
	t.Helper()
	root, err := os.MkdirTemp("", "godwit-powercut-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			os.RemoveAll(root)
		}
	})
	return &series{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 3)), root: root, ring: app.GenerateRing(), promise: newAcknowledged(), receiver: newReceiver(t),
	}
}

func (s *series) directory(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.root, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// plan chooses the moment of the cut: evenly over orders of magnitude, from the first operation of the start to some
// thousands under load. Some lives end after a stop, or during one.
func (s *series) plan(data, survivors string) *plan {
	p := &plan{
		Data: data, Survivors: survivors, Ring: s.ring, Seed: s.random.Uint64(), Lie: s.lies, FailSyncs: s.failSync,
		CutAt:    int64(math.Exp(s.random.Float64() * math.Log(6000))),
		Survival: faultdisk.Survivals[s.random.IntN(len(faultdisk.Survivals))],
		WALPages: 50 + s.random.Int64N(1000),
	}
	if s.random.IntN(10) == 0 {
		p.CutAt = 0
	}
	return p
}

// live runs one life under load until the cut.
func (s *series) live(p *plan) {
	s.t.Helper()
	l := begin(s.t, p)
	if l.ready {
		transport := &http.Transport{MaxIdleConnsPerHost: 16}
		defer transport.CloseIdleConnections()
		c := &client{t: s.t, life: l, http: &http.Client{Transport: transport}, promise: s.promise}
		s.promise.note(func() { s.promise.tenant, s.promise.keys[l.Key] = l.Tenant, false })
		c.subscribe(s.receiver.URL)
		if p.CutAt == 0 || s.random.IntN(4) == 0 {
			go s.stopAfter(l, 20+s.random.IntN(200))
		}
		c.load()
	}
	l.end(s.t)
}

// stopAfter stops the server after so many acknowledgements.
func (s *series) stopAfter(l *life, more int) {
	gone := make(chan struct{})
	go func() {
		<-l.ended
		close(gone)
		s.promise.changed.Broadcast()
	}()
	s.promise.mu.Lock()
	defer s.promise.mu.Unlock()
	for more += s.promise.count; s.promise.count < more; {
		select {
		case <-gone:
			return
		default:
			s.promise.changed.Wait()
		}
	}
	l.stop()
}

func (s *series) verify(p *plan, n int) {
	s.t.Helper()
	copied := s.directory("check")
	faults := s.promise.check(p.Survivors, copied)
	if len(faults) > 0 {
		shown := faults[:min(len(faults), 5)]
		s.t.Errorf("seed %d, life %d, cut at operation %d, survives: %s: %d faults: %v", s.seed, n, p.CutAt, p.Survival, len(faults), errors.Join(shown...))
		return
	}
	if wal, err := os.ReadFile(filepath.Join(p.Survivors, "godwit.db-wal")); err == nil && len(wal) >= 16 && binary.BigEndian.Uint32(wal[12:]) > 0 {
		s.restarts++ // the header counts them
	}
	if err := errors.Join(os.RemoveAll(copied), os.RemoveAll(p.Data)); err != nil {
		s.t.Fatal(err)
	}
}

// finish starts the server once more and waits until nothing is pending: a delivery that was claimed by a server that is gone
// would stay. Then every acknowledged event must have arrived at both endpoints.
func (s *series) finish(data string) {
	s.t.Helper()
	last := s.directory("last")
	l := begin(s.t, &plan{Data: data, Survivors: last, Ring: s.ring, Survival: faultdisk.Nothing, WALPages: 1000})
	if !l.ready {
		s.t.Fatalf("the last server did not start:\n%s", l.stderr)
	}
	c := &client{t: s.t, life: l, http: http.DefaultClient, promise: s.promise}
	for pause := time.NewTicker(10 * time.Millisecond); ; <-pause.C {
		var page made
		if status := c.call("GET", "/v1/deliveries?status=pending&limit=1", nil, nil, &page); status != http.StatusOK {
			s.t.Fatalf("list pending deliveries: %d\n%s", status, l.stderr)
		}
		if len(page.Items) == 0 {
			pause.Stop()
			break
		}
	}
	l.stop()
	l.end(s.t)
	for id := range s.promise.events {
		for n := range s.promise.endpoints {
			if !s.receiver.has(n, id) {
				s.t.Errorf("seed %d: event %s was acknowledged and never arrived at endpoint %d", s.seed, id, n)
			}
		}
	}
	for _, f := range s.promise.check(last, s.directory("check-last")) {
		s.t.Errorf("seed %d, after the last stop: %v", s.seed, f)
	}
}

// A receiver remembers which events came to which path.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{seen: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if rand.IntN(20) == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen[req.URL.Path+" "+req.Header.Get("Godwit-Event-Id")] = true
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) has(endpoint int, event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[fmt.Sprintf("/%d %s", endpoint, event)]
}

// With a disk that lies about syncs the same lives lose what was acknowledged, and the checks find it: they can fail.
func TestChecksFindLosses(t *testing.T) {
	slowtest.Needs(t, "processes that end with a power cut")
	for range 20 {
		s := newSeries(t, rand.Uint64())
		s.lies = true
		p := s.plan(s.directory("life-0"), s.directory("life-1"))
		p.CutAt, p.Survival = 1500, faultdisk.Nothing
		s.live(p)
		if s.promise.count == 0 {
			continue
		}
		if faults := s.promise.check(p.Survivors, s.directory("check")); len(faults) > 0 {
			t.Logf("%d faults, such as: %v", len(faults), faults[0])
			return
		}
	}
	t.Error("the checks found nothing wrong with a disk that loses everything")
}
