package command

import (
	"context"

	"github.com/godwit-hq/godwit/evidence"
)

// A Transaction is a transaction of a store's database, as Advance uses it.
//
//	Read ─┬─ Savepoint ─ Apply ─┬─ Release ──┬─ Commit
//	      │                     └─ RollBack ─┤
//	      └──────────────────────────────────┘
//
// At most one savepoint is open at a time. After an error the caller of Advance rolls the transaction back.
type Transaction interface {
	// Read returns the heads of chains and the records. Until this transaction ends, no other transaction may change them,
	// nor add the missing ones.
	Read(ctx context.Context, tenants []string, records []RecordID) (Snapshot, error)
	Savepoint(ctx context.Context) error
	// Apply applies effects in order and returns a result for each. A refusal is a failure that an effect itself caused;
	// Advance then rolls back to the savepoint and continues. An error concerns the whole transaction.
	Apply(ctx context.Context, effects []Effect) (results Results, refusal, err error)
	// Release keeps the effects applied since the savepoint. RollBack undoes them. Both end the savepoint.
	Release(ctx context.Context) error
	RollBack(ctx context.Context) error
	// Bulk reports whether RollBack undoes every effect completely. Advance then applies the effects of several steps
	// together, and applies them again step by step if one of them fails.
	Bulk() bool
	// Commit stores the writes of the steps. It is the last call.
	Commit(ctx context.Context, w *Writes) error
}

// A RecordID identifies a record.
type RecordID struct{ Tenant, Key string }

// A Snapshot holds the heads and records that a transaction has read.
type Snapshot struct {
	// Heads has the head of each tenant's chain; zero for a tenant without a chain.
	Heads map[string]evidence.Head
	// Records has the records that exist. Advance does not change them.
	Records map[RecordID]*Record
}

// Writes holds the data that a transaction stores beside its effects.
type Writes struct {
	Records []RecordWrite // each key at most once
	Items   []evidence.Item
	Heads   []evidence.Head // heads of the chains that have grown
	Effects bool            // effects were applied and released
}

// Empty reports whether there is nothing to commit.
func (w *Writes) Empty() bool { return len(w.Records) == 0 && len(w.Items) == 0 && !w.Effects }

// A RecordWrite is a record to store in place of the one under its key.
type RecordWrite struct {
	*Record
	Document []byte // the members that stores keep as one JSON document; see Record.SetDocument
	Exists   bool   // Snapshot.Records has a record under the key
}
