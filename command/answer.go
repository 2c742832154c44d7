package command

import "time"

// Decision is what was decided about a submission (IDS-EVD-4).
type Decision string

// The decisions.
const (
	FirstSeen         Decision = "first_seen"
	DuplicateReplayed Decision = "duplicate_replayed"
	ConflictRejected  Decision = "conflict_rejected"
)

// An Answer is what a submitter is told.
type Answer struct {
	Decision  Decision
	CommandID string // the first command's
	Intent    Intent
	Key       string
	// KeyVersion names the rules by which the key was derived, Fingerprint is the envelope's.
	KeyVersion  int
	Fingerprint string
	// Executed reports whether this submission was the one that executed.
	Executed  bool
	Status    Status
	Substatus Substatus
	// Outcome is nil while in progress.
	Outcome *StoredOutcome
	// Value is Outcome.Result as the handler returned it, for code in this program. It is not masked, and nil unless this submission
	// executed the command.
	Value      any
	OutcomeRef string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ExpiresAt  time.Time // end of the window; zero: never
	// Token is shown once, to the submission that has to be confirmed.
	Token       string
	TokenExpiry time.Time
	StepUp      bool // a second principal has to approve, too
}

// A Caller is who submits.
type Caller struct {
	Tenant string
	Actor  string
	Scopes []string
	// MayActFor allows an effective actor (IDS-KEY-11).
	MayActFor bool
	// Confirmed says that the way the command came by is its confirmation: a deletion by an API that knows no second step.
	// Only this program's own code sets it.
	Confirmed bool
	// Since is when the caller's credential was made, and Makers are the actors that made it, directly or through others. Approve
	// asks for them: who made a credential can act by it. Zero values say that nothing is known.
	Since  time.Time
	Makers []string
}

// A Refusal is a submission that was not taken: nothing is kept under its key.
type Refusal struct {
	Code   RefusalCode
	Field  string // member of the envelope at fault
	Detail string
	// RetryAfter goes with RateLimited.
	RetryAfter time.Duration
	// Original is the record that a conflict is with.
	CommandID, Key string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

// RefusalCode is stable.
type RefusalCode string

// The codes.
const (
	Malformed            RefusalCode = "malformed_envelope"       // 422
	InvalidArgs          RefusalCode = "invalid_args"             // 422
	UnknownCommand       RefusalCode = "unknown_command"          // 422
	KeyMismatch          RefusalCode = "idempotency_key_mismatch" // 422
	Forbidden            RefusalCode = "forbidden"                // 403
	Conflict             RefusalCode = "idempotency_conflict"     // 409
	RateLimited          RefusalCode = "rate_limited"             // 429
	NotFound             RefusalCode = "command_not_found"        // 404
	TokenInvalid         RefusalCode = "confirmation_invalid"     // 403
	TokenExpired         RefusalCode = "confirmation_expired"     // 410
	StepUpRequired       RefusalCode = "step_up_required"         // 403
	NotAwaiting          RefusalCode = "not_awaiting_confirmation"
	StoreIntegrity       RefusalCode = "store_integrity" // 500: a record was tampered with
	SelfApprovalRefused  RefusalCode = "self_approval"   // 403: step-up by the submitter
	ExecutorStopping     RefusalCode = "stopping"        // 503
	ReservationUncertain RefusalCode = "store_unavailable"
)
