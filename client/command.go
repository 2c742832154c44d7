package client

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Commands submits commands. A command has its effect once, however often it is sent (RFC-WF-0010).
//
//	answer, err := c.Commands().Submit(ctx, client.Command{Entity: "endpoint", Action: "delete", Target: id})
//	if err == nil && answer.Awaits() {
//		answer, err = c.Commands().Confirm(ctx, answer.CommandID, answer.ConfirmationToken, "")
//	}
type Commands struct {
	c *Client

	mu  sync.Mutex
	who *CommandCaller
}

// Commands returns the client's commands API.
func (c *Client) Commands() *Commands { return &Commands{c: c} }

// A Command describes an operation.
type Command struct {
	// ID names this submission. Defaults to a new id. A repeat may use the same id or another.
	ID      string
	Entity  string
	Action  string
	Target  string
	Args    json.RawMessage // an object
	Options json.RawMessage // an object; not part of the command's key
	Channel string          // the way the command came, for evidence
}

// A CommandAnswer is the state of a command.
type CommandAnswer struct {
	Status            string          `json:"status"` // executed, rejected, failed, compensated; processing or in_progress
	Substatus         string          `json:"substatus,omitempty"`
	Decision          string          `json:"decision,omitempty"` // first_seen, duplicate_replayed
	Executed          bool            `json:"executed"`           // by this submission
	CommandID         string          `json:"command_id"`         // of the first submission
	Intent            CommandIntent   `json:"intent"`
	IdempotencyKey    string          `json:"idempotency_key"`
	Summary           string          `json:"summary,omitempty"`
	Outcome           *CommandOutcome `json:"outcome,omitempty"`
	CreatedAt         *time.Time      `json:"created_at,omitempty"`
	UpdatedAt         *time.Time      `json:"updated_at,omitempty"`
	StatusURL         string          `json:"status_url,omitempty"`
	EvidenceURL       string          `json:"evidence_url,omitempty"`
	ConfirmationToken string          `json:"confirmation_token,omitempty"` // shown only to the first submission
	ExpiresAt         *time.Time      `json:"expires_at,omitempty"`         // of the confirmation
	StepUpURL         string          `json:"step_up_url,omitempty"`        // set if a second key must approve
	// Affects is what the command would change if it were confirmed now, where the server can tell.
	Affects *CommandAffects `json:"affects,omitempty"`
	// Raw is the server's answer.
	Raw json.RawMessage `json:"-"`
}

// CommandAffects is what a command that awaits confirmation would change.
type CommandAffects struct {
	DeadLetters int  `json:"dead_letters"` // how many would go
	More        bool `json:"more"`         // there may be more that match
	Endpoints   []struct {
		ID          string `json:"id"`
		DeadLetters int    `json:"dead_letters"`
	} `json:"endpoints"`
}

// A CommandIntent names the operation and its target.
type CommandIntent struct {
	Entity string `json:"entity"`
	Action string `json:"action"`
	Target string `json:"target,omitempty"`
}

// A CommandOutcome is the result that every repeat gets.
type CommandOutcome struct {
	Status         string          `json:"status"`
	Summary        string          `json:"summary,omitempty"`
	Result         json.RawMessage `json:"result,omitempty"`
	Reason         string          `json:"reason,omitempty"` // of a rejection or failure
	Detail         string          `json:"detail,omitempty"`
	SecretRedacted bool            `json:"secret_redacted,omitempty"`
}

// Awaits reports whether the command waits for a confirmation and has done nothing.
func (a *CommandAnswer) Awaits() bool { return a.Substatus == "awaiting_confirmation" }

// Ended reports whether there is an outcome.
func (a *CommandAnswer) Ended() bool { return a.Outcome != nil }

// A CommandCaller is the identity that the server derives from the API key.
type CommandCaller struct {
	TenantID string   `json:"tenant_id"`
	ActorID  string   `json:"actor_id"`
	Scopes   []string `json:"scopes"`
}

// A CommandDeclaration is a command's entry in the registry.
type CommandDeclaration struct {
	Entity               string          `json:"entity"`
	Action               string          `json:"action"`
	Description          string          `json:"description"`
	Class                string          `json:"class"`
	TTL                  string          `json:"ttl,omitempty"`
	ArgsSchema           json.RawMessage `json:"args_schema,omitempty"`
	Scopes               []string        `json:"scopes"`
	TargetRequired       bool            `json:"target_required,omitempty"`
	RequiresConfirmation bool            `json:"requires_confirmation,omitempty"`
	RequiresStepUp       bool            `json:"requires_step_up,omitempty"`
}

// Name is entity and action: "endpoint.delete".
func (d *CommandDeclaration) Name() string { return d.Entity + "." + d.Action }

