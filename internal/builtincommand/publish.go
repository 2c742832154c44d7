package builtincommand

import (
	"context"
	"encoding/json"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// emit makes the outcome of a command whose effect is events on its tenant's bus: the outbox is stored with the outcome, and the engine
// is the one dispatcher that sends from it (IDS-SHD-4, decision 13).
func emit(cfg Config, c *command.Call, o *command.Outcome, publications ...engine.Publication) (*command.Outcome, error) {
	tenant, err := tenantOf(c)
	if err != nil {
		return nil, err
	}
	principal, err := godwit.ParseKeyID(c.Actor)
	if err != nil {
		return nil, err
	}
	box := cfg.Engine.Plan(tenant, principal, c.CommandID, publications...)
	o.Effects = append(o.Effects, store.Publish{Events: box.Events})
	o.Done = func(stored bool, _ []any) { box.Close(stored) }
	return o, nil
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
		if why := godwit.ValidEventType(in.Type); why != "" {
			return nil, command.Reject("invalid", "type: "+why)
		}
		o := &command.Outcome{Summary: "Event " + in.Type + " was published."}
		out, err := emit(cfg, c, o, engine.Publication{
			Type: in.Type, ContentType: "application/json", Body: in.Data, Attributes: in.Attributes, Key: c.ProviderKey("event"),
		})
		if err != nil {
			return nil, err
		}
		first := out.Effects[0].(store.Publish).Events[0]
		out.Result = map[string]any{"event_id": first.Event.ID.String(), "deliveries": len(first.Deliveries)}
		return out, nil
	}}
}
