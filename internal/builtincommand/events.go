package builtincommand

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// replayPage and replayMemory limit the events, and their bodies, that one events.replay command sends, because its effect
// is one transaction.
const (
	replayPage   = 200
	replayMemory = 8 << 20
)

// ahead is the maximum time by which an event may claim to have happened after its acceptance. A search by time looks back
// further by this much.
const ahead = 24 * time.Hour

// period holds the args of a replay of events.
type period struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Types []string  `json:"types"`
	Limit int       `json:"limit"`
	After string    `json:"after"`
}

func (p *period) events(tenant godwit.TenantID) (r store.EventRange, err error) {
	r = store.EventRange{TenantID: tenant, Since: p.Since, Until: p.Until, Patterns: p.Types}
	if p.Until.Before(p.Since) {
		return r, command.Reject("invalid", "until: must not be before since")
	}
	for i, t := range p.Types {
		if why := godwit.ValidPattern(t); why != "" {
			return r, command.Reject("invalid", fmt.Sprintf("types[%d]: %s", i, why))
		}
	}
	if from := p.Since.Add(-ahead); from.Unix() > 0 {
		var first func(time.Time) godwit.EventID = godwit.FirstIDAt
		r.After = first(from)
	}
	if p.After != "" {
		if r.After, err = godwit.ParseEventID(p.After); err != nil {
			return r, command.Reject("invalid", "after: is not the id of an event")
		}
	}
	return r, nil
}

func replayEvents(cfg Config) operation {
	return operation{command.Declaration{
		Entity: "events", Action: "replay", TargetRequired: true, Scopes: []string{"manage"},
		Args: schema(`"since":{"type":"string","format":"date-time"},"until":{"type":"string","format":"date-time"},`+
			`"types":{"type":"array","items":{"type":"string","maxLength":128},"maxItems":100,"x-set":true,"description":"Types or patterns; none: all"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":200,"default":200},`+
			`"after":{"type":"string","maxLength":64,"description":"next of the command before, to go on"}`, "since", "until"),
		Description: "Sends the tenant's events of a time to an endpoint, oldest first, those that never went to it too. Up to 200 a command; " +
			"the result says how to go on. The target is the id of the endpoint.",
	}, func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		in, err := args[period](c)
		if err != nil {
			return nil, err
		}
		e, err := target(ctx, cfg.Management.Endpoints, c)
		if err != nil {
			return nil, err
		}
		r, err := in.events(e.TenantID)
		if err != nil {
			return nil, err
		}
		r.Limit = in.Limit
		return cfg.resend(ctx, c.Actor, e.ID, r)
	}}
}

// resent is the result of a replay of events.
type resent struct {
	Events int            `json:"events"`
	Queued int            `json:"queued"`
	More   bool           `json:"more"`
	Next   godwit.EventID `json:"next,omitzero"` // cursor of the next page, if there are more
}

// resend sends the next events of a range to an endpoint, at most replayPage of them.
func (cfg *Config) resend(ctx context.Context, actor string, endpoint godwit.EndpointID, r store.EventRange) (*command.Outcome, error) {
	r.Limit, r.MaxBytes = min(r.Limit, replayPage), replayMemory
	events, more, err := someEvents(ctx, cfg.Store, &r)
	if err != nil {
		return nil, command.Transient(err)
	}
	result := resent{Events: len(events), More: more}
	if more {
		result.Next = r.After
	}
	o := &command.Outcome{Summary: "There was nothing to replay.", Result: result, Refused: rejected("endpoint")}
	if len(events) == 0 {
		return o, nil
	}
	plan, err := cfg.Engine.PlanReplay(ctx, r.TenantID, endpoint, events, actor)
	if err != nil {
		return nil, rejected("endpoint")(err)
	}
	if len(plan.Fresh) > 0 {
		o.Effects = append(o.Effects, store.Publish{Events: plan.Fresh})
	}
	if len(plan.Again.Deliveries) > 0 {
		o.Effects = append(o.Effects, plan.Again)
	}
	result.Queued = plan.Len()
	o.Result = result
	o.Summary = fmt.Sprintf("%d events are on their way to endpoint %s.", plan.Len(), endpoint)
	o.Done = func(stored bool, _ command.Results) {
		if stored {
			plan.Stored()
		}
	}
	return o, nil
}

// someEvents reads the next events of a range that are to be replayed, and reports whether there are more. It advances
// r.After past them.
func someEvents(ctx context.Context, s Store, r *store.EventRange) (events []godwit.Event, more bool, err error) {
	for len(events) == 0 {
		if events, err = s.EventsAfter(ctx, *r); err != nil || len(events) == 0 {
			return nil, false, err
		}
		r.After = events[len(events)-1].ID
		events = slices.DeleteFunc(events, func(e godwit.Event) bool { return !replayable(&e, r.Patterns) })
	}
	rest := *r
	rest.Limit = 20
	for {
		next, err := s.EventsAfter(ctx, rest)
		if err != nil || len(next) == 0 {
			return events, false, err
		}
		if slices.ContainsFunc(next, func(e godwit.Event) bool { return replayable(&e, r.Patterns) }) {
			return events, true, nil
		}
		rest.After = next[len(next)-1].ID
	}
}

// replayable excludes the server's own events, unless a pattern names them.
func replayable(e *godwit.Event, patterns []string) bool {
	return !profile.Meta(e.Type) || slices.ContainsFunc(patterns, func(p string) bool { return p != "*" && godwit.MatchPattern(p, e.Type) })
}
