package store

import (
	"context"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Beat says that a process is alive.
type Beat struct {
	Node godwit.Node
	// TTL is how long the leases of the process last without another beat.
	TTL   time.Duration
	State godwit.NodeState // running by default
	Load  godwit.NodeLoad
}

// Leases keeps the ownership of shards. Times are those of the store, so the clocks of nodes do not matter.
type Leases interface {
	// Beat announces the process, extends all of its leases, also expired ones that no other process has taken, and returns all
	// nodes and leases. ErrFenced reports that another process has the node's name.
	Beat(ctx context.Context, b Beat) (*godwit.Cluster, error)
	// Cluster returns all nodes and leases.
	Cluster(ctx context.Context) (*godwit.Cluster, error)
	// Take takes up to limit free shards for the process and announces it as Beat does. The epoch of each taken shard grows.
	// Claims of older epochs stay until ReleaseClaims, but their nodes can make no new ones.
	Take(ctx context.Context, n godwit.Node, ttl time.Duration, limit int) ([]godwit.Lease, error)
	// ReleaseClaims releases the claims of older epochs in shards that were taken. It may take long.
	ReleaseClaims(ctx context.Context, taken []godwit.Lease) error
	// Release gives up leases. The epochs grow, so that late results are fenced. clean says that no claims are left under them.
	Release(ctx context.Context, held []godwit.Lease, clean bool) error
}

// Nodes records which process runs under each node name.
type Nodes interface {
	// ClaimNode makes n the process that runs under its name until the store is closed or the process ends. The leases of the
	// previous process of that name become free. A *NodeTaken error reports that another process with the name is alive. If
	// the store cannot tell at once, ClaimNode waits some seconds at most for a beat of the other process.
	ClaimNode(ctx context.Context, n godwit.Node) error
}

// NodeSilence is how long a process may go without a beat before it loses its name.
const NodeSilence = 15 * time.Second

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
