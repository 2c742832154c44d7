package godwit

import "time"

// A Lease is a node's right to deliver for a shard. Its epoch grows with every change of owner. The store refuses a write
// with an older epoch, so a node that was presumed dead can do no harm.
type Lease struct {
	Shard int
	Owner string // empty: released
	Epoch int64
	// Free says that a node may take the lease: its owner released it or is silent.
	Free bool
	// Clean says of a lease that was just taken that its former owner left no claims.
	Clean bool
	// FreeSince is, of a lease that was just taken, when it was released or expired; zero: it never had an owner.
	FreeSince time.Time
}
