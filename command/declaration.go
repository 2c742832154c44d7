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
	I2 Class = "I2" // like I1, within a declared window
	I3 Class = "I3" // calls an external system: shielded
)

// Strategy prevents the calls of an I3 command from happening twice (IDS-SHD).
type Strategy string

// The strategies.
const (
	S1 Strategy = "S1" // the provider gets an idempotency key, which is the same on every try
	S2 Strategy = "S2" // transactional outbox: the effects are events, sent by one dispatcher
	S3 Strategy = "S3" // ledger: a started call without a known result is never repeated without asking the provider
	S4 Strategy = "S4" // reconciliation with the provider, and compensation of calls that happened twice
)

// A Declaration describes a command to the registry. Declaration files and the registry's listing use its JSON form.
type Declaration struct {
	Entity      string `json:"entity"`
	Action      string `json:"action"`
	Description string `json:"description"`
	// Mutates is true unless the class is I0.
	Mutates *bool `json:"mutates,omitempty"`
	Class   Class `json:"class,omitempty"` // empty on a mutation: I1 (IDS-CLS-8)
	// Justification is required for a mutation whose class is not I1 (IDS-CLS-9).
	Justification string `json:"class_justification,omitempty"`
	Critical      bool   `json:"critical,omitempty"`
	// Window is how long a repeat is recognised, counted from the first submission. Defaults to 30 days; an I2 command
	// must set it.
	Window Window `json:"ttl,omitempty"`
	// ShortWindow allows a critical command a window under 24 hours (IDS-STO-9).
	ShortWindow bool `json:"allow_short_ttl,omitempty"`
	// Args is a JSON Schema (2020-12). Its annotations say how args are normalised before the key is derived: "default"
	// fills in a missing member, "x-ephemeral": true drops a member, "x-set": true ignores the order of an array,
	// "x-fold": "case" | "space" | "case space" folds a string.
	Args json.RawMessage `json:"args_schema,omitempty"`
	// Scopes lists the scopes that the caller must have, all of them.
	Scopes []string `json:"scopes"`
	// TargetRequired refuses an intent that has no target.
	TargetRequired bool `json:"target_required,omitempty"`
	// BindingPrincipal "effective_actor_id" puts the effective actor into the key instead of the actor (IDS-KEY-9).
	BindingPrincipal string `json:"binding_principal,omitempty"`

	Confirmation bool `json:"requires_confirmation,omitempty"`
	// StepUp also requires the approval of a second principal.
	StepUp bool `json:"requires_step_up,omitempty"`

	Shielding []Strategy `json:"shielding,omitempty"` // required for I3
	// Masked lists members of the outcome that only callers with a scope see.
	Masked []Mask `json:"masked,omitempty"`
	// Secret lists members of the outcome that only the first answer shows. They are never stored.
	Secret []string `json:"secret,omitempty"`

	// Tenant limits the command to one tenant; empty means all tenants.
	Tenant string `json:"tenant,omitempty"`
	// Remote names the service of the tenant that executes the command.
	Remote *Remote `json:"remote,omitempty"`
}

// A Mask hides a member of an outcome.
type Mask struct {
	Member string `json:"member"` // a top-level member of the result
	Scope  string `json:"scope"`
}

// Remote names the endpoint that executes a command which has no handler in this program.
type Remote struct {
	Endpoint string `json:"endpoint"` // id of the tenant's endpoint
	// Timeout limits the time for all tries. Defaults to 60 s.
	Timeout Window `json:"timeout,omitempty"`
}

// Name joins entity and action: "endpoint.delete".
func (d *Declaration) Name() string { return d.Entity + "." + d.Action }

// ReadOnly reports whether the class is I0.
func (d *Declaration) ReadOnly() bool { return d.Class == I0 }

// Window is a length of time, written as in Go ("10m", "24h") or in days ("30d"). Forever is written "never".
type Window time.Duration

// Forever is the window that does not end.
const Forever Window = -1
