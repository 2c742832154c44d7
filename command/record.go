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

// Terminal reports whether the status is a last one.
func (s Status) Terminal() bool { return s != InProgress && s != "" }

// Substatus tells states within InProgress apart.
type Substatus string

// The substatuses.
const (
	Running              Substatus = ""
	AwaitingConfirmation Substatus = "awaiting_confirmation"
	NeedsReconciliation  Substatus = "needs_reconciliation"
)

// A Record is what is kept of a mutation under its key. It is stored whole and replaced whole.
type Record struct {
	Tenant     string
	Key        string // 64 hex digits
	KeyVersion int
	CommandID  string // the first command's, for ever
	Intent     Intent
	Class      Class
	Actor      string // who submitted it
	Principal  string // who is in the key: the actor, or the one acted for

	Fingerprint string // "sha256:" and hex, of the envelope without what is ephemeral
	Status      Status
	Substatus   Substatus
	OutcomeRef  string // "outcome:<command id>" once terminal
	Outcome     []byte // sealed StoredOutcome once terminal

	CreatedAt time.Time
	UpdatedAt time.Time // moves when the status does
	ExpiresAt time.Time // end of the window; zero: never. It counts once the record is terminal

	// While in progress: which execution owns it, until when no other may take it over, and which try this is.
	Owner      string
	LeaseUntil time.Time
	Try        int
	Envelope   []byte // sealed; so that another may go on. Removed at the end

	Confirmation *Confirmation
	Ledger       []LedgerEntry
	// Previous is the command that had this key in an earlier window.
	Previous string

	Version int64 // grows by one with every change
	MAC     []byte
}

// FreeAt reports whether the key may be given to a new command: its window is over, or it was not confirmed in time. A record in
// progress is not free, however old: it belongs to the executor that executes or recovers it (IDS-STO-12).
func (r *Record) FreeAt(now time.Time) bool {
	if r.Status.Terminal() {
		return !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
	}
	return r.Substatus == AwaitingConfirmation && !now.Before(r.LeaseUntil)
}

// next is a copy to be changed, one version on.
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

// A Confirmation is what is kept of a token: its hash, which is bound to command and key (IDS-CNF-2, -9).
type Confirmation struct {
	TokenHash   []byte    `json:"token_hash"`
	ExpiresAt   time.Time `json:"expires_at"`
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"`
	// StepUpHash is that of the approval which a second principal gave.
	StepUpHash []byte    `json:"step_up_hash,omitempty"`
	StepUpBy   string    `json:"step_up_by,omitempty"`
	StepUpTill time.Time `json:"step_up_till,omitzero"`
	// Makers are the actors that made the submitter's credential: none of them may approve.
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

// LedgerState is what is known of a call.
type LedgerState string

// The states. If an entry stays started after its executor died, the provider has to be asked.
const (
	CallStarted     LedgerState = "started"
	CallDone        LedgerState = "done"
	CallFailed      LedgerState = "failed" // the provider refused it: it had no effect
	CallCompensated LedgerState = "compensated"
)
