package inbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/receiver"
)

// Commands executes commands that upstreams deliver.
type Commands interface {
	Submit(ctx context.Context, caller command.Caller, e *command.Envelope) (*command.Answer, error)
	Registry() *command.Registry
}

// command handles a delivery whose payload is a command envelope, from an upstream that may submit commands for an API key.
// The delivery's key belongs to the transport and is no part of the command's key: the same command over another transport
// is the same command (IDS-DLV-6, IT-13).
func (x *exchange) command(m *receiver.Message) error {
	id, wrong := x.gate.Identify(m, &x.proof)
	if _, _, err := x.key(x.gate.Origin(&x.proof), &id, wrong); err != nil {
		return err
	}
	caller, err := x.commander()
	if err != nil {
		return err
	}
	e, err := command.ParseEnvelope(x.body)
	if err != nil {
		return builtincommand.Problem(err)
	}
	if c := x.cfg.Commands.Registry().Lookup(caller.Tenant, e.Intent.Entity, e.Intent.Action); c != nil && c.Confirmation {
		return problem.Invalid.In("intent", "this command needs a confirmation, which a source has no way to give; submit it to /ids/v1/commands")
	}
	e.Channel = builtincommand.SourceChannel(x.src.ID)
	if err := x.waits.Acquire(x.src.TenantID, "deliveries that wait for a command"); err != nil {
		return err
	}
	defer x.waits.Release(x.src.TenantID, 1)
	ctx, cancel := context.WithTimeout(x.r.Context(), x.cfg.Deadline) // an upstream waits no longer for a command than for endpoints
	defer cancel()
	a, err := x.cfg.Commands.Submit(ctx, caller, e)
	if err != nil {
		return builtincommand.Problem(err)
	}
	if a.Status == command.InProgress {
		// The upstream must deliver again to learn the outcome; 2xx and 4xx would both end the delivery (IDS IT-16).
		return problem.Unavailable.With("the command is in progress; deliver it again for its outcome, or ask at /ids/v1/commands/%s", a.CommandID)
	}
	if a.Status == command.Failed && a.KeyVersion == 0 && ctx.Err() != nil {
		// A command that only reads keeps no record: the time ran out, and the next delivery executes it again.
		return problem.Unavailable.With("the command did not end in time; deliver it again")
	}
	x.succeeded(verdictCommanded)
	return x.commanded(a)
}

// commander returns the caller of the source's commands: its API key, with the key's current scopes.
func (x *exchange) commander() (c command.Caller, err error) {
	id, err := godwit.ParseKeyID(x.src.Settings.CommandsAs)
	if err != nil {
		return c, fmt.Errorf("key of a commanding source: %w", err)
	}
	key, err := x.cfg.Store.Key(x.r.Context(), x.src.TenantID, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !key.LiveAt(x.cfg.Clock.Now()) {
		return c, problem.Forbidden.With("the key in whose name this source commands is revoked, expired or gone")
	}
	if err != nil {
		return c, fmt.Errorf("find key: %w", err)
	}
	scopes := make([]string, len(key.Scopes))
	for i, s := range key.Scopes {
		scopes[i] = string(s)
	}
	return command.Caller{Tenant: x.src.TenantID.String(), Actor: key.Principal.String(), Scopes: scopes}, nil
}

func (x *exchange) commanded(a *command.Answer) error {
	body, err := json.Marshal(map[string]any{
		"command_id": a.CommandID, "idempotency_key": a.Key, "status": a.Status, "decision": a.Decision, "outcome": a.Outcome, "outcome_ref": a.OutcomeRef,
	})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	h := x.w.Header()
	if a.Decision == command.DuplicateReplayed {
		h.Set(idempotency.ReplayedHeader, "true")
	}
	h.Set("Content-Type", "application/json")
	status := http.StatusOK
	if a.Status == command.Rejected || a.Status == command.Failed {
		status = http.StatusUnprocessableEntity
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(append(body, '\n')) // the upstream may have disconnected
	return nil
}