// A CommandRegistry lists the commands, and the caller's identity.
type CommandRegistry struct {
	Commands []CommandDeclaration `json:"commands"`
	Caller   CommandCaller        `json:"caller"`
	Raw      json.RawMessage      `json:"-"`
}

// Registry returns the commands that the server knows.
func (c *Commands) Registry(ctx context.Context) (*CommandRegistry, error) {
	var r CommandRegistry
	if err := c.c.do(ctx, http.MethodGet, "/ids/v1/registry", nil, nil, &r.Raw); err != nil {
		return nil, reason(err)
	}
	if err := json.Unmarshal(r.Raw, &r); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.who = &r.Caller
	return &r, nil
}

func (c *Commands) caller(ctx context.Context) (*CommandCaller, error) {
	c.mu.Lock()
	who := c.who
	c.mu.Unlock()
	if who != nil {
		return who, nil
	}
	r, err := c.Registry(ctx)
	if err != nil {
		return nil, err
	}
	return &r.Caller, nil
}

// Submit executes a command, or returns the state of an earlier submission. A rejection and a failure are answers; an *Error
// says that the command was not accepted.
func (c *Commands) Submit(ctx context.Context, command Command) (*CommandAnswer, error) {
	who, err := c.caller(ctx)
	if err != nil {
		return nil, err
	}
	if command.ID == "" {
		command.ID = newCommandID(c.c.now())
	}
	body, err := json.Marshal(struct {
		CommandID string          `json:"command_id"`
		TenantID  string          `json:"tenant_id"`
		ActorID   string          `json:"actor_id"`
		Intent    CommandIntent   `json:"intent"`
		Args      json.RawMessage `json:"args,omitempty"`
		Options   json.RawMessage `json:"options,omitempty"`
		IssuedAt  time.Time       `json:"issued_at"`
		Channel   string          `json:"channel,omitempty"`
	}{command.ID, who.TenantID, who.ActorID, CommandIntent{command.Entity, command.Action, command.Target}, command.Args, command.Options,
		c.c.now().UTC().Truncate(time.Millisecond), command.Channel})
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, http.MethodPost, "", body)
}

// Confirm lets a command proceed. stepUp is the token of the second key's approval, if one is needed.
func (c *Commands) Confirm(ctx context.Context, commandID, token, stepUp string) (*CommandAnswer, error) {
	body, err := json.Marshal(struct {
		Token  string `json:"confirmation_token"`
		StepUp string `json:"step_up_token,omitempty"`
	}{token, stepUp})
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, http.MethodPost, "/"+url.PathEscape(commandID)+"/confirm", body)
}

// A CommandApproval is the approval of a second key.
type CommandApproval struct {
	CommandID string    `json:"command_id"`
	Token     string    `json:"step_up_token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// StepUp approves a command that another key has submitted.
func (c *Commands) StepUp(ctx context.Context, commandID string) (*CommandApproval, error) {
	var a CommandApproval
	// Not repeated: each call makes another token, and only the last is valid.
	err := c.c.once(ctx, http.MethodPost, "/ids/v1/commands/"+url.PathEscape(commandID)+"/step-up", nil, []byte("{}"), &a)
	if err != nil {
		return nil, reason(err)
	}
	return &a, nil
}

// Status returns the state of a command.
func (c *Commands) Status(ctx context.Context, commandID string) (*CommandAnswer, error) {
	return c.answer(ctx, http.MethodGet, "/"+url.PathEscape(commandID), nil)
}

func (c *Commands) answer(ctx context.Context, method, path string, body []byte) (*CommandAnswer, error) {
	var a CommandAnswer
	err := c.c.do(ctx, method, "/ids/v1/commands"+path, nil, body, &a.Raw)
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusUnprocessableEntity && json.Unmarshal(e.body, &a) == nil && a.Outcome != nil {
		a.Raw, err = e.body, nil // the command was accepted, and rejected by its handler
	}
	if err != nil {
		return nil, reason(err)
	}
	return &a, json.Unmarshal(a.Raw, &a)
}

// reason reads why the executor refused a command.
func reason(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != "" {
		return err
	}
	var r struct {
		Reason string `json:"reason"`
		Detail string `json:"detail"`
		ID     string `json:"request_id"`
	}
	if json.Unmarshal(e.body, &r) == nil && r.Reason != "" {
		e.Code, e.Detail, e.RequestID = r.Reason, r.Detail, r.ID
	}
	return err
}

// newCommandID makes "cmd_" and a UUID, version 7.
func newCommandID(now time.Time) string {
	var b [16]byte
	rand.Read(b[:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(b[:6], ms[2:])
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	t := hex.EncodeToString(b[:])
	return "cmd_" + t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}
