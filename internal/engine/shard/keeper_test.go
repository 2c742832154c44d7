package shard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/sqlite"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

const ttl = 15 * time.Second

// An owner records the calls to it. Its shards are drained unless they are busy.
type owner struct {
	told     []string
	busy     map[int]bool
	inFlight [godwit.Shards]int
}

func (o *owner) tell(format string, args ...any) {
	o.told = append(o.told, fmt.Sprintf(format, args...))
}

func (o *owner) Inherit(former []Former) {
	recorded := 0
	for _, f := range former {
		if f.Recorded {
			recorded++
		}
	}
	if len(former) > 0 {
		o.tell("inherit %d, of %d all results", len(former), recorded)
	}
}

func (o *owner) Relearn(_ context.Context, s []int) error { o.tell("relearn %d", len(s)); return nil }
func (o *owner) Gained(_ context.Context, s []int)        { o.tell("gained %d", len(s)) }
func (o *owner) DropForeign()                             { o.tell("drop foreign") }
func (o *owner) WakeAll()                                 { o.tell("wake all") }
func (o *owner) Yield(s []int)                            { o.tell("yield %d", len(s)) }
func (o *owner) Drained(shard int) (drained, clean bool)  { return !o.busy[shard], true }
func (o *owner) InFlight() [godwit.Shards]int             { return o.inFlight }
func (o *owner) Busy() godwit.NodeLoad                    { return godwit.NodeLoad{Held: 7} }

// is compares what the owner was told since the last call.
func (o *owner) is(t *testing.T, what ...string) {
	t.Helper()
	if !slices.Equal(o.told, what) {
		t.Errorf("the owner was told %q, want %q", o.told, what)
	}
	o.told = nil
}

// A tampered store is a real one in which a test replaces single calls.
type tampered struct {
	store.Leases
	take    func() ([]godwit.Lease, error)
	release func() error
	beat    func() (*godwit.Cluster, error)
	refuse  func() ([]godwit.Lease, error) // in place of Take
	// releaseNone is called in place of Release.
	releaseNone func() error
}

func (s *tampered) Take(ctx context.Context, n godwit.Node, ttl time.Duration, limit int) ([]godwit.Lease, error) {
	if s.refuse != nil {
		return s.refuse()
	}
	if s.take != nil {
		defer func() { s.take = nil }()
		_, _ = s.Leases.Take(ctx, n, ttl, limit)
		return s.take()
	}
	return s.Leases.Take(ctx, n, ttl, limit)
}

func (s *tampered) Release(ctx context.Context, held []godwit.Lease, clean bool) error {
	if s.releaseNone != nil {
		return s.releaseNone()
	}
	err := s.Leases.Release(ctx, held, clean)
	if s.release != nil {
		return s.release()
	}
	return err
}

func (s *tampered) Beat(ctx context.Context, b store.Beat) (*godwit.Cluster, error) {
	if s.beat != nil {
		return s.beat()
	}
	return s.Leases.Beat(ctx, b)
}

// A rig is a store with nodes that share a clock. The test makes their beats and moves.
type rig struct {
	t     *testing.T
	hands *clock.Manual
	store *tampered
}

func newRig(t *testing.T) *rig {
	hands := clock.NewManual(start)
	s, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Time: hands.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &rig{t, hands, &tampered{Leases: s}}
}

