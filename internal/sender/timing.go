package sender

import "time"

// processStart is where steady is 0.
var processStart = time.Now()

// steady returns the machine's monotonic time. Parts of an attempt are shorter than what the clock of the engine is exact to.
func steady() time.Duration { return time.Since(processStart) }
