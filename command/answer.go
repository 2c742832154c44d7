package command

import (
	"slices"
	"time"
)

// Decision is the executor's decision about a submission (IDS-EVD-4).
type Decision string

// The decisions.
const (
	FirstSeen         Decision = "first_seen"
	DuplicateReplayed Decision = "duplicate_replayed"
	ConflictRejected  Decision = "conflict_rejected"
)

// An Answer is the executor's reply to a submitter.
type Answer struct {
	Decision  Decision
	CommandID string // id of the first command under the key
	Intent    Intent
	Key       string
	// KeyVersion names the version of the rules that derived the key. Fingerprint is that of the envelope.
	KeyVersion  int
	Fingerprint string
	// Executed reports whether this submission executed the command.
	Executed  bool
	Status    Status
	Substatus Substatus
	// Outcome is nil while in progress.
	Outcome *StoredOutcome
	// Value is Outcome.Result as the handler returned it, for code in this program. It is not masked. It is nil unless
	// this submission executed the command.
	Value      any
	OutcomeRef string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ExpiresAt  time.Time // end of the window; zero: never
	// Token is shown once, to the submitter of a command that needs confirmation.
	Token       string
	TokenExpiry time.Time
	StepUp      bool // a second principal must also approve
}

// A Caller is the authenticated submitter of a command.
type Caller struct {
	Tenant string
	Actor  string
	Scopes []string
	// Session and User name the browser session and the user behind the caller in evidence. They may be empty.
	Session, User string
	// MayActFor allows the caller to name an effective actor (IDS-KEY-11).
	MayActFor bool
	// Confirmed says that the request itself counts as confirmation, as for a deletion through an API without a second
	// step. Only this program's own code sets it.
	Confirmed bool
	// Since is when the caller's credential was made. Makers are the actors that made it, directly or through others.
	// Approve needs both, because the maker of a credential can act with it. Zero values mean unknown.
	Since  time.Time
	Makers []string
}

// A Refusal rejects a submission. Nothing is stored under its key.
type Refusal struct {
	Code   RefusalCode
	Field  string // member of the envelope that is wrong
	Detail string
	// RetryAfter is set when Code is RateLimited.
	RetryAfter time.Duration
	// CommandID and Key name the record that a Conflict is with.
	CommandID, Key string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

// RefusalCode is a stable code for the reason of a refusal.
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

// answer builds the answer from a record and omits what the caller may not see.
func (x *records) answer(rec *Record, c *Registered, caller Caller, d Decision) (*Answer, error) {
	a := standing(rec, c, d)
	if !rec.Status.Terminal() {
		return a, nil
	}
	var stored StoredOutcome
	if err := x.open(rec.Outcome, outcomeBound(rec.Tenant, rec.Key), &stored); err != nil {
		return nil, x.trust(&Record{Tenant: rec.Tenant, Key: rec.Key, CommandID: rec.CommandID})
	}
	a.Outcome = mask(&stored, c, caller)
	return a, nil
}

// standing returns an answer without the outcome.
func standing(rec *Record, c *Registered, d Decision) *Answer {
	a := &Answer{
		Decision: d, CommandID: rec.CommandID, Intent: rec.Intent, Key: rec.Key, KeyVersion: rec.KeyVersion, Fingerprint: rec.Fingerprint,
		Status: rec.Status, Substatus: rec.Substatus, OutcomeRef: rec.OutcomeRef,
		CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt, ExpiresAt: rec.ExpiresAt,
	}
	if rec.Substatus == AwaitingConfirmation {
		a.TokenExpiry, a.StepUp = rec.Confirmation.ExpiresAt, c.StepUp
	}
	return a
}

// mask hides the members that the caller may not see (IDS-SEC-4).
func mask(o *StoredOutcome, c *Registered, caller Caller) *StoredOutcome {
	masked := *o
	for _, m := range c.Masked {
		if !slices.Contains(caller.Scopes, m.Scope) {
			masked.Result = without(masked.Result, m.Member)
			masked.Masked = append(slices.Clone(masked.Masked), m.Member)
		}
	}
	return &masked
}
