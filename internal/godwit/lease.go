package godwit

import "time"

// A Lease is a node's right to deliver for a shard. Its epoch grows with every change of owner; a write that carries an
// older one is refused, so a node that was thought dead cannot harm.
type Lease struct {
	Shard     int
	Owner     string
	Epoch     int64
	ExpiresAt time.Time
}
