package builtincommand

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// maxAtOnce is the maximum number of dead letters for one command, because its effect is one transaction.
const maxAtOnce = 1000

const filterMembers = `"endpoint":{"type":"string","minLength":1,"maxLength":64},"type":{"type":"string","minLength":1,"maxLength":128},` +
	`"status":{"enum":["terminal","exhausted"]},"reason":{"type":"string","minLength":1,"maxLength":64},` +
	`"since":{"type":"string","format":"date-time"},"until":{"type":"string","format":"date-time"},` +
	`"all":{"type":"boolean","description":"true selects every dead letter; it is required without a filter and goes with none"},` +
	`"limit":{"type":"integer","minimum":1,"maximum":1000,"default":1000}`

// filterRules require either a filter or "all": true: a forgotten filter must not remove all dead letters.
const filterRules = `"if":{"anyOf":[{"required":["endpoint"]},{"required":["type"]},{"required":["status"]},{"required":["reason"]},` +
	`{"required":["since"]},{"required":["until"]}]},` +
	`"then":{"properties":{"all":{"const":false}}},"else":{"required":["all"],"properties":{"all":{"const":true}}}`

// selection holds the args that filter dead letters.
type selection struct {
	Endpoint string     `json:"endpoint"`
	Type     string     `json:"type"`
	Status   string     `json:"status"`
	Reason   string     `json:"reason"`
	Since    *time.Time `json:"since"`
	Until    *time.Time `json:"until"`
	Limit    int        `json:"limit"`
	After    string     `json:"after"`
}

func (s *selection) filter(ctx context.Context, cfg Config, c *command.Call) (f store.DeadLetterFilter, err error) {
	if f.TenantID, err = tenantOf(c); err != nil {
		return f, err
	}
	f.EventType, f.Status, f.Reason = s.Type, godwit.DeliveryStatus(s.Status), godwit.Reason(s.Reason)
	if s.Since != nil {
		f.Since = *s.Since
	}
	if s.Until != nil {
		f.Until = *s.Until
	}
	if s.Endpoint != "" {
		e, err := cfg.Management.Endpoints.Resolve(ctx, f.TenantID, s.Endpoint)
		if err != nil {
			if errors.Is(err, godwit.ErrBadID) {
				return f, command.Reject("not_found", "there is no such endpoint")
			}
			return f, rejected("endpoint")(err)
		}
		f.EndpointID = e.ID
	}
	return f, nil
}

// purge holds the args of a purge.
type purge struct {
	selection
	Replayed bool `json:"replayed"`
}

func (p *purge) purged(ctx context.Context, cfg Config, c *command.Call) (store.DeadLetterFilter, error) {
	f, err := p.filter(ctx, cfg, c)
	f.Replayed = p.Replayed
	return f, err
}

func replayDeadLetters(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "dead_letters", Action: "replay", Scopes: []string{"manage"},
		Args:        ruled(filterRules, filterMembers+`,"after":{"type":"string","maxLength":64,"description":"next of the command before, to go on"}`),
		Description: "Sends dead letters again that a filter selects, or all, the newest first, up to 1000 a command. The result says how to go on.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[selection](c)
		if err != nil {
			return nil, err
		}
		f, err := in.filter(ctx, cfg, c)
		if err != nil {
			return nil, err
		}
		page := store.Page{Limit: min(in.Limit, maxAtOnce)}
		if in.After != "" {
			id, err := godwit.ParseDeliveryID(in.After)
			if err != nil {
				return nil, command.Reject("invalid", "after: is not the id of a delivery")
			}
			page.After = id
		}
		return cfg.requeue(c.Actor, f, page), nil
	}}
}

// requeued is the result of a replay of dead letters.
type requeued struct {
	Replayed int               `json:"replayed"`
	Next     godwit.DeliveryID `json:"next,omitzero"` // cursor of the next page
}

func (cfg *Config) requeue(actor string, f store.DeadLetterFilter, page store.Page) *command.Outcome {
	o := &command.Outcome{Refused: rejected("dead letter")}
	dead := command.Add(o, store.RequeueDead{Filter: f, Page: page, Actor: actor, Now: cfg.Management.Now()})
	o.After = func(o *command.Outcome, results command.Results) error {
		r := dead.In(results)
		result := requeued{Replayed: len(r.Deliveries)}
		if r.More {
			result.Next = r.Last
		}
		o.Summary, o.Result = fmt.Sprintf("%d dead letters are on their way again.", len(r.Deliveries)), result
		return nil
	}
	o.Done = func(stored bool, results command.Results) {
		// If the result is not known, the engine finds the deliveries when it next reads due ones from the store.
		if r := dead.In(results); stored && r != nil {
			cfg.Engine.Requeued(r.Deliveries)
		}
	}
	return o
}

func purgeDeadLetters(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "dead_letters", Action: "purge", Scopes: []string{"manage"}, Confirmation: true, Critical: true,
		Args:        ruled(filterRules, filterMembers+`,"replayed":{"type":"boolean","default":false,"description":"also those that were replayed since"}`),
		Description: "Removes dead letters that a filter selects, or all, with the copies of their events, for good. Up to 1000 a command; the result says whether there are more.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[purge](c)
		if err != nil {
			return nil, err
		}
		f, err := in.purged(ctx, cfg, c)
		if err != nil {
			return nil, err
		}
		o := &command.Outcome{Refused: rejected("dead letter")}
		purged := command.Add(o, store.PurgeDead{Filter: f, Limit: min(in.Limit, maxAtOnce)})
		o.After = func(o *command.Outcome, results command.Results) error {
			r := purged.In(results)
			o.Summary, o.Result = fmt.Sprintf("%d dead letters were removed.", r.Purged), map[string]any{"purged": r.Purged, "more": r.More}
			return nil
		}
		return o, nil
	}}
}
