package evidence

import "time"

// An Entry is a decision before it is linked into the chain. It holds ids and fingerprints, never args, tokens or secrets.
type Entry struct {
	Type     string    `json:"type"`
	At       time.Time `json:"at"`
	Decision string    `json:"decision,omitempty"` // first_seen | duplicate_replayed | conflict_rejected
	Executed bool      `json:"executed"`           // whether the execution happened in this submission

	CommandID   string `json:"command_id,omitempty"`           // the original's
	SubmittedID string `json:"submitted_command_id,omitempty"` // this submission's own
	PreviousID  string `json:"previous_command_id,omitempty"`  // the command that had the key in an earlier window
	Key         string `json:"idempotency_key,omitempty"`
	Command     string `json:"command,omitempty"` // "invoice.refund"
	Target      string `json:"target,omitempty"`  // id of the object that the command is about
	Actor       string `json:"actor_id,omitempty"`
	Channel     string `json:"channel,omitempty"`
	Session     string `json:"session_id,omitempty"` // of the browser that the actor used
	User        string `json:"user,omitempty"`       // name of the actor at an identity provider

	Fingerprint    string `json:"fingerprint,omitempty"`          // of the envelope submitted
	Stored         string `json:"original_fingerprint,omitempty"` // of the one under the key, where it differs
	OutcomeRef     string `json:"outcome_ref,omitempty"`
	OutcomeStatus  string `json:"outcome_status,omitempty"`
	OutcomeDigest  string `json:"outcome_digest,omitempty"` // "sha256:" and hex of the outcome as stored, before sealing
	Reason         string `json:"reason,omitempty"`
	EventID        string `json:"event_id,omitempty"`
	DeliveryID     string `json:"delivery_id,omitempty"`
	EndpointID     string `json:"endpoint_id,omitempty"`
	ResponseStatus int    `json:"response_status,omitempty"`

	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
}

// The types of entries.
const (
	Reserved    = "execution.reserved"    // a command reserved a key
	Confirmed   = "execution.confirmed"   // the command was confirmed
	ExecutedOK  = "execution.executed"    // it had its effect
	FailedType  = "execution.failed"      // it ended without its effect
	RejectedTy  = "execution.rejected"    // rejected by the handler, by a conflict, or before the reservation
	Compensated = "execution.compensated" // its effect was undone
	Recovered   = "execution.recovered"   // its executor died and another continued
	Unresolved  = "execution.unresolved"  // the result of a call is not known
	Observation = "observation.emitted"   // a repeat was answered, a read-only command ran
	Delivered   = "delivery.accepted"     // a receiver accepted an event that a command emitted
	Dead        = "delivery.dead"         // it will not be delivered
	Signed      = "checkpoint.signed"
)

// A Checkpoint is a signature over a link of the chain.
type Checkpoint struct {
	Seq       int64  `json:"seq"`
	Hash      string `json:"hash"`
	KeyID     string `json:"key_id"`
	Signature string `json:"signature"` // base64 of Ed25519 over SigningInput
}

// A Head is the last link of a chain.
type Head struct {
	Tenant string
	Seq    int64 // 0: the chain is empty
	Hash   string
	At     time.Time
}

// An Item is an entry in its place.
type Item struct {
	Tenant string `json:"tenant"`
	Seq    int64  `json:"seq"` // from 1, without gaps
	Prev   string `json:"prev_hash"`
	Entry
	Hash string `json:"hash"` // "sha256:" and hex, of the canonical form of all other members
}
