package store

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Leases keeps the ownership of shards.
type Leases interface {
	// Acquire takes every shard that is free, expired at now, or already the owner's, up to limit in all; the owner's own
	// shards come first. The epoch of each taken shard grows, also of those the owner held: a node that restarts under its
	// name does not know its old claims. Acquire releases claims of older epochs in these shards.
	Acquire(ctx context.Context, owner string, now time.Time, ttl time.Duration, limit int) ([]godwit.Lease, error)
	// Renew extends the leases and returns those that are still held.
	Renew(ctx context.Context, held []godwit.Lease, now time.Time, ttl time.Duration) ([]godwit.Lease, error)
	// Release gives up the leases and the claims under them at once. The epoch grows, so that late results are fenced.
	Release(ctx context.Context, held []godwit.Lease, now time.Time) error
	// Holders lists the processes that hold shards, expired or not, for messages to operators. A process of an earlier release
	// has no Holder.
	Holders(ctx context.Context) ([]godwit.Node, error)
}

// Nodes records which process runs under each node name.
type Nodes interface {
	// ClaimNode makes n the process that runs under its name until the store is closed or the process ends. The leases of the
	// previous process of that name become free. A *NodeTaken error reports that another process with the name is alive. If
	// the store cannot tell at once, ClaimNode waits some seconds at most for a heartbeat of the other process.
	ClaimNode(ctx context.Context, n godwit.Node) error
	// KeepNode records a heartbeat. The process calls it every NodeBeat. ErrFenced reports that another process has the name
	// now.
	KeepNode(ctx context.Context, n godwit.Node) error
}

const (
	// NodeBeat is the interval between heartbeats of a process.
	NodeBeat = 2 * time.Second
	// NodeSilence is how long a process may go without a heartbeat before it loses its name.
	NodeSilence = 15 * time.Second
)

// NodeTaken reports that another process runs under a node's name.
type NodeTaken struct {
	Name, Holder string
}

func (e *NodeTaken) Error() string {
	return fmt.Sprintf("node name %q is in use by %s", e.Name, e.Holder)
}

// KeyChecks keeps values that prove that a key held outside the store belongs to this store.
type KeyChecks interface {
	// KeyCheck returns the value of that name, or ErrNotFound.
	KeyCheck(ctx context.Context, name string) ([]byte, error)
	// SetKeyCheck replaces the value old; nil: the name must have no value yet. It fails with ErrConflict when the stored
	// value differs.
	SetKeyCheck(ctx context.Context, name string, old, value []byte) error
}
