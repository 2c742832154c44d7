package receiver

import (
	"context"
	"net/http"
	"time"
)

// A Store is the memory of a receiver. All processes of the receiver share it; every method is one atomic step. Times are the
// receiver's: keep the clocks of its processes synchronised.
//
//	Reserve ─► Reserved: this caller holds the key until its lease ends
//	   │          ├ Complete: the outcome is kept for the window, and every repeat gets it
//	   │          ├ Release:  the key is free, a repeat is a first request
//	   │          └ neither (the holder died): free when the lease ends
//	   ├──────► InProgress: another caller holds it
//	   └──────► Completed, with the outcome
//
// Package storetest has the tests that every store passes.
type Store interface {
	// Reserve takes a key that is new, released or expired, or returns its state. It does not wait for a holder.
	Reserve(ctx context.Context, r Reserve) (Reservation, error)
	// Complete keeps the outcome. It reports false, and keeps nothing, if the holder no longer has the key.
	Complete(ctx context.Context, h Hold, c Completion) (bool, error)
	// Release frees the key, if the holder still has it and has not completed it.
	Release(ctx context.Context, h Hold) error
	// Remember keeps a value until a time and reports whether it was new.
	Remember(ctx context.Context, value Digest, until, now time.Time) (bool, error)
	// Purge drops at most limit expired entries and returns how many it dropped. Stores that expire entries by themselves
	// return 0.
	Purge(ctx context.Context, now time.Time, limit int) (int, error)
}

// A Hold is a key with the token of its holder.
type Hold struct {
	Scope Digest
	// Fingerprint of the payload; zero if payloads are not compared.
	Fingerprint Digest
	// Token belongs to one holder. It becomes invalid when its lease has ended and another holder has taken the key.
	Token string
}

// Reserve asks for a key.
type Reserve struct {
	Hold
	Now time.Time
	// LeaseUntil is when the key is free again unless the holder completes it.
	LeaseUntil time.Time
}

// State of a key.
type State int

// The states that Reserve returns.
const (
	Reserved   State = iota + 1 // by this call
	InProgress                  // held by another caller
	Completed
)

// A Reservation is what Reserve found. Fingerprint and Outcome are those of the key's holder.
type Reservation struct {
	State       State
	Fingerprint Digest
	Outcome     Outcome // of a completed key
}

// An Outcome is an answer that every repeat gets.
type Outcome struct {
	Status int
	Header http.Header
	// Body is nil if it was too long to be kept.
	Body []byte
}

// A Completion is the outcome of a key, and the time until which it is kept.
type Completion struct {
	Outcome
	Now   time.Time
	Until time.Time
}

// A Transactor is a store that can commit a handler's effect together with the completion of its key.
type Transactor interface {
	Store
	// Begin starts a transaction for a holder. It fails with [ErrLeaseLost] if the key is no longer the holder's.
	Begin(ctx context.Context, h Hold) (Tx, error)
}

// A Tx is a transaction that commits with the completion of a key, or has no effect.
type Tx interface {
	// Context passes the transaction to a handler, which gets it from the store's own package.
	Context(ctx context.Context) context.Context
	// Complete keeps the outcome and commits. It reports false, and has rolled back, if the holder no longer has the key.
	Complete(ctx context.Context, c Completion) (bool, error)
	// Rollback undoes everything. After Complete it does nothing.
	Rollback(ctx context.Context) error
}
