package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot includes the time that the machine slept. The monotonic clock of Go does not, and a machine that wakes up would look
// as if its clock had been set forward.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
