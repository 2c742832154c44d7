package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A Handler executes a command. It may be called again for the same command after a crash or a transient error, never by two
// at once: what it does beside returning effects has to go through the Call's ledger, or carry the Call's key.
type Handler interface {
	Execute(ctx context.Context, c *Call) (*Outcome, error)
}

// HandlerFunc is a Handler.
type HandlerFunc func(ctx context.Context, c *Call) (*Outcome, error)

// Execute calls f.
func (f HandlerFunc) Execute(ctx context.Context, c *Call) (*Outcome, error) { return f(ctx, c) }

// An Outcome is what a handler has come to.
type Outcome struct {
	// Summary is one sentence for people.
	Summary string
	// Result is any JSON object; nil is {}.
	Result any
	// Effects are stored with the outcome, or not at all.
	Effects []Effect
	// After, when not nil, completes summary and result from what the effects returned, within their transaction. It computes
	// and does nothing else; a Rejection that it returns undoes the effects.
	After func(o *Outcome, results Results) error
	// Refused, when not nil, says what the failure of an effect means: a Rejection, a TransientError that has the handler run again,
	// or another error. Without it the command fails.
	Refused func(err error) error
	// Done is called once it is known whether the outcome was stored, with what its effects returned (nil when that answer was lost):
	// for example to wake the dispatcher. Whatever must survive a crash is an effect.
	Done func(stored bool, results Results)
}

// A Rejection is a refusal by the business, not a failure: it is the outcome (IDS IT-6).
type Rejection struct {
	Reason string // a stable code: "insufficient_funds"
	Detail string // a sentence
}

func (r *Rejection) Error() string { return r.Reason + ": " + r.Detail }

// Reject makes a Rejection.
func Reject(reason, detail string) error { return &Rejection{Reason: reason, Detail: detail} }

// A Failure is an error whose reason and detail may be shown. Of any other error the answer says only that the handler failed; the
// log says more.
type Failure struct {
	Reason string
	Detail string
	Err    error
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Detail }
func (f *Failure) Unwrap() error { return f.Err }

// A TransientError makes the executor try again, within the same execution (IDS IT-5).
type TransientError struct {
	Err   error
	After time.Duration // not before; 0: back-off decides
}

func (e *TransientError) Error() string { return e.Err.Error() }
func (e *TransientError) Unwrap() error { return e.Err }

// Transient marks an error as passing.
func Transient(err error) error { return &TransientError{Err: err} }

// ErrUnresolved is returned by a handler that cannot know what became of a call: the record then waits for reconciliation. A call that
// the ledger holds open is not made again before the provider was asked; a handler without one is run again after a while.
var ErrUnresolved = errors.New("what became of a call is not known")

// A StoredOutcome is what is kept of an outcome and replayed.
type StoredOutcome struct {
	Status  Status          `json:"status"`
	Summary string          `json:"summary,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Reason  string          `json:"reason,omitempty"` // of a rejection or failure
	Detail  string          `json:"detail,omitempty"`
	// SecretRedacted says that the first answer held more (IDS IT-14).
	SecretRedacted bool `json:"secret_redacted,omitempty"`
	// Masked are members of the result that the caller may not see.
	Masked []string `json:"masked,omitempty"`
}
