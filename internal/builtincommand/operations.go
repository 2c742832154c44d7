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

// Engine is what is asked of delivery.
type Engine interface {
	Plan(tenant godwit.TenantID, principal godwit.KeyID, commandID string, publications ...engine.Publication) *engine.Outbox
	Requeued(deliveries []godwit.Delivery)
	Call(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID, p engine.Publication) (*engine.Trial, error)
	PlanReplay(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID, events []godwit.Event, actor string) (*engine.Redelivery, error)
}

// Store is what plans are made of that the registry does not know.
type Store interface {
	CountDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) ([]store.DeadLetterCount, error)
	EventsAfter(ctx context.Context, r store.EventRange) ([]godwit.Event, error)
}

// Config is what operations work on.
type Config struct {
	Registry *management.Service
	Engine   Engine
	Store    Store
	Intake   *intake.Intake
	// Probe registers the commands that a conformance suite tries.
	Probe bool
}

// An operation is a command of ours.
type operation struct {
	command.Declaration
	handle func(ctx context.Context, c *command.Call) (*command.Outcome, error)
}

// Register puts Godwit's own commands into a registry.
func Register(reg *command.Registry, cfg Config) error {
	ops := []operation{
		deleteEndpoint(cfg), rotateSecret(cfg), revokeSecret(cfg),
		replayDeadLetters(cfg), purgeDeadLetters(cfg), replayEvents(cfg),
		deleteTenant(cfg), publishEvent(cfg),
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

// request is the member by which a caller tells two intended operations from one that is repeated (IDS IT-2, IT-15): without it, the
// same operation on the same target within the window is the same command.
const request = `"request":{"type":"string","maxLength":255,"description":"Tells apart what is meant twice: the caller's own key, order or ticket"}`

// ruled is a schema with rules beside its members.
func ruled(rules, members string, required ...string) json.RawMessage {
	return json.RawMessage(`{` + rules + `,` + string(schema(members, required...)[1:]))
}

// schema is an object with the members given, and no others.
func schema(members string, required ...string) json.RawMessage {
	need, err := json.Marshal(append([]string{}, required...))
	if err != nil {
		panic(err) // of strings it never fails
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

// rejected turns what a plan or an effect was refused for into what it means to whoever commanded it: a business rejection, or another
// try where a change came between.
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
