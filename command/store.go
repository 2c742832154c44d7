package command

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// A Store keeps records and evidence. Time is always an argument.
type Store interface {
	// Advance applies steps in order, in one durable transaction. Each step succeeds or fails by itself: see Result. After
	// an error it is not known whether anything was stored; the same steps may be applied again.
	Advance(ctx context.Context, now time.Time, steps []*Step) ([]Result, error)
	// Find returns the record under a key, or nil.
	Find(ctx context.Context, tenant, key string) (*Record, error)
	// FindCommand returns the record whose first command has the id, or nil. If several have it, it returns the earliest:
	// a caller cannot replace a command by using its id again.
	FindCommand(ctx context.Context, tenant, commandID string) (*Record, error)
	// Lost lists records in progress whose lease is over, earliest first. It omits those that await confirmation.
	Lost(ctx context.Context, now time.Time, limit int) ([]Record, error)
	// SweepRecords removes up to limit records that are free at now. It returns the number of removed records.
	SweepRecords(ctx context.Context, now time.Time, limit int) (int, error)
	// Evidence lists a tenant's evidence, oldest first.
	Evidence(ctx context.Context, q EvidenceQuery) ([]evidence.Item, error)
	// EvidenceHead returns the last link of a tenant's chain; zero when it has none.
	EvidenceHead(ctx context.Context, tenant string) (evidence.Head, error)
	// EvidenceHeads lists the heads of all chains by tenant, after the given one.
	EvidenceHeads(ctx context.Context, after string, limit int) ([]evidence.Head, error)
}

// A Step is a change of at most one record, with the effects and evidence of the same transaction.
type Step struct {
	Tenant string
	// Key names the record. Empty: the step only appends evidence.
	Key string
	// Expect is the version that the record must have. 0 means that the key must be free: there is no record, or it is
	// free at the step's now.
	Expect int64
	// Effects are applied first. If one fails, the store undoes all effects of this step and still calls Settle.
	Effects []Effect
	// Settle decides what to store. It gets the results of the effects, or the error of one of them, and the record to
	// replace (nil if there was none). The store calls it within the transaction, possibly more than once, and possibly
	// for a step that it refuses in the end: it must have no side effects.
	Settle func(Applied) (Change, error)
}

// Applied is the argument of Settle.
type Applied struct {
	Previous *Record
	Results  Results // one for each effect
	Err      error   // error of the effect that failed; Results is then nil
}

// A Change holds the record and evidence that a step stores. Version and MAC are final.
type Change struct {
	Record   *Record // nil leaves the record as it is
	Evidence []evidence.Entry
}

// A Result is the result of a step.
type Result struct {
	// Stored is the record after the step; nil if the step had none.
	Stored *Record
	// Refused says that the record did not have the expected version. Stored is the current record, or nil if there is
	// none. Nothing of the step was stored.
	Refused bool
	// Err is the error of Settle, or the failure of an effect that Settle did not turn into a Change. Nothing of the step
	// was stored.
	Err error
	// Applied holds the results of the effects.
	Applied Results
}

// EvidenceQuery selects evidence of one tenant. A zero member does not narrow the selection.
type EvidenceQuery struct {
	Tenant    string
	Key       string
	CommandID string // of the original or of the submitted command
	Target    string // id of the object that commands are about
	After     int64  // sequence number, exclusive
	Limit     int
}
