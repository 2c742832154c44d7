package command

import (
	"slices"
	"time"
)

// Status is the state of a record; there are no others (IDS-STO-4).
type Status string

// The statuses.
const (
	InProgress  Status = "in_progress"
	Executed    Status = "executed"
	Failed      Status = "failed"
	Rejected    Status = "rejected"
	Compensated Status = "compensated"
)

// Terminal reports whether the status is final.
func (s Status) Terminal() bool { return s != InProgress && s != "" }

// Substatus distinguishes states within InProgress.
type Substatus string

// The substatuses.
const (
	Running              Substatus = ""
	AwaitingConfirmation Substatus = "awaiting_confirmation"
	NeedsReconciliation  Substatus = "needs_reconciliation"
)

// A Record is the stored state of a mutation under its key. Stores replace it as a whole.
type Record struct {
	Tenant     string
	Key        string // 64 hex digits
	KeyVersion int
	CommandID  string // id of the first command under the key; it never changes
	Intent     Intent
	Class      Class
	Actor      string // actor that submitted it
	Principal  string // principal in the key: the actor, or the effective actor

	Fingerprint string // "sha256:" and hex, of the envelope without ephemeral members
	Status      Status
	Substatus   Substatus
	OutcomeRef  string // "outcome:<command id>" once terminal
	Outcome     []byte // sealed StoredOutcome once terminal

	CreatedAt time.Time
	UpdatedAt time.Time // time of the last status change
	ExpiresAt time.Time // end of the window once the record is terminal; zero: never

	// While in progress: the execution that owns the record, until when no other may take it over, and the number of the
	// try.
	Owner      string
	LeaseUntil time.Time
	Try        int
	Envelope   []byte // sealed, so that another executor can continue; removed at the end

	Confirmation *Confirmation
	Ledger       []LedgerEntry
	// Previous is the command that had this key in an earlier window.
	Previous string

	Version int64 // begins with the time of the reservation in microseconds, and grows by one with every change
	MAC     []byte
}

// FreeAt reports whether a new command may use the key: the window has ended, or the command was not confirmed in time. A
// record in progress is never free: it belongs to the executor that executes or recovers it (IDS-STO-12).
func (r *Record) FreeAt(now time.Time) bool {
	if r.Status.Terminal() {
		return !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
	}
	return r.Substatus == AwaitingConfirmation && !now.Before(r.LeaseUntil)
}

// next returns a copy with the next version, to be changed.
func (r *Record) next() *Record {
	n := *r
	n.Ledger = slices.Clone(r.Ledger)
	if r.Confirmation != nil {
		c := *r.Confirmation
		n.Confirmation = &c
	}
	n.Version++
	return &n
}

// A Confirmation is the stored form of a token: its hash, which is bound to command and key (IDS-CNF-2, -9).
type Confirmation struct {
	TokenHash   []byte    `json:"token_hash"`
	ExpiresAt   time.Time `json:"expires_at"`
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
	// StepUpHash is the token hash of the approval that a second principal gave.
	StepUpHash []byte    `json:"step_up_hash,omitempty"`
	StepUpBy   string    `json:"step_up_by,omitempty"`
	StepUpTill time.Time `json:"step_up_till,omitzero"`
	// Makers are the actors that made the submitter's credential. None of them may approve.
	Makers []string `json:"makers,omitempty"`
}

// A LedgerEntry is one call to an external system. It is stored before the call is made (IDS-SHD-5).
type LedgerEntry struct {
	Name      string      `json:"name"`
	State     LedgerState `json:"state"`
	StartedAt time.Time   `json:"started_at"`
	EndedAt   time.Time   `json:"ended_at,omitzero"`
	Result    []byte      `json:"result,omitempty"` // JSON, to the byte
}

// LedgerState is the known state of a call.
type LedgerState string

// The states. If an entry is still started after its executor died, the executor that takes over asks the provider.
const (
	CallStarted     LedgerState = "started"
	CallDone        LedgerState = "done"
	CallFailed      LedgerState = "failed" // the provider refused the call: it had no effect
	CallCompensated LedgerState = "compensated"
)

func (r *Record) id() RecordID { return RecordID{r.Tenant, r.Key} }
