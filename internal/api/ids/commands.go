package ids

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
)

// Answer is the response about a command. A repeat gets the first response's outcome byte for byte; members that differ are
// outside the outcome.
type Answer struct {
	Status       string                 `json:"status"`
	Substatus    string                 `json:"substatus,omitempty"`
	Decision     string                 `json:"decision,omitempty"`
	Executed     bool                   `json:"executed"`
	CommandID    string                 `json:"command_id"`
	Intent       command.Intent         `json:"intent"` // shown to the caller that confirms, approves or reads the command
	Key          string                 `json:"idempotency_key"`
	KeyVersion   int                    `json:"key_version,omitempty"`
	Fingerprint  string                 `json:"envelope_fingerprint,omitempty"`
	Summary      string                 `json:"summary,omitempty"`
	Outcome      *command.StoredOutcome `json:"outcome,omitempty"`
	OutcomeRef   string                 `json:"outcome_ref,omitempty"`
	CreatedAt    *time.Time             `json:"created_at,omitempty"`
	UpdatedAt    *time.Time             `json:"updated_at,omitempty"`
	WindowEnd    *time.Time             `json:"ttl_expires_at,omitempty"`
	StatusURL    string                 `json:"status_url,omitempty"`
	EvidenceURL  string                 `json:"evidence_url,omitempty"`
	Token        string                 `json:"confirmation_token,omitempty"`
	TokenExpires *time.Time             `json:"expires_at,omitempty"`
	ConfirmURL   string                 `json:"confirm_url,omitempty"`
	StepUpURL    string                 `json:"step_up_url,omitempty"`
	// Affects counts the objects that the command would change if it were confirmed now, if that is known beforehand.
	Affects *builtincommand.Affected `json:"affects,omitempty"`
}

const commandsPath = "/ids/v1/commands/"

