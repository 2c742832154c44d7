package command

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// A Store keeps records and evidence. Time is always an argument.
type Store interface {
	// Advance applies steps in order, in one durable transaction. Each step holds or not by itself: see Result. An error
	// means that nothing is known to be stored; the same steps may be applied again.
	Advance(ctx context.Context, now time.Time, steps []*Step) ([]Result, error)
	// Find returns the record under a key, or nil.
	Find(ctx context.Context, tenant, key string) (*Record, error)
	// FindCommand returns the record whose first command has the id, or nil. If several have it, it returns the earliest: a caller
	// cannot put a command in the place of another by using its id again.
	FindCommand(ctx context.Context, tenant, commandID string) (*Record, error)
	// Lost lists records in progress whose lease is over, earliest first; those that await confirmation are not among them.
	Lost(ctx context.Context, now time.Time, limit int) ([]Record, error)
	// SweepRecords removes up to limit records that are free at now. It returns how many it removed.
	SweepRecords(ctx context.Context, now time.Time, limit int) (int, error)
	// Evidence lists a tenant's evidence, oldest first.
	Evidence(ctx context.Context, q EvidenceQuery) ([]evidence.Item, error)
	// EvidenceHead returns the last link of a tenant's chain; zero when it has none.
	EvidenceHead(ctx context.Context, tenant string) (evidence.Head, error)
	// EvidenceHeads lists the heads of all chains by tenant, after the given one.
	EvidenceHeads(ctx context.Context, after string, limit int) ([]evidence.Head, error)
}

// A Step is one change of one record, or none, with what belongs into the same transaction.
type Step struct {
	Tenant string
	// Key names the record. Empty: the step only appends evidence.
	Key string
	// Expect is the version that the record must have. 0: the key must be free, which it is when there is no record or the
	// one that is there is free at the step's now.
	Expect int64
	// Effects are applied first. When one fails, all of this step's are undone and the step goes on.
	Effects []Effect
	// Settle says what is stored. It is told what the effects returned, or which error one of them gave, and the record that
	// is replaced (nil when there was none). It is called within the transaction, perhaps more than once: it computes and does
	// nothing else.
	Settle func(Applied) (Change, error)
}

// Applied is what a store tells Settle.
type Applied struct {
	Previous *Record
	Results  Results // one for each effect
	Err      error   // of the effect that failed; Results is then nil
}

// A Change is what a step stores. Version and MAC are final.
type Change struct {
	Record   *Record // nil leaves the record as it is
	Evidence []evidence.Entry
}

// A Result is what became of a step.
type Result struct {
	// Stored is the record now; nil when the step had none.
	Stored *Record
	// Refused: the record had another version than expected. Stored is what is there, nil when nothing is. Nothing of the step
	// was stored.
	Refused bool
	// Err is what Settle returned, or the failure of an effect that Settle did not turn into a Change. Nothing of the step was stored.
	Err error
	// Applied is what the effects returned.
	Applied Results
}

// EvidenceQuery selects evidence of one tenant; members that are zero do not narrow it.
type EvidenceQuery struct {
	Tenant    string
	Key       string
	CommandID string // as the original's or the submitted one's
	After     int64  // sequence number, exclusive
	Limit     int
}
