package command

import (
	"encoding/json"
	"time"
)

// An Envelope is a command as it is submitted.
type Envelope struct {
	CommandID        string          `json:"command_id"` // "cmd_" and a UUIDv7
	TenantID         string          `json:"tenant_id"`
	ActorID          string          `json:"actor_id"`
	EffectiveActorID string          `json:"effective_actor_id,omitempty"`
	Intent           Intent          `json:"intent"`
	Args             json.RawMessage `json:"args,omitempty"`
	Kind             string          `json:"command_kind,omitempty"`
	// Options are neither in the key nor ephemeral: two commands that differ only here are a conflict (IDS IT-1).
	Options json.RawMessage `json:"options,omitempty"`

	// These never enter the key nor the fingerprint (IDS-KEY-5).
	IssuedAt  time.Time `json:"issued_at"`
	MessageID string    `json:"message_id,omitempty"`
	Channel   string    `json:"channel,omitempty"`
	Nonce     string    `json:"nonce,omitempty"`

	// Key, when a client sends one, has to be the one that is derived (IDS-KEY-1).
	Key string `json:"idempotency_key,omitempty"`
}

// Intent says what is to be done to what.
type Intent struct {
	Entity string `json:"entity"`
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
}
