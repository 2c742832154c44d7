package builtincommand

import (
	"context"
	"encoding/json"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// emit adds events on the tenant's bus to an outcome, and returns them. The outbox is stored with the outcome, and the engine is the
// one dispatcher that sends from it (IDS-SHD-4).
func emit(cfg Config, c *command.Call, o *command.Outcome, publications ...engine.Publication) ([]store.NewEvent, error) {
	tenant, err := tenantOf(c)
	if err != nil {
		return nil, err
	}
	principal, err := godwit.ParseKeyID(c.Actor)
	if err != nil {
		return nil, err
	}
	box := cfg.Engine.Plan(tenant, principal, c.CommandID, publications...)
	command.Add(o, store.Publish{Events: box.Events})
	o.Done = func(stored bool, _ command.Results) { box.Close(stored) }
	return box.Events, nil
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
		events, err := emit(cfg, c, o, engine.Publication{
			Type: in.Type, ContentType: "application/json", Body: in.Data, Attributes: in.Attributes, Key: c.ProviderKey("event"),
		})
		if err != nil {
			return nil, err
		}
		o.Result = map[string]any{"event_id": events[0].Event.ID.String(), "deliveries": len(events[0].Deliveries)}
		return o, nil
	}}
}
