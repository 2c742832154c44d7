package follow

import (
	"sync"
	"time"

	"github.com/godwit-hq/godwit/internal/clock"
)

// A Watermark is a time before which this node adds no more events: every event whose id was made before it is stored, or
// will never be. Callers that read events in the order of their ids read up to it, and so miss none. Events of other nodes on
// the same store are not considered.
type Watermark struct {
	clock clock.Clock
	mu    sync.Mutex
	open  []openStep // by time, few
	told  int64      // latest time that Time returned, in Unix nanoseconds; it never goes back
}

// openStep counts the events whose id was made in one step of time and whose commit is under way.
type openStep struct {
	step  int64 // in units of watermarkStep
	n     int
	first int64 // time of the earliest id, in Unix nanoseconds
}

const (
	// watermarkStep is the resolution of the watermark. While events are stored without a pause, an event is shown up to one
	// step late.
	watermarkStep = 5 * time.Millisecond
	// maxLead bounds how far ids may run ahead of a clock that was set back. Beyond it ids no longer follow the order of time.
	maxLead = time.Minute
)

// NewWatermark makes a watermark at the clock's time.
func NewWatermark(c clock.Clock) *Watermark { return &Watermark{clock: c} }

// Enter returns the time for ids made from now on, and holds the watermark there until Leave is called with the step. The
// time is never before one that Time returned, unless the clock was set back by more than maxLead.
func (w *Watermark) Enter() (now time.Time, step int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = w.clock.Now() // under the lock, so that Time cannot pass this time meanwhile
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
	w.open = append(w.open, openStep{})
	copy(w.open[i+1:], w.open[i:])
	w.open[i] = openStep{step: step, n: 1, first: at}
	return now, step
}

// Leave must be called once the events of the step are stored, or will never be.
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

// Time returns the watermark, which never goes back. It is the clock's time while nothing is being stored; under load it lags
// behind by a commit and watermarkStep.
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
