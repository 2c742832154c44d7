package command

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
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

	direct *direct // set by Direct
}

// direct is what an envelope holds that never was JSON.
type direct struct {
	args map[string]any
	plan Handler
}

// Direct makes the envelope one that a program submits to an executor of its own, without a way through JSON. Args, which takes the
// place of the member Args, holds maps with string keys, lists, strings, integers, floating-point numbers, booleans and nil. Plan,
// unless it is nil, runs in place of the registered handler. Key, fingerprint, record and evidence are those of the same command in
// JSON. If another process has to go on with the command, it runs the registered handler with the recorded args.
func (e *Envelope) Direct(args map[string]any, plan Handler) { e.direct = &direct{args, plan} }

// Intent says what is to be done to what.
type Intent struct {
	Entity string `json:"entity"`
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
}

// NewID mints the id of a command: "cmd_" and a UUIDv7 of the given time. A repeat may have the same id or another: the key tells.
func NewID(now time.Time) string {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(max(now.UnixMilli(), 0)))[2:], random(10)...)
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("cmd_%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
