//go:build !faultclock

package clock

import "time"

// wall is the machine's clock.
func wall() time.Time { return time.Now() }
