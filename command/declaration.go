package command

import (
	"encoding/json"
	"time"
)

// Class says how repeats of a command are treated (IDS-CLS).
type Class string

// The classes.
const (
	I0 Class = "I0" // reads only: runs every time, leaves no record
	I1 Class = "I1" // strict: effects in the transaction of the outcome
	I2 Class = "I2" // as I1, within a declared window
	I3 Class = "I3" // calls an external system: shielded
)

// Strategy is how the calls of an I3 command are kept from happening twice (IDS-SHD).
type Strategy string

// The strategies.
const (
	S1 Strategy = "S1" // the provider gets an idempotency key, the same on every try
	S2 Strategy = "S2" // transactional outbox: the effects are events, sent by one dispatcher
	S3 Strategy = "S3" // ledger: what was started without a known result is never called again blindly
	S4 Strategy = "S4" // reconciliation with the provider, and compensation of what happened twice
)

// A Declaration is what the registry says of a command. Its JSON form is what declaration files hold and what the registry shows.
type Declaration struct {
	Entity      string `json:"entity"`
	Action      string `json:"action"`
	Description string `json:"description"`
	// Mutates is true unless the class is I0.
	Mutates *bool `json:"mutates,omitempty"`
	Class   Class `json:"class,omitempty"` // empty on a mutation: I1 (IDS-CLS-8)
	// Justification is required of a mutation that is not I1 (IDS-CLS-9).
	Justification string `json:"class_justification,omitempty"`
	Critical      bool   `json:"critical,omitempty"`
	// Window is how long a repeat is recognised, from the first submission. Default 30 days; I2 has to name one.
	Window Window `json:"ttl,omitempty"`
	// ShortWindow allows a critical command a window under 24 hours (IDS-STO-9).
	ShortWindow bool `json:"allow_short_ttl,omitempty"`
	// Args is a JSON Schema (2020-12). Beside its own keywords, annotations say how args are normalised before they enter
	// the key: "default" fills in, "x-ephemeral": true drops a member, "x-set": true makes the order of an array meaningless,
	// "x-fold": "case" | "space" | "case space" folds a string.
	Args json.RawMessage `json:"args_schema,omitempty"`
	// Scopes are what the caller needs, all of them.
	Scopes []string `json:"scopes"`
	// TargetRequired refuses an intent without a target.
	TargetRequired bool `json:"target_required,omitempty"`
	// BindingPrincipal "effective_actor_id" puts the principal acted for into the key, in place of the actor (IDS-KEY-9).
	BindingPrincipal string `json:"binding_principal,omitempty"`

	Confirmation bool `json:"requires_confirmation,omitempty"`
	// StepUp also asks for the approval of a second principal.
	StepUp bool `json:"requires_step_up,omitempty"`

	Shielding []Strategy `json:"shielding,omitempty"` // required of I3
	// Masked are members of the outcome that only callers with a scope see.
	Masked []Mask `json:"masked,omitempty"`
	// Secret are members of the outcome that the first answer alone shows; nothing keeps them.
	Secret []string `json:"secret,omitempty"`

	// Tenant limits the command to one tenant; empty: all.
	Tenant string `json:"tenant,omitempty"`
	// Remote names the tenant's own service that executes it.
	Remote *Remote `json:"remote,omitempty"`
}

// A Mask hides a member of an outcome.
type Mask struct {
	Member string `json:"member"` // a top-level member of the result
	Scope  string `json:"scope"`
}

// Remote is where a command is executed that this program has no handler for.
type Remote struct {
	Endpoint string `json:"endpoint"` // id of the tenant's endpoint
	// Timeout is how long tries go on. Default 60 s.
	Timeout Window `json:"timeout,omitempty"`
}

// Name is entity and action: "endpoint.delete".
func (d *Declaration) Name() string { return d.Entity + "." + d.Action }

// ReadOnly reports whether it is I0.
func (d *Declaration) ReadOnly() bool { return d.Class == I0 }

// Window is a length of time, written as Go writes it ("10m", "24h") or in days ("30d"); Forever is "never".
type Window time.Duration

// Forever is the window that does not end.
const Forever Window = -1
