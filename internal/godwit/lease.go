package godwit

import "time"

// A Lease is a node's right to deliver for a shard. Its epoch grows with every change of owner. The store refuses a write
// with an older epoch, so a node that was presumed dead can do no harm.
type Lease struct {
	Shard     int
	Owner     string
	Epoch     int64
	ExpiresAt time.Time
}