// view renders an answer. While a command runs, submissions get the status "processing" (IDS-RPL-4); status requests get the
// exact state.
func view(a *command.Answer, processing string) *Answer {
	v := &Answer{
		Status: string(a.Status), Substatus: string(a.Substatus), Decision: string(a.Decision), Executed: a.Executed, CommandID: a.CommandID, Intent: a.Intent, Key: a.Key,
		KeyVersion: a.KeyVersion, Fingerprint: a.Fingerprint, Outcome: a.Outcome, OutcomeRef: a.OutcomeRef, CreatedAt: when(a.CreatedAt),
		UpdatedAt: when(a.UpdatedAt), WindowEnd: when(a.ExpiresAt), Token: a.Token, TokenExpires: when(a.TokenExpiry),
	}
	if a.KeyVersion > 0 { // the command has a record
		v.StatusURL, v.EvidenceURL = commandsPath+a.CommandID, "/ids/v1/evidence?command_id="+a.CommandID
	}
	if a.Outcome != nil {
		v.Summary = a.Outcome.Summary
	}
	if a.Status == command.InProgress {
		v.Status = processing
	}
	if a.Substatus == command.AwaitingConfirmation {
		v.ConfirmURL = commandsPath + a.CommandID + "/confirm"
		if a.StepUp {
			v.StepUpURL = commandsPath + a.CommandID + "/step-up"
		}
	}
	return v
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (s *server) submit(c *httpapi.Call) error {
	e, err := command.ParseEnvelope(c.Body)
	if err != nil {
		return refuse(c, err)
	}
	ctx, cancel := s.patience(c.R.Context())
	defer cancel()
	who := builtincommand.Caller(c.Caller)
	a, err := s.cfg.Executor.Submit(ctx, who, e)
	if err != nil {
		return refuse(c, err)
	}
	return answer(c, a, s.affects(ctx, who, e, a))
}

// affects counts the objects that a command would change if it were confirmed now. A failure is only logged: the answer is the
// only one that shows the confirmation token.
func (s *server) affects(ctx context.Context, who command.Caller, e *command.Envelope, a *command.Answer) *builtincommand.Affected {
	if a.Substatus != command.AwaitingConfirmation {
		return nil
	}
	affects, err := s.cfg.Preview.Preview(ctx, who, e)
	if err != nil {
		s.cfg.Log.Warn("changes of a command not counted", "command_id", a.CommandID, "error", err)
		return nil
	}
	return affects
}

func (s *server) confirm(c *httpapi.Call) error {
	var in struct {
		Token  string `json:"confirmation_token"`
		StepUp string `json:"step_up_token"`
	}
	if err := read(c.Body, &in); err != nil {
		return err
	}
	if in.Token == "" {
		return problem.Invalid.In("confirmation_token", "is required")
	}
	ctx, cancel := s.patience(c.R.Context())
	defer cancel()
	a, err := s.cfg.Executor.Confirm(ctx, builtincommand.Caller(c.Caller), c.R.PathValue("id"), in.Token, in.StepUp)
	if err != nil {
		return refuse(c, err)
	}
	return answer(c, a, nil)
}

func (s *server) stepUp(c *httpapi.Call) error {
	if err := read(c.Body, &struct{}{}); err != nil {
		return err
	}
	approval, err := s.cfg.Executor.Approve(c.R.Context(), builtincommand.Caller(c.Caller), c.R.PathValue("id"))
	if err != nil {
		return refuse(c, err)
	}
	return write(c, http.StatusOK, map[string]any{"command_id": approval.CommandID, "step_up_token": approval.Token, "expires_at": when(approval.ExpiresAt)})
}

func (s *server) status(c *httpapi.Call) error {
	a, err := s.cfg.Executor.Status(c.R.Context(), builtincommand.Caller(c.Caller), c.R.PathValue("id"))
	if err != nil {
		return refuse(c, err)
	}
	return write(c, http.StatusOK, view(a, string(command.InProgress)))
}

func (s *server) registry(c *httpapi.Call) error {
	who := builtincommand.Caller(c.Caller)
	return write(c, http.StatusOK, map[string]any{
		"commands": s.cfg.Executor.Registry().List(who.Tenant),
		// An envelope of this caller must contain these values.
		"caller": map[string]any{"tenant_id": who.Tenant, "actor_id": who.Actor, "scopes": who.Scopes},
	})
}

// answer writes the result of a submission. A repeat gets the status code of the first response (IDS-RPL-2).
func answer(c *httpapi.Call, a *command.Answer, affects *builtincommand.Affected) error {
	h := c.W.Header()
	if a.Decision == command.DuplicateReplayed {
		h.Set(idempotency.ReplayedHeader, "true")
	}
	status := http.StatusOK
	switch a.Status {
	case command.InProgress:
		status = http.StatusAccepted
		h.Set("Location", commandsPath+a.CommandID)
		if a.Substatus != command.AwaitingConfirmation {
			h.Set("Retry-After", "1")
		}
	case command.Rejected, command.Failed:
		status = http.StatusUnprocessableEntity
	}
	v := view(a, "processing")
	v.Affects = affects
	return write(c, status, v)
}

// read decodes a body and rejects unknown members: a misspelt member would otherwise count as missing.
func read(body []byte, into any) error {
	members, err := httpapi.Members(body)
	if err != nil {
		return err
	}
	known := map[string]bool{"confirmation_token": true, "step_up_token": true}
	for name := range members {
		if !known[name] {
			return problem.Invalid.In(name, "is not known here")
		}
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return problem.Invalid.In("body", "its members must be strings")
	}
	return nil
}

func write(c *httpapi.Call, status int, v any) error {
	h := c.W.Header()
	h.Set("Content-Type", "application/json")
	c.W.WriteHeader(status)
	enc := json.NewEncoder(c.W)
	enc.SetEscapeHTML(false)
	return ignore(enc.Encode(v))
}

// ignore drops an error of writing a response. The client has disconnected and can ask again.
func ignore(error) error { return nil }
