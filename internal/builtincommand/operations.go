package builtincommand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Engine is the part of the delivery engine that commands use.
type Engine interface {
	Plan(ctx context.Context, tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...engine.Publication) (*engine.Outbox, error)
	Requeued(deliveries []godwit.Delivery)
	Call(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p engine.Publication) (*engine.Trial, error)
	PlanReplay(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (*engine.Redelivery, error)
}

// Store is the part of the store that planners read.
type Store interface {
	CountDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) ([]store.DeadLetterCount, error)
	EventsAfter(ctx context.Context, r store.EventRange) ([]godwit.Event, error)
}

// Config holds the dependencies of planners.
type Config struct {
	Management *management.Service
	Engine     Engine
	Store      Store
	Intake     *intake.Intake
	// Probe also registers the commands of a conformance suite. Defaults to false.
	Probe bool
}

// An operation is a built-in command.
type operation struct {
	command.Declaration
	handle func(ctx context.Context, c *command.Call) (*command.Outcome, error)
}

// Register adds Godwit's own commands to a registry.
func Register(reg *command.Registry, cfg Config) error {
	ops := []operation{
		deleteEndpoint(cfg), rotateSecret(cfg), revokeSecret(cfg),
		replayDeadLetters(cfg), purgeDeadLetters(cfg), replayEvents(cfg),
		deleteTenant(cfg), publishEvent(cfg), rotateKeys(cfg), revokeKey(cfg), deleteTenantOf(cfg),
	}
	if cfg.Probe {
		ops = append(ops, probeTouch(cfg), probeDelete(cfg), probeEcho())
	}
	for _, op := range ops {
		if err := reg.Register(op.Declaration, command.HandlerFunc(op.handle)); err != nil {
			return fmt.Errorf("register %s: %w", op.Name(), err)
		}
	}
	return nil
}

// request is the member that distinguishes a second intended operation from a repeat of the first (IDS IT-2, IT-15).
// Without it, the same operation on the same target within the window is the same command.
const request = `"request":{"type":"string","maxLength":255,"description":"Tells apart what is meant twice: the caller's own key, order or ticket"}`

// ruled returns the schema of an object with the given members and further rules.
func ruled(rules, members string, required ...string) json.RawMessage {
	return json.RawMessage(`{` + rules + `,` + string(schema(members, required...)[1:]))
}

// schema returns the schema of an object with the given members and no others.
func schema(members string, required ...string) json.RawMessage {
	need, err := json.Marshal(append([]string{}, required...))
	if err != nil {
		panic(err) // encoding strings never fails
	}
	if members != "" {
		members += ","
	}
	return json.RawMessage(`{"type":"object","additionalProperties":false,"required":` + string(need) + `,"properties":{` + members + request + `}}`)
}

func args[T any](c *command.Call) (T, error) {
	var v T
	err := json.Unmarshal(c.Args, &v)
	return v, err
}

func tenantOf(c *command.Call) (godwit.TenantID, error) {
	id, err := godwit.ParseTenantID(c.Tenant)
	if err != nil {
		return id, fmt.Errorf("tenant of a command: %w", err)
	}
	return id, nil
}

// rejected translates the error of a planner or an effect into a rejection, or into a transient error if a concurrent
// change was the cause.
func rejected(what string) func(error) error {
	return func(err error) error {
		var p *problem.Problem
		var f *godwit.FieldError
		switch {
		case errors.Is(err, store.ErrNotFound):
			return command.Reject("not_found", "there is no such "+what)
		case errors.Is(err, store.ErrConflict):
			return command.Transient(fmt.Errorf("%s changed meanwhile: %w", what, err))
		case errors.As(err, &f):
			return command.Reject("invalid", f.Error())
		case errors.As(err, &p):
			return command.Reject(p.Code, p.Detail)
		case errors.Is(err, store.ErrUnavailable):
			return command.Transient(err)
		}
		return err
	}
}
