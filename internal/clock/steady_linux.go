package clock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// boot is the clock behind Real.Steady.
var boot = bootClock{
	read: func() (time.Duration, time.Duration) {
		now := time.Now()
		return time.Duration(now.UnixNano()), now.Sub(started)
	},
	boot: func() (time.Duration, bool) {
		var t unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
		return time.Duration(t.Nano()), err == nil
	},
}

func sinceBoot() time.Duration { return boot.now() }

// shiftTolerance is how far wall and monotonic clock may drift apart before the bootClock asks the system again.
const shiftTolerance = time.Millisecond

// A bootClock shows the time since the machine's start, including the time that it slept. The monotonic clock of Go does not
// include that, and a machine that wakes up would look as if its clock had been set forward.
//
// The system call for it takes about 1 µs, and every delivery reads this clock several times. So the bootClock adds the time
// slept, which it knows, to the monotonic clock. Both are read without a system call. The time slept changes only when the
// machine sleeps, and then the wall clock moves against the monotonic one.
type bootClock struct {
	read func() (wall, monotonic time.Duration) // both at one moment
	boot func() (since time.Duration, ok bool)

	slept atomic.Int64 // time since the machine's start minus the monotonic reading
	shift atomic.Int64 // wall clock minus monotonic clock when slept was measured
}

func (c *bootClock) now() time.Duration {
	wall, monotonic := c.read()
	if shift := wall - monotonic; (shift - time.Duration(c.shift.Load())).Abs() > shiftTolerance {
		c.measure(shift)
	}
	return monotonic + time.Duration(c.slept.Load())
}

// measure measures the time slept. It keeps the known value if the measurement allows it, so that the clock does not move by
// the error of a measurement.
func (c *bootClock) measure(shift time.Duration) {
	const tries = 8
	var low, high time.Duration
	for i := range tries {
		_, before := c.read()
		since, ok := c.boot()
		_, after := c.read()
		if !ok {
			return
		}
		if i == 0 || after-before < high-low {
			low, high = since-after, since-before
		}
		if high-low < shiftTolerance/10 {
			break
		}
	}
	if known := time.Duration(c.slept.Load()); known < low || known > high {
		c.slept.Store(int64(low))
	}
	c.shift.Store(int64(shift)) // last: a goroutine that reads it reads the new time slept too
}
