package follow

import (
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// A Watermark is the time before which no event will be added any more by this node: every one whose id was minted before it is
// stored, or never will be. Callers that read events in the order of their ids read up to it; they miss none, and do not lose
// sight of one that they were shown. Events of other nodes on the same store are not counted.
type Watermark struct {
	clock clock.Clock
	mu    sync.Mutex
	open  []mintings // by time, few
	told  int64      // latest time that a caller was told is over, in Unix nanoseconds; it never goes back
}

// mintings counts the events whose id was minted in one step of time and whose commit is under way.
type mintings struct {
	step  int64 // in units of watermarkStep
	n     int
	first int64 // time of the earliest id, in Unix nanoseconds
}

const (
	// watermarkStep is how finely times are told apart. While events are stored without a pause, an event is shown up to
	// one step later than it could be.
	watermarkStep = 5 * time.Millisecond
	// maxLead bounds how far ids may run ahead of a clock that was set back. Beyond it the order of ids gives way.
	maxLead = time.Minute
)

// NewWatermark makes a watermark that stands at the clock's time.
func NewWatermark(c clock.Clock) *Watermark { return &Watermark{clock: c} }

// Enter returns the time for ids that are minted from now on, and holds the watermark there until Leave is called with the
// step. The time is never one that a caller was told is over, unless the clock was set back a long way.
func (w *Watermark) Enter() (now time.Time, step int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = w.clock.Now() // under the lock, so that no caller is told meanwhile that this time is over
	if lead := time.Duration(w.told - now.UnixNano()); lead > 0 && lead <= maxLead {
		now = time.Unix(0, w.told).UTC()
	}
	at := now.UnixNano()
	step = at / int64(watermarkStep)
	i := len(w.open)
	for i > 0 && w.open[i-1].step > step {
		i--
	}
	if i > 0 && w.open[i-1].step == step {
		same := &w.open[i-1]
		same.n++
		same.first = min(same.first, at)
		return now, step
	}
	w.open = append(w.open, mintings{})
	copy(w.open[i+1:], w.open[i:])
	w.open[i] = mintings{step: step, n: 1, first: at}
	return now, step
}

// Leave says that what entered is stored, or never will be.
func (w *Watermark) Leave(step int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.open {
		if w.open[i].step != step {
			continue
		}
		if w.open[i].n--; w.open[i].n == 0 {
			w.open = append(w.open[:i], w.open[i+1:]...)
		}
		return
	}
}

// Time never goes back. It is the clock's time while nothing is being stored; under load it lags behind by a commit and
// watermarkStep.
func (w *Watermark) Time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.clock.Now().UnixNano()
	if len(w.open) > 0 {
		at = min(at, w.open[0].first)
	}
	w.told = max(w.told, at)
	return time.Unix(0, w.told).UTC().Truncate(time.Millisecond)
}
