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
	// Options are part of the fingerprint but not of the key: two commands that differ only here conflict (IDS IT-1).
	Options json.RawMessage `json:"options,omitempty"`

	// The following members enter neither the key nor the fingerprint (IDS-KEY-5).
	IssuedAt  time.Time `json:"issued_at"`
	MessageID string    `json:"message_id,omitempty"`
	Channel   string    `json:"channel,omitempty"`
	Nonce     string    `json:"nonce,omitempty"`

	// Key, if the client sends one, must equal the derived key (IDS-KEY-1).
	Key string `json:"idempotency_key,omitempty"`

	direct *direct // set by Direct
}

// direct holds the args and handler of an envelope that was not parsed from JSON.
type direct struct {
	args map[string]any
	plan Handler
}

// Direct marks an envelope that a program submits to its own executor without encoding it as JSON. Args replaces the
// member Args. It holds maps with string keys, lists, strings, integers, floating-point numbers, booleans and nil. Plan,
// unless it is nil, runs instead of the registered handler. Key, fingerprint, record and evidence are those of the same
// command in JSON. If another process has to continue the command, it runs the registered handler with the recorded args.
func (e *Envelope) Direct(args map[string]any, plan Handler) { e.direct = &direct{args, plan} }

// Intent names the action of a command and its target.
type Intent struct {
	Entity string `json:"entity"`
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
}

// NewID mints the id of a command: "cmd_" and a UUIDv7 of the given time. A repeat may have the same id or another one;
// the key identifies it.
func NewID(now time.Time) string {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(max(now.UnixMilli(), 0)))[2:], random(10)...)
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("cmd_%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
