package shard

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

type recorded struct {
	moved map[Move]int
	waits []time.Duration
}

func (r *recorded) Moved(m Move, shards int)      { r.moved[m] += shards }
func (r *recorded) HandedOver(took time.Duration) { r.waits = append(r.waits, took) }

func (k *Keeper) record() *recorded {
	r := &recorded{moved: map[Move]int{}}
	k.cfg.Recorder = r
	return r
}

// Every change of owner is counted where it happens, and the new owner measures how long the shard had none.
func TestMovesAreMeasured(t *testing.T) {
	r := newRig(t)
	a, _ := r.node("a")
	ra := a.record()
	r.hands.Advance(time.Millisecond)
	b, _ := r.node("b")
	rb := b.record()
	r.round(a) // gives up half
	r.hands.Advance(time.Second)
	if err := b.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.moves(t.Context())
	if ra.moved[MoveGivenUp] != 32 || rb.moved[MoveTaken] != 32 || len(rb.waits) != 32 || slices.Max(rb.waits) != time.Second || slices.Min(rb.waits) != time.Second {
		t.Errorf("a shard each second: given up %v, taken %v after %v", ra.moved, rb.moved, rb.waits)
	}
	// a falls silent; b notices when the leases have expired.
	for range int(ttl/time.Second) + 3 {
		r.round(b)
	}
	if rb.moved[MoveTaken] != 64 || len(rb.waits) != 64 || rb.waits[63] >= 2*time.Second {
		t.Errorf("after the other's silence: taken %v, the last after %v", rb.moved, rb.waits[len(rb.waits)-1])
	}
	if err := a.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ra.moved[MoveLost] != 32 {
		t.Errorf("the silent node counts %v", ra.moved)
	}
	if err := b.Release(); err != nil || rb.moved[MoveGivenUp] != 64 {
		t.Errorf("a stop counts %v, %v", rb.moved, err)
	}
	// Shards that were free while no node ran were not handed over late by any node.
	r.hands.Advance(24 * time.Hour)
	c := NewKeeper(Config{Store: r.store, Clock: r.hands, Log: slog.New(slog.DiscardHandler), Node: godwit.Node{Name: "c", Instance: "1"}, TTL: ttl})
	rc := c.record()
	if err := c.Start(t.Context(), &owner{busy: map[int]bool{}}); err != nil {
		t.Fatal(err)
	}
	if rc.moved[MoveTaken] != 64 || len(rc.waits) != 64 || slices.Max(rc.waits) != 0 {
		t.Errorf("after a day without nodes: %v", rc)
	}
}

// What fails at every beat is logged once, and once when it works again.
func TestTroubleIsLoggedOnce(t *testing.T) {
	r := newRig(t)
	var log bytes.Buffer
	k := NewKeeper(Config{Store: r.store, Clock: r.hands, Log: slog.New(slog.NewTextHandler(&log, nil)), Node: godwit.Node{Name: "a", Instance: "1"}, TTL: ttl})
	refuse := func() ([]godwit.Lease, error) { return nil, store.ErrUnavailable }
	r.store.refuse = refuse
	if err := k.Start(t.Context(), &owner{busy: map[int]bool{}}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		r.round(k)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "shards not taken; it is tried again") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	r.store.refuse = nil
	for range 5 {
		r.round(k)
	}
	if n := strings.Count(log.String(), "\n"); n != 3 || !strings.Contains(log.String(), "shards can be taken again") || !strings.Contains(log.String(), `msg="shards taken"`) {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
