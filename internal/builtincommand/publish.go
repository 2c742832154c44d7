package builtincommand

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/intake"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// emit adds the server's own events on the tenant's bus to an outcome, and returns them. The outbox is stored with the
// outcome, and only the engine dispatches from it (IDS-SHD-4).
func emit(ctx context.Context, cfg Config, c *command.Call, o *command.Outcome, publications ...engine.Publication) ([]store.NewEvent, error) {
	tenant, err := tenantOf(c)
	if err != nil {
		return nil, err
	}
	principal, err := godwit.ParsePrincipal(c.Actor)
	if err != nil {
		return nil, err
	}
	box, err := cfg.Engine.Plan(ctx, tenant, principal, c.CommandID, publications...)
	if err != nil {
		return nil, command.Transient(err)
	}
	return add(o, box), nil
}

// add stores an outbox with an outcome.
func add(o *command.Outcome, box *engine.Outbox) []store.NewEvent {
	command.Add(o, store.Publish{Events: box.Events})
	o.Done = func(stored bool, _ command.Results) { box.Close(stored) }
	return box.Events
}

// producerOf returns the producer of an event that a command publishes: the key that submitted the command.
func producerOf(ctx context.Context, cfg Config, c *command.Call) (p intake.Producer, err error) {
	tenant, err := tenantOf(c)
	if err != nil {
		return p, err
	}
	if p.Key, err = godwit.ParsePrincipal(c.Actor); err != nil {
		return p, err
	}
	if p.Tenant, err = cfg.Management.Tenants.Get(ctx, tenant); err != nil {
		return p, rejected("tenant")(err)
	}
	return p, nil
}

// refused turns a refusal of the intake into the rejection of a command.
func refused(err error) error {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return command.Transient(err)
	}
	detail := p.Detail
	for _, f := range p.Errors {
		if one := f.Field + ": " + f.Detail; one != detail {
			detail += "; " + one
		}
	}
	return command.Reject("invalid", detail)
}

func publishEvent(cfg Config) operation {
	type publication struct {
		Type       string            `json:"type"`
		Data       json.RawMessage   `json:"data"`
		Attributes map[string]string `json:"attributes"`
	}
	return operation{command.Declaration{
		Entity: "event", Action: "publish", Scopes: []string{"ingest"}, Class: command.I3, Shielding: []command.Strategy{command.S2},
		Justification: "Its effect is webhooks at other people's systems; the outbox and its one dispatcher shield them.",
		Args: schema(`"type":{"type":"string","minLength":1,"maxLength":128},"data":{},`+
			`"attributes":{"type":"object","maxProperties":32,"additionalProperties":{"type":"string","maxLength":256}}`, "type", "data"),
		Description: "Puts an event on the tenant's bus. The event and the outcome are one transaction: however often the command comes, there is one event.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[publication](c)
		if err != nil {
			return nil, err
		}
		producer, err := producerOf(ctx, cfg, c)
		if err != nil {
			return nil, err
		}
		admission, err := cfg.Intake.Admit(ctx, producer, &intake.Event{
			Type: in.Type, ContentType: "application/json", Body: in.Data, Attributes: in.Attributes, Key: c.ProviderKey("event"),
		}, nil) // nil: the executor answers repeats
		if err != nil {
			return nil, refused(err)
		}
		o := &command.Outcome{Summary: "Event " + in.Type + " was published."}
		box, err := cfg.Intake.Plan(ctx, producer, c.CommandID, admission)
		if err != nil {
			return nil, command.Transient(err) // large fan-outs of the tenant are open; they end soon
		}
		events := add(o, box)
		o.Result = map[string]any{"event_id": events[0].Event.ID.String(), "deliveries": events[0].Receivers()}
		return o, nil
	}}
}
