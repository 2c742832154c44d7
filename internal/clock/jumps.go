package clock

import (
	"sync"
	"time"
)

var started = time.Now()

// jumpTolerance is the largest difference that is no jump: clocks are corrected all the time.
const jumpTolerance = time.Second

// maxJumps bounds the memory of a clock that jumps again and again.
const maxJumps = 16

// Jumps measures how far the wall clock was set forward while the process runs. A program that knows it does not take a jump
// for time that has passed. A clock that is set back later takes back the jumps before it.
type Jumps struct {
	clock Clock

	mu    sync.Mutex
	base  time.Duration // wall time minus steady time at the last look
	shown time.Time     // wall time at the last look
	list  []jump
}

type jump struct {
	from time.Time // what the clock would have shown without the jump
	by   time.Duration
}

// NewJumps measures from now on.
func NewJumps(c Clock) *Jumps {
	now := c.Now().Round(0)
	return &Jumps{clock: c, base: time.Duration(now.UnixNano()) - c.Steady(), shown: now}
}

// Look compares the two clocks. It is called at intervals, so that small corrections do not add up to a jump.
func (j *Jumps) Look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.clock.Steady()
	wall := j.clock.Now().Round(0) // without the monotonic reading
	steady := j.clock.Steady()
	if steady-before > jumpTolerance/10 {
		return // the process was held up between the readings, so they do not belong together
	}
	base := time.Duration(wall.UnixNano()) - steady
	by := base - j.base
	j.base, j.shown = base, wall
	switch {
	case by > jumpTolerance:
		j.list = append(j.list, jump{from: wall.Add(-by), by: by})
		if len(j.list) > maxJumps {
			j.list[1].by += j.list[0].by
			j.list = j.list[1:]
		}
	case by < -jumpTolerance:
		j.takeBack(-by)
	}
}

func (j *Jumps) takeBack(by time.Duration) {
	for n := len(j.list); n > 0 && by > 0; n = len(j.list) {
		last := &j.list[n-1]
		if last.by > by {
			last.by -= by
			return
		}
		by -= last.by
		j.list = j.list[:n-1]
	}
}

// Since returns how far the clock was set forward after it showed t.
func (j *Jumps) Since(t time.Time) time.Duration { return j.Ahead(t, j.clock.Now()) }

// Ahead returns how much less time has passed from t until now than the two tell, because the clock was set forward meanwhile. now is a reading of the clock
// that the caller took before: if the clock was set back since, the jumps that this took back are in the reading all the same.
func (j *Jumps) Ahead(t, now time.Time) (by time.Duration) {
	j.Look()
	j.mu.Lock()
	defer j.mu.Unlock()
	if early := now.Round(0).Sub(j.shown); early > jumpTolerance {
		by = early
	}
	for _, jump := range j.list {
		if !t.After(jump.from) {
			by += jump.by
		}
	}
	return by
}
