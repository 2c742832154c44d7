// Package store declares the storage that the engine and the APIs need, in domain transitions: accept events, claim due
// deliveries, record results, move a delivery. Each transition is one transaction. No transaction handle and no SQL crosses
// this interface. Every backend passes the suite in storetest.
//
// Ownership: endpoints hash onto godwit.Shards shards. Only the node that holds a shard's lease claims deliveries, records
// results and writes health for its endpoints. A claim marks a pending delivery as held in that node's memory, under the
// lease's epoch. Claims of older epochs are orphans; the store releases them when the shard changes hands.
//
// Time is always an argument: a backend reads no clock.
package store

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrNotFound reports that the object does not exist, or belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrConflict reports that the object's state does not allow the transition, or that the object changed in the meantime.
	ErrConflict = errors.New("conflict")
	// ErrLimit reports that there are as many objects as are allowed.
	ErrLimit = errors.New("limit reached")
	// ErrOlderNodes reports that a live node of an older release does not know what is to be stored.
	ErrOlderNodes = errors.New("a node of an older release is alive")
	// ErrUnavailable wraps every temporary failure of the backend itself: disk full, connection lost, too busy. The
	// transaction had no effect, or its effect is unknown and the caller may safely repeat it.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFenced reports that the caller no longer owns the shard.
	ErrFenced = errors.New("lease lost")
	// ErrDamaged reports that the database's own integrity check found damage.
	ErrDamaged = errors.New("database is damaged")
	// ErrNewerSchema reports a database written by a newer release.
	ErrNewerSchema = errors.New("database schema is newer than this program")
)

// Passing reports whether err is temporary and not caused by the data: the store was unreachable, or too slow.
func Passing(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Store is a complete backend. Consumers declare the few methods they use.
type Store interface {
	Pipeline
	Leases
	Nodes
	Signals
	Deliveries
	DeadLetters
	Events
	Endpoints
	Environments
	Broadcasts
	Tenants
	Keys
	Sessions
	Idempotency
	Notices
	EventTypes
	Sources
	Commands
	Upkeep
	Allowances
	Usages
	Stats
	KeyChecks
	Configuration
	io.Closer
}