func (r *rig) node(name string) (*Keeper, *owner) {
	k := NewKeeper(Config{Store: r.store, Clock: r.hands, Log: slog.New(slog.DiscardHandler), Node: godwit.Node{Name: name, Instance: "1"}, TTL: ttl})
	o := &owner{busy: map[int]bool{}}
	if err := k.Prepare(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if err := k.Start(r.t.Context(), o); err != nil {
		r.t.Fatal(err)
	}
	return k, o
}

// round makes every node beat and move once.
func (r *rig) round(keepers ...*Keeper) {
	r.t.Helper()
	r.hands.Advance(time.Second)
	for _, k := range keepers {
		if err := k.beat(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		k.moves(r.t.Context())
	}
}

func (r *rig) have(counts map[*Keeper]int) {
	r.t.Helper()
	owners := map[int]string{}
	for k, n := range counts {
		if got := len(k.Shards()); got != n {
			r.t.Errorf("node %s has %d shards, want %d", k.cfg.Node.Name, got, n)
		}
		for _, shard := range k.Shards() {
			if other := owners[shard]; other != "" {
				r.t.Errorf("shard %d belongs to %s and %s", shard, other, k.cfg.Node.Name)
			}
			owners[shard] = k.cfg.Node.Name
		}
	}
}

// A node that starts alone has all shards at once, as long as its leases last, and need not read the endpoints a second time.
func TestStartAlone(t *testing.T) {
	r := newRig(t)
	k, o := r.node("a")
	o.is(t, "gained 64", "wake all")
	r.have(map[*Keeper]int{k: 64})
	if k.Epoch(3) != 1 || !k.Valid() {
		t.Error("a lease does not count")
	}
	r.hands.Step(time.Hour) // setting a machine's clock changes nothing
	if k.Epoch(3) != 1 {
		t.Error("a lease ends because the clock was set")
	}
	r.hands.Advance(ttl)
	if k.Epoch(3) != 0 || k.Valid() || k.Owned(3) != 1 {
		t.Error("a lease that expired must not count, but stays owned")
	}
	if err := k.beat(t.Context()); err != nil || k.Epoch(3) != 1 {
		t.Errorf("after a beat the epoch is %d, %v", k.Epoch(3), err)
	}
	o.is(t, "wake all")
	if err := k.Release(); err != nil || k.Owned(3) != 0 || k.Shards() != nil {
		t.Errorf("release: %v", err)
	}
}

// Nodes that come and go share the shards equally, up to one.
func TestShares(t *testing.T) {
	r := newRig(t)
	a, ao := r.node("a")
	r.hands.Advance(time.Millisecond)
	b, bo := r.node("b")
	bo.is(t) // all shards are taken
	ao.told = nil
	r.round(a, b)
	r.have(map[*Keeper]int{a: 32, b: 32})
	ao.is(t, "yield 32")
	bo.is(t, "relearn 32", "inherit 32, of 32 all results", "gained 32", "wake all")
	r.hands.Advance(time.Millisecond)
	c, _ := r.node("c")
	r.round(a, b, c)
	r.have(map[*Keeper]int{a: 22, b: 21, c: 21})

	b.Leave()
	r.round(b, a, c)
	r.have(map[*Keeper]int{a: 32, b: 0, c: 32})
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	// c dies.
	for range int(ttl/time.Second) + 1 {
		r.round(a)
	}
	r.have(map[*Keeper]int{a: 64})
	if err := c.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.have(map[*Keeper]int{a: 64, c: 0}) // c learns of it at its next beat
}

// A node beats at its interval, and also at the moment at which the leases of a silent node end, so that it takes the shards then.
func TestBeatWhenLeasesEnd(t *testing.T) {
	r := newRig(t)
	a, _ := r.node("a")
	if got := a.untilBeat(false); got != maxBeat {
		t.Errorf("alone it waits %s", got)
	}
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	r.round(a, b)
	if got := a.untilBeat(false); got != maxBeat {
		t.Errorf("beside a live node it waits %s", got)
	}
	r.hands.Advance(ttl - 300*time.Millisecond) // b is silent
	if err := a.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.hands.Advance(100 * time.Millisecond)
	if got := a.untilBeat(false); got != 201*time.Millisecond {
		t.Errorf("beside a silent node it waits %s", got)
	}
	r.hands.Advance(201 * time.Millisecond)
	if got := a.untilBeat(true); got != maxBeat {
		t.Errorf("after a failed beat it waits %s", got)
	}
	if err := a.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.moves(t.Context())
	r.have(map[*Keeper]int{a: 64})
	if got := a.untilBeat(false); got != maxBeat {
		t.Errorf("beside a dead node it waits %s", got)
	}
}

// The shards of a node that stops before its next beat are free for the others at once.
func TestStopBetweenBeats(t *testing.T) {
	r := newRig(t)
	a, _ := r.node("a")
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	r.round(a, b)
	b.Leave()
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	r.round(a)
	r.have(map[*Keeper]int{a: 64, b: 0})
}

// One failed call, on a connection that died, does not make the others wait until the leases of a node that stops expire.
func TestStopReleasesAgainAfterAFailure(t *testing.T) {
	r := newRig(t)
	a, _ := r.node("a")
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	r.round(a, b)
	b.Leave()
	r.store.releaseNone = func() error {
		r.store.releaseNone = nil
		return store.ErrUnavailable
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	r.round(a)
	r.have(map[*Keeper]int{a: 64, b: 0})
	r.store.releaseNone = func() error { return store.ErrUnavailable }
	if err := a.Release(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the store is away: %v", err)
	}
}

// A node that is about to leave says so and keeps its shards until it leaves.
func TestStoppingNodeKeepsItsShards(t *testing.T) {
	r := newRig(t)
	a, _ := r.node("a")
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	for range 3 {
		r.round(a, b)
	}
	b.Stopping()
	for range 3 {
		r.round(a, b)
	}
	r.have(map[*Keeper]int{a: 32, b: 32})
	if m := a.Cluster().Members[1]; m.Name != "b" || !m.Leaves() {
		t.Errorf("the other node sees %+v", m)
	}
	b.Leave()
	for range 3 {
		r.round(b, a)
	}
	r.have(map[*Keeper]int{a: 64, b: 0})
}

// A shard is given up when its requests have ended, those with the fewest first; one that takes too long stays.
func TestBusyShardsAreGivenUpLater(t *testing.T) {
	r := newRig(t)
	a, ao := r.node("a")
	for shard := range 32 {
		ao.inFlight[shard] = 1
	}
	ao.busy[40], ao.busy[41] = true, true
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	r.round(a, b)
	r.have(map[*Keeper]int{a: 32, b: 30})
	if a.Serves(40) || a.Owned(40) == 0 || !a.Serves(3) {
		t.Error("a busy shard starts requests, or is lost, or a shard with requests was given up first")
	}
	delete(ao.busy, 40)
	r.round(a, b)
	r.have(map[*Keeper]int{a: 32, b: 31})
	ao.told = nil
	for range 4 {
		r.round(a, b)
	}
	if !a.Serves(41) || !slices.Contains(ao.told, "wake all") {
		t.Error("the shard that does not drain is not served")
	}
	r.have(map[*Keeper]int{a: 32, b: 32}) // another one went in its place
}

// A node whose fellow leaves before it has given up shards keeps them.
func TestSharesThatAreWantedAgain(t *testing.T) {
	r := newRig(t)
	a, ao := r.node("a")
	for shard := range godwit.Shards {
		ao.busy[shard] = true
	}
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	r.round(a, b)
	r.have(map[*Keeper]int{a: 32, b: 0})
	epoch := a.Owned(0)
	b.Leave()
	r.round(b, a)
	r.have(map[*Keeper]int{a: 64, b: 0})
	if a.Epoch(0) != epoch {
		t.Errorf("the epoch of a shard that stayed went from %d to %d", epoch, a.Epoch(0))
	}
}

// Calls whose answer is lost after they took effect.
func TestLostAnswers(t *testing.T) {
	r := newRig(t)
	r.store.take = func() ([]godwit.Lease, error) { return nil, store.ErrUnavailable }
	a, ao := r.node("a")
	r.have(map[*Keeper]int{a: 0})
	r.round(a)
	r.have(map[*Keeper]int{a: 64}) // the beat told of them
	if a.Epoch(0) != 1 {
		t.Errorf("the epoch is %d: the shards were taken twice", a.Epoch(0))
	}
	r.hands.Advance(time.Millisecond)
	ao.told = nil
	r.store.release = func() error { return store.ErrUnavailable }
	b, _ := r.node("b")
	r.round(a)
	r.store.release = nil
	r.round(a, b)
	r.have(map[*Keeper]int{a: 32, b: 32})
	away := errors.New("away")
	r.store.beat = func() (*godwit.Cluster, error) { return nil, away }
	r.hands.Advance(time.Second)
	if err := a.beat(t.Context()); !errors.Is(err, away) || a.Epoch(a.Shards()[0]) == 0 {
		t.Errorf("after a failed beat: %v, epoch %d", err, a.Epoch(a.Shards()[0]))
	}
	r.hands.Advance(ttl)
	if a.Epoch(a.Shards()[0]) != 0 {
		t.Error("without beats the leases count for ever")
	}
}

// Another process under the same name ends Keep.
func TestKeepEndsWhenTheNameIsLost(t *testing.T) {
	r := newRig(t)
	a, _ := r.node("a")
	r.store.beat = func() (*godwit.Cluster, error) { return nil, store.ErrFenced }
	a.Look()
	if err := a.Keep(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("Keep ended with %v", err)
	}
}

func TestShare(t *testing.T) {
	for n := 1; n <= 70; n++ {
		var members []godwit.Member
		for i := range n {
			state := []godwit.NodeState{godwit.NodeRunning, godwit.NodeStopping}[i%2]
			members = append(members, godwit.Member{Node: godwit.Node{Name: fmt.Sprint(i)}, State: state, Alive: true})
		}
		members = append(members, godwit.Member{Node: godwit.Node{Name: "dead"}, State: godwit.NodeRunning},
			godwit.Member{Node: godwit.Node{Name: "leaving"}, State: godwit.NodeLeaving, Alive: true})
		sum, least, most := 0, 64, 0
		for i := range members {
			s := share(members, members[i].Owner())
			sum += s
			if i < n {
				least, most = min(least, s), max(most, s)
			}
		}
		if sum != godwit.Shards || most-least > 1 {
			t.Errorf("%d nodes share %d shards, between %d and %d", n, sum, least, most)
		}
	}
}

// A node whose leases expired and were taken must not deliver for them again by extending what it still believes to have.
func TestExpiredLeasesOfOthersAreNotExtended(t *testing.T) {
	for name, extend := range map[string]func(*Keeper) error{
		"a beat while leases are taken or released": func(k *Keeper) error {
			return k.change(func() error { return k.beat(t.Context()) })
		},
		"a take": func(k *Keeper) error {
			k.take(t.Context(), 1)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, _ := r.node("a")
			r.hands.Advance(time.Millisecond)
			b, _ := r.node("b")
			for range int(ttl/time.Second) + 3 { // a is silent
				r.round(b)
			}
			r.have(map[*Keeper]int{b: 64})
			if err := extend(a); err != nil {
				t.Fatal(err)
			}
			for shard := range godwit.Shards {
				if epoch := a.Epoch(shard); epoch != 0 {
					t.Fatalf("a delivers for shard %d, which b has, under epoch %d", shard, epoch)
				}
			}
		})
	}
}

// Each attempt to take or release leases locks out commits. After one that failed the keeper waits, also if beats succeed and
// tell it that there is something to do.
func TestRefusedMovesAreRepeatedAfterAPause(t *testing.T) {
	r := newRig(t)
	attempts := 0
	refused := func() error { attempts++; return store.ErrUnavailable }
	r.store.refuse = func() ([]godwit.Lease, error) { return nil, refused() }
	a, _ := r.node("a")
	again := func(what string) {
		t.Helper()
		for range 5 {
			if err := a.beat(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.moves(t.Context())
		}
		if attempts != 1 {
			t.Errorf("the keeper tried to %s %d times at once", what, attempts)
		}
		r.round(a)
		if attempts != 2 {
			t.Errorf("after a pause the keeper had tried to %s %d times, want 2", what, attempts)
		}
		attempts = 0
	}
	again("take leases")
	r.store.refuse = nil
	r.round(a)
	r.have(map[*Keeper]int{a: 64})
	r.node("b")
	r.store.releaseNone = refused
	r.round(a)
	again("release leases")
}
