package builtincommand

import (
	"context"
	"encoding/json"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/store"
)

// Affected describes the changes that a command awaiting confirmation would make if it were confirmed now.
type Affected struct {
	DeadLetters int                `json:"dead_letters" doc:"How many dead letters would go"`
	More        bool               `json:"more" doc:"There may be more that match; one request removes up to its limit"`
	Endpoints   []AffectedEndpoint `json:"endpoints" doc:"Whose they are; the endpoint with the most comes first"`
}

// AffectedEndpoint is an endpoint that loses dead letters.
type AffectedEndpoint struct {
	ID          string `json:"id" example:"sub_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"`
	DeadLetters int    `json:"dead_letters"`
}

// affected sums up the dead letters that a purge with this limit would remove.
func affected(counts []store.DeadLetterCount, limit int) *Affected {
	a := &Affected{Endpoints: make([]AffectedEndpoint, len(counts))}
	for i, n := range counts {
		a.DeadLetters += n.Count
		a.Endpoints[i] = AffectedEndpoint{ID: n.EndpointID.String(), DeadLetters: n.Count}
	}
	a.More = a.DeadLetters > 0 && a.DeadLetters == limit
	return a
}

// A Previewer predicts the changes of commands that await confirmation.
type Previewer struct{ cfg Config }

// NewPreviewer returns a Previewer of the commands that Register registers.
func NewPreviewer(cfg Config) *Previewer { return &Previewer{cfg} }

// Preview returns the changes that the command of an envelope would make, or nil if only its execution can tell.
func (p *Previewer) Preview(ctx context.Context, who command.Caller, e *command.Envelope) (*Affected, error) {
	if e.Intent.Entity != "dead_letters" || e.Intent.Action != "purge" {
		return nil, nil
	}
	in := purge{selection: selection{Limit: maxAtOnce}}
	if err := json.Unmarshal(e.Args, &in); err != nil {
		return nil, err
	}
	f, err := in.purged(ctx, p.cfg, &command.Call{Tenant: who.Tenant, Actor: who.Actor})
	if err != nil {
		return nil, nil // the endpoint does not exist; the execution reports it
	}
	return p.Purge(ctx, f, in.Limit)
}

// Purge returns the changes that a purge would make.
func (p *Previewer) Purge(ctx context.Context, f store.DeadLetterFilter, limit int) (*Affected, error) {
	limit = min(limit, maxAtOnce)
	counts, err := p.cfg.Store.CountDeadLetters(ctx, f, limit)
	if err != nil {
		return nil, err
	}
	return affected(counts, limit), nil
}
