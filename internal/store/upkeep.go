package store

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Upkeep is housekeeping.
type Upkeep interface {
	// Sweep removes a bounded number of expired rows and reports whether more may be left. The engine calls it repeatedly with
	// pauses, so that it does not delay deliveries.
	Sweep(ctx context.Context, s Sweep) (*Swept, error)
	// SweepEnvironment takes one bounded step through the tenants of an environment that keeps its rows for a shorter time than the server. It
	// removes events, with their deliveries and attempts, whose deliveries have all ended, and dead letters. The attempts of a
	// dead letter go with the later of the two. The result says where the next step begins.
	SweepEnvironment(ctx context.Context, s EnvironmentSweep) (*EnvironmentSwept, error)
	// SealedRows pages through all values that are encrypted at rest, for re-encryption.
	SealedRows(ctx context.Context, after string, limit int) ([]SealedRow, error)
	// ReplaceSealed replaces a row's value if it is still row.Sealed, and fails with ErrConflict otherwise. It increments the
	// version of an endpoint or source, so that a concurrent update cannot restore the old value.
	ReplaceSealed(ctx context.Context, row SealedRow, sealed []byte) error
	// Ping reports whether the store can take writes.
	Ping(ctx context.Context) error
	// Verify reads the whole database and checks it for damage with the database's own means. It returns a description of the
	// check; an ErrDamaged error describes the damage. It may take minutes.
	Verify(ctx context.Context) (looked string, err error)
	// Describe describes this store for logs and for the doctor command, without credentials.
	Describe(ctx context.Context) (Description, error)
}

// Sweep says which rows have expired.
type Sweep struct {
	Now time.Time
	// EventsBefore removes events created before this time, with their deliveries. Pending deliveries end as exhausted with
	// reason retention-limit and leave a dead letter. An event with a claimed delivery is left for a later sweep. Complete
	// broadcasts go with the events of their time.
	EventsBefore      time.Time
	AttemptsBefore    time.Time
	DeadLettersBefore time.Time // dead before
	NoticesBefore     time.Time // acknowledged or not
	RejectionsBefore  time.Time
	UsageBefore       time.Time // of days before the one of this time
	// UnansweredBefore removes idempotency records without a response whose lease ended before this time. Until then a repeat
	// must find them, so that it does not create again what an interrupted request created. Zero removes none.
	UnansweredBefore time.Time
	Limit            int // approximate number of rows per call
}

// EnvironmentSweep says which rows of an environment have expired.
type EnvironmentSweep struct {
	Environment       godwit.EnvironmentID
	EventsBefore      time.Time // zero: keep all
	DeadLettersBefore time.Time // dead before; zero: keep all
	From              EnvironmentCursor
	Limit             int // approximate number of rows per call
}

// EnvironmentCursor is a position in an environment: a tenant, and the last of its events that were looked at. The zero cursor is the beginning.
type EnvironmentCursor struct {
	Tenant godwit.TenantID
	Event  godwit.EventID
}

// EnvironmentSwept counts the work of one step of SweepEnvironment.
type EnvironmentSwept struct {
	Swept                   // More: there is a next step
	Next  EnvironmentCursor // where it begins
}

// Swept counts the work of one sweep: rows removed, pending deliveries that ended as exhausted because of their age (Expired),
// and those that were Cancelled because their endpoint is deleted.
type Swept struct {
	Events, Deliveries, Attempts, DeadLetters, Records, Notices, Rejections, Allowances, Usage, Broadcasts, Sessions, Receipts, Expired, Cancelled int64
	More                                                                                                                                           bool
}

// SealedRow is an encrypted value in the store.
type SealedRow struct {
	Ref    string // opaque; pages sort by it
	Sealed []byte
	Bound  string // additional authenticated data of the seal: the text form of the endpoint's, secret's or source's id
}

// Description describes a store.
type Description struct {
	Backend       string // sqlite | postgres
	Version       string
	SchemaVersion int    // of the database
	ProgramSchema int    // schema version that the program was made for
	Location      string // path or host/database, never a password
	Durability    string // one line: what an acknowledgement guarantees
}

// Schema compares the schema of a database with the one that this program knows.
type Schema struct {
	Version int  `json:"version"` // of the database; 0 when it is empty
	Current int  `json:"current"` // of this program
	Usable  bool `json:"usable"`  // this program can work with it, after an upgrade if Version is less than Current
}
