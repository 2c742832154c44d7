package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A tally tracks the events of one run by number: which were acknowledged, and how often each arrived.
type tally struct {
	run   uint32
	clock *stopwatch
	next  atomic.Uint64
	// byPath: the number of an arrival is that of its path, not of its event. One event is delivered to many endpoints.
	byPath bool

	grow   sync.Mutex
	chunks [maxChunks]atomic.Pointer[chunk]

	acked       atomic.Int64
	failed      atomic.Int64 // another response, or none
	arrived     atomic.Int64 // distinct events
	lastAck     atomic.Int64
	lastArrival atomic.Int64
	latency     histogram
}

const (
	chunkSize = 1 << 16
	maxChunks = 1 << 12
)

// chunk has a word an event: the arrivals, and ackedBit.
type chunk [chunkSize]atomic.Uint32

const ackedBit = 1 << 31

// stopwatch measures the time since the start of the bench, on the monotonic clock.
type stopwatch struct{ start time.Time }

func (s *stopwatch) now() time.Duration { return time.Since(s.start) }

func newTally(run uint32, clock *stopwatch) *tally { return &tally{run: run, clock: clock} }

// take reserves the number of a new event. ok is false if a run has more events than the tally can track.
func (t *tally) take() (seq uint64, ok bool) {
	seq = t.next.Add(1) - 1
	i := seq / chunkSize
	if i >= maxChunks {
		return 0, false
	}
	if t.chunks[i].Load() == nil {
		t.grow.Lock()
		if t.chunks[i].Load() == nil {
			t.chunks[i].Store(new(chunk))
		}
		t.grow.Unlock()
	}
	return seq, true
}

func (t *tally) word(seq uint64) *atomic.Uint32 {
	if seq >= chunkSize*maxChunks {
		return nil
	}
	c := t.chunks[seq/chunkSize].Load()
	if c == nil {
		return nil
	}
	return &c[seq%chunkSize]
}

func (t *tally) ack(seq uint64) {
	t.word(seq).Or(ackedBit)
	t.acked.Add(1)
	raise(&t.lastAck, int64(t.clock.now()))
}

// arrive records an event at the sink; at is the time of its post.
func (t *tally) arrive(seq uint64, at time.Duration) {
	w := t.word(seq)
	if w == nil {
		return
	}
	now := t.clock.now()
	if w.Add(1)&^ackedBit == 1 {
		t.arrived.Add(1)
		t.latency.add(now - at)
	}
	raise(&t.lastArrival, int64(now))
}

func raise(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if old >= to || v.CompareAndSwap(old, to) {
			return
		}
	}
}

// settle waits until every acknowledged event has arrived. It gives up if nothing arrives for a while.
func (t *tally) settle(ctx context.Context, quiet time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last, since := t.arrived.Load(), time.Now()
	for t.arrived.Load() < t.acked.Load() && time.Since(since) < quiet {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := t.arrived.Load(); n != last {
			last, since = n, time.Now()
		}
	}
}

// count returns how many acknowledged events never arrived, and how many arrivals were repeats.
func (t *tally) count() (missing, duplicates int64) {
	for seq := range min(t.next.Load(), chunkSize*maxChunks) {
		w := t.word(seq)
		if w == nil {
			continue
		}
		v := w.Load()
		n := int64(v &^ ackedBit)
		if n == 0 && v&ackedBit != 0 {
			missing++
		}
		duplicates += max(n-1, 0)
	}
	return missing, duplicates
}
