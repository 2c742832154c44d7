package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A Handler executes a command. The executor may call it again for the same command after a crash or a transient error,
// but never concurrently. Apart from its returned effects, every external action must go through the Call's ledger or
// carry the Call's key.
type Handler interface {
	Execute(ctx context.Context, c *Call) (*Outcome, error)
}

// HandlerFunc is a Handler.
type HandlerFunc func(ctx context.Context, c *Call) (*Outcome, error)

// Execute calls f.
func (f HandlerFunc) Execute(ctx context.Context, c *Call) (*Outcome, error) { return f(ctx, c) }

// An Outcome is the result of a handler.
type Outcome struct {
	// Summary is one sentence for people.
	Summary string
	// Result encodes as a JSON object; nil becomes {}.
	Result any
	// Effects are stored together with the outcome, or not at all.
	Effects []Effect
	// After, if not nil, completes summary and result from the results of the effects, within their transaction. It must
	// have no side effects. A Rejection that it returns undoes the effects.
	After func(o *Outcome, results Results) error
	// Refused, if not nil, interprets the failure of an effect. It returns a Rejection, a TransientError to run the
	// handler again, or another error. Without it the command fails.
	Refused func(err error) error
	// Done is called once it is known whether the outcome was stored, with the results of the effects (nil if the store's
	// answer was lost), for example to wake the dispatcher. Work that must survive a crash belongs in an effect.
	Done func(stored bool, results Results)
}

// A Rejection is a refusal for business reasons, not a failure. It is the outcome of the command (IDS IT-6).
type Rejection struct {
	Reason string // a stable code: "insufficient_funds"
	Detail string // a sentence
}

func (r *Rejection) Error() string { return r.Reason + ": " + r.Detail }

// Reject makes a Rejection.
func Reject(reason, detail string) error { return &Rejection{Reason: reason, Detail: detail} }

// A Failure is an error whose reason and detail may be shown. For any other error the answer says only that the handler
// failed; the log has the details.
type Failure struct {
	Reason string
	Detail string
	Err    error
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Detail }
func (f *Failure) Unwrap() error { return f.Err }

// A TransientError makes the executor run the handler again within the same execution (IDS IT-5).
type TransientError struct {
	Err   error
	After time.Duration // earliest time of the next try; 0 leaves it to the back-off
}

func (e *TransientError) Error() string { return e.Err.Error() }
func (e *TransientError) Unwrap() error { return e.Err }

// Transient marks an error as temporary.
func Transient(err error) error { return &TransientError{Err: err} }

// ErrUnresolved is returned by a handler that cannot know the result of a call. The record then waits for reconciliation.
// A call that the ledger holds open is not made again before the provider was asked; a handler without open calls runs
// again after a while.
var ErrUnresolved = errors.New("what became of a call is not known")

// A StoredOutcome is the part of an outcome that is stored and replayed.
type StoredOutcome struct {
	Status  Status          `json:"status"`
	Summary string          `json:"summary,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Reason  string          `json:"reason,omitempty"` // reason of a rejection or failure
	Detail  string          `json:"detail,omitempty"`
	// SecretRedacted says that the first answer showed secret members (IDS IT-14).
	SecretRedacted bool `json:"secret_redacted,omitempty"`
	// Masked lists members of the result that the caller may not see.
	Masked []string `json:"masked,omitempty"`
}
