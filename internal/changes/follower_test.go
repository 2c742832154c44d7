package changes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steadyReal is real time, or that of a synctest bubble.
type steadyReal struct {
	clock.Real
	began time.Time
}

func (c steadyReal) Steady() time.Duration { return time.Since(c.began) }

// A history is a store whose every change raises the version by one.
type history struct {
	mu      sync.Mutex
	names   []string // the change of version i+1
	lost    bool     // the store does not know the versions of its callers
	err     error
	reads   int
	reading func() // called before each read
}

func (h *history) change(names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = append(h.names, names...)
}

func (h *history) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func (h *history) ConfigVersion(context.Context) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version(), h.err
}

func (h *history) version() int64 { return int64(len(h.names)+1) << 16 }

func (h *history) ConfigChanges(_ context.Context, since int64) (*store.ConfigChanges, error) {
	if h.reading != nil {
		h.reading()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	if h.err != nil {
		return nil, h.err
	}
	out := &store.ConfigChanges{Version: h.version(), Unknown: h.lost}
	if !h.lost {
		for _, name := range h.names[since>>16-1:] {
			out.List = append(out.List, store.ConfigChange{Kind: store.ConfigEventType, Name: name})
		}
	}
	return out, nil
}

// A memory is a subscriber that lists what it was told.
type memory struct {
	mu     sync.Mutex
	names  []string
	losses int
	err    error
}

func (m *memory) Changed(_ context.Context, list []store.ConfigChange) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for _, c := range list {
		m.names = append(m.names, c.Name)
	}
	return nil
}

func (m *memory) Lost(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.losses++
	return m.err
}

func (m *memory) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) has(t *testing.T, want ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.names, want) {
		t.Errorf("told of %q, want %q", m.names, want)
	}
}

func follow(t *testing.T, h *history, subscribers ...Subscriber) *Follower {
	t.Helper()
	f, err := Follow(t.Context(), Config{Store: h, Log: slog.New(slog.DiscardHandler), Clock: steadyReal{began: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subscribers {
		f.Subscribe(s)
	}
	t.Cleanup(f.Close)
	return f
}

func TestCatchUpTellsEveryChangeOnceAndInOrder(t *testing.T) {
	h, one, two := &history{}, &memory{}, &memory{}
	h.change("before the start")
	f := follow(t, h, one, two)
	for _, step := range [][]string{nil, {"a"}, {"b", "c"}, nil} {
		h.change(step...)
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.Version() != h.version() {
			t.Errorf("version %d, want %d", f.Version(), h.version())
		}
	}
	one.has(t, "a", "b", "c")
	two.has(t, "a", "b", "c")
}

// A subscriber that fails must be told again: until then the version is not applied.
func TestVersionIsAppliedWhenEverySubscriberHasIt(t *testing.T) {
	h, one, two := &history{}, &memory{}, &memory{}
	f := follow(t, h, one, two)
	before := f.Version()
	h.change("a")
	away := errors.New("away")
	two.set(away)
	if err := f.CatchUp(t.Context()); !errors.Is(err, away) {
		t.Fatalf("got %v", err)
	}
	if f.Version() != before || f.Staleness().Behind != 1 {
		t.Errorf("version %d after %d, %+v", f.Version(), before, f.Staleness())
	}
	two.set(nil)
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	two.has(t, "a")
	if f.Version() != h.version() || f.Staleness().Behind != 0 {
		t.Errorf("version %d, %+v", f.Version(), f.Staleness())
	}
}

// A caller that comes while the changes are being read must not get the result of that reading: its change may be missing.
func TestCatchUpReadsAfterTheCall(t *testing.T) {
	h, m := &history{}, &memory{}
	reading, goOn := make(chan struct{}, 1), make(chan struct{})
	h.reading = func() { reading <- struct{}{}; <-goOn }
	f := follow(t, h, m)
	first := make(chan error, 1)
	go func() { first <- f.CatchUp(t.Context()) }()
	<-reading
	h.change("made during the first reading")
	var later sync.WaitGroup
	for range 10 {
		p := f.join()
		later.Go(func() {
			<-p.done
			if p.err != nil {
				t.Error(p.err)
			}
		})
	}
	goOn <- struct{}{} // the change is in time for the first reading too, or not
	<-reading
	goOn <- struct{}{}
	later.Wait()
	if err := <-first; err != nil {
		t.Error(err)
	}
	m.has(t, "made during the first reading")
	if h.reads != 2 {
		t.Errorf("%d readings for 11 callers", h.reads)
	}
}

func TestUnknownChangesReadEverythingAgain(t *testing.T) {
	h, m := &history{}, &memory{}
	h.change("a", "b")
	f := follow(t, h, m)
	h.names, h.lost = nil, true // restored from an older backup
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.lost = false
	h.change("c")
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.has(t, "c")
	if m.losses != 1 || f.Version() != h.version() {
		t.Errorf("%d losses, version %d", m.losses, f.Version())
	}
}

func TestFreshBoundsTheAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := &history{}, &memory{}
		f := follow(t, h, m)
		h.change("a")
		time.Sleep(Bound - 1)
		if err := f.Fresh(t.Context()); err != nil || h.reads != 0 {
			t.Errorf("within the bound: %d readings, %v", h.reads, err)
		}
		time.Sleep(time.Nanosecond)
		if err := f.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.has(t, "a")
		// A group commit that finds the version confirms it; one that has another version does not.
		time.Sleep(Bound)
		f.Confirmed(f.Version(), f.cfg.Clock.Steady())
		f.Confirmed(f.Version()+1, f.cfg.Clock.Steady()+time.Hour)
		h.fail(store.ErrUnavailable)
		if err := f.Fresh(t.Context()); err != nil {
			t.Errorf("after a confirmation: %v", err)
		}
		time.Sleep(Bound)
		if err := f.Fresh(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("without a store: %v", err)
		}
	})
}

// Without any request, a change is applied within the bound; while the store is away, the follower goes on trying.
func TestRunLooksByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := &history{}, &memory{}
		f := follow(t, h, m)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.Run(ctx) })
		h.change("a")
		time.Sleep(Bound)
		m.has(t, "a")
		h.fail(store.ErrUnavailable)
		h.change("b")
		time.Sleep(time.Hour)
		if age := f.Staleness().Age; age < time.Hour {
			t.Errorf("age %s", age)
		}
		h.fail(nil)
		time.Sleep(Bound)
		m.has(t, "a", "b")
		stop()
		running.Wait()
		f.Close()
		if err := f.CatchUp(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestStoreOfOneNodeIsNotFollowed(t *testing.T) {
	f, err := Follow(t.Context(), Config{Store: single{}})
	if f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
}

type single struct{ store.Configuration }

func (single) ConfigVersion(context.Context) (int64, error) { return 0, nil }
