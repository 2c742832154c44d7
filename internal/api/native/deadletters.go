package native

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// DeadLetter is a delivery that ended without being accepted.
type DeadLetter struct {
	Delivery   Delivery   `json:"delivery"`
	Event      Event      `json:"event"`
	DeadAt     time.Time  `json:"dead_at"`
	ReplayedAt *time.Time `json:"replayed_at,omitempty" doc:"When it was sent again. If that fails for good too, there is a new dead letter."`
	LastDetail string     `json:"last_detail,omitempty" doc:"One line about the last attempt"`
}

func deadLetterView(d *godwit.DeadLetter) DeadLetter {
	return DeadLetter{
		Delivery: deliveryView(&d.Delivery), Event: eventView(d.Event), DeadAt: d.DeadAt.UTC(),
		ReplayedAt: timestamp(d.ReplayedAt), LastDetail: d.LastDetail,
	}
}

// deadLetterFilter selects dead letters, in a query and in the body of a bulk replay.
type deadLetterFilter struct {
	Endpoint string
	Type     string
	Status   string
	Reason   string
	Since    time.Time
	Until    time.Time
	Replayed bool // includes replayed dead letters
}

func (s *server) deadLetterFilter(ctx context.Context, c *management.Caller, f deadLetterFilter) (store.DeadLetterFilter, error) {
	out := store.DeadLetterFilter{
		TenantID: c.Tenant.ID, EventType: f.Type, Status: godwit.DeliveryStatus(f.Status), Reason: godwit.Reason(f.Reason),
		Since: f.Since, Until: f.Until, Replayed: f.Replayed,
	}
	if why := godwit.ValidEventType(f.Type); f.Type != "" && why != "" {
		return out, problem.Invalid.In("type", "%s", why)
	}
	var err error
	out.EndpointID, err = s.endpointParam(ctx, c, f.Endpoint)
	return out, err
}

// DeadLetterParams are the query parameters that select dead letters.
type DeadLetterParams struct {
	RangeParams
	Endpoint string `query:"endpoint" doc:"Only of this endpoint"`
	Type     string `query:"type" maxLength:"128" doc:"Only events of this type"`
	Status   string `query:"status" enum:"terminal,exhausted"`
	Reason   string `query:"reason" maxLength:"64" doc:"Only with this reason"`
	Replayed bool   `query:"replayed" doc:"Also those that were replayed since"`
}

func (p DeadLetterParams) filter() deadLetterFilter {
	return deadLetterFilter{Endpoint: p.Endpoint, Type: p.Type, Status: p.Status, Reason: p.Reason, Since: p.Since, Until: p.Until, Replayed: p.Replayed}
}

// DeadLetterChoice are the body members that select dead letters.
type DeadLetterChoice struct {
	Endpoint string     `json:"endpoint,omitempty" minLength:"1" doc:"Only of this endpoint"`
	Type     string     `json:"type,omitempty" minLength:"1" maxLength:"128" doc:"Only events of this type"`
	Status   string     `json:"status,omitempty" enum:"terminal,exhausted"`
	Reason   string     `json:"reason,omitempty" minLength:"1" maxLength:"64" doc:"Only with this reason"`
	Since    *time.Time `json:"since,omitempty" doc:"Dead at or after"`
	Until    *time.Time `json:"until,omitempty" doc:"Dead before"`
	All      bool       `json:"all,omitempty" doc:"true: every dead letter of the tenant. Required where no filter is given, and refused beside one."`
}

// check requires either a filter or "all": true. A filter that is missing by mistake must not empty the list.
func (c *DeadLetterChoice) check() error {
	filtered := *c
	filtered.All = false
	switch empty := filtered == (DeadLetterChoice{}); {
	case empty && !c.All:
		return problem.InvalidRequest.In("all", `must be true to select every dead letter; to select some, give endpoint, type, status, reason, since or until`)
	case !empty && c.All:
		return problem.InvalidRequest.In("all", "must not be true beside a filter; leave one of the two out")
	}
	return nil
}

func (c *DeadLetterChoice) filter() deadLetterFilter {
	f := deadLetterFilter{Endpoint: c.Endpoint, Type: c.Type, Status: c.Status, Reason: c.Reason}
	if c.Since != nil {
		f.Since = *c.Since
	}
	if c.Until != nil {
		f.Until = *c.Until
	}
	return f
}

// Purged is the result of a purge.
type Purged struct {
	Purged int  `json:"purged" doc:"Dead letters that were removed"`
	More   bool `json:"more" doc:"There may be more that match"`
}

type (
	listDeadLettersInput struct {
		PageParams
		DeadLetterParams
	}
	deadLetterOutput struct{ Body DeadLetter }
	bulkReplayInput  struct {
		Body struct {
			DeadLetterChoice
			Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"1000" doc:"How many at most in this request"`
			Cursor string `json:"cursor,omitempty" maxLength:"64" doc:"next_cursor of the request before"`
		} `nameHint:"BulkReplay"`
	}
	purgeInput struct {
		ConfirmationParams
		Body struct {
			DeadLetterChoice
			Replayed bool `json:"replayed,omitempty" doc:"Also those that were replayed since"`
			Limit    int  `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"1000" doc:"How many at most in this request"`
		} `nameHint:"Purge"`
	}
	bulkReplayOutput struct {
		Body struct {
			Replayed   int    `json:"replayed" doc:"Deliveries that were started again"`
			NextCursor string `json:"next_cursor,omitempty" doc:"There may be more: send the same request with this cursor"`
		} `nameHint:"BulkReplayed"`
	}
)

func (s *server) deadLetterRoutes() {
	tags := []string{"Dead letters"}
	typed(s, mayRead, huma.Operation{
		OperationID: "list-dead-letters", Method: http.MethodGet, Path: "/v1/dead-letters", Tags: tags, Summary: "List dead letters",
		Description: "Those that are open: deliveries which ended without being accepted and were not replayed since.",
	}, s.listDeadLetters)
	s.raw(mayRead, exportOperation(s), s.exportDeadLetters)
	typed(s, mayRead, huma.Operation{
		OperationID: "get-dead-letter", Method: http.MethodGet, Path: "/v1/dead-letters/{id}", Tags: tags, Summary: "Get the open dead letter of a delivery",
	}, func(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deadLetterOutput, error) {
		id, err := in.parse()
		if err != nil {
			return nil, err
		}
		d, err := s.cfg.Store.DeadLetter(ctx, c.Tenant.ID, id)
		if err != nil {
			return nil, err
		}
		return &deadLetterOutput{Body: deadLetterView(d)}, nil
	})
	typed(s, mayManage, huma.Operation{
		OperationID: "replay-dead-letter", Method: http.MethodPost, Path: "/v1/dead-letters/{id}/replay", Tags: tags, Summary: "Replay a dead letter",
		DefaultStatus: http.StatusAccepted, Description: "Starts a new run under the same idempotency key. The dead letter is marked as replayed and kept until it expires.",
	}, s.replayDeadLetter)
	typed(s, mayManage, huma.Operation{
		OperationID: "replay-dead-letters", Method: http.MethodPost, Path: "/v1/dead-letters/replay", Tags: tags, Summary: "Replay the dead letters that match",
		DefaultStatus: http.StatusAccepted,
		Description: "Newest first, up to limit in one request; next_cursor continues where it ended. To select all, say all: true. It runs as the command dead_letters.replay, " +
			"one for each thousand.",
	}, s.replayDeadLetters)
	typed(s, mayManage, s.asks(huma.Operation{
		OperationID: "purge-dead-letters", Method: http.MethodPost, Path: "/v1/dead-letters/purge", Tags: tags, Summary: "Remove the dead letters that match",
		Description: "For good, with the copies of their events; newest first, up to limit in one request. To select all, say all: true. It runs as the command dead_letters.purge. " +
			"The first answer tells in affects how many dead letters would go, and from which endpoints.",
	}, Purged{}), s.purgeDeadLetters)
}

func (s *server) listDeadLetters(ctx context.Context, c *management.Caller, in *listDeadLettersInput) (*listOutput[DeadLetter], error) {
	f, err := s.deadLetterFilter(ctx, c, in.filter())
	if err != nil {
		return nil, err
	}
	return deadLetters.page(in.PageParams, func(p store.Page) ([]godwit.DeadLetter, error) {
		return s.cfg.Store.ListDeadLetters(ctx, f, p)
	})
}

func (s *server) replayDeadLetter(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.Store.DeadLetter(ctx, c.Tenant.ID, id); err != nil {
		return nil, err
	}
	replayed, err := s.cfg.Engine.Replay(ctx, c.Tenant.ID, []godwit.DeliveryID{id}, c.Actor())
	if err != nil {
		return nil, err
	}
	if len(replayed) == 0 {
		return nil, problem.Conflict.With("it was replayed by somebody else, or its endpoint is deleted")
	}
	return &deliveryOutput{Body: deliveryView(&replayed[0])}, nil
}

// replayDeadLetters replays dead letters in commands of at most a thousand, so that a million of them neither fill memory
// nor hold a transaction open.
func (s *server) replayDeadLetters(ctx context.Context, c *management.Caller, in *bulkReplayInput) (*bulkReplayOutput, error) {
	b := &in.Body
	if err := b.check(); err != nil {
		return nil, err
	}
	filter, err := s.deadLetterFilter(ctx, c, b.filter())
	if err != nil {
		return nil, err
	}
	after, err := parseCursor(listDead, b.Cursor)
	if err != nil {
		return nil, err
	}
	out := &bulkReplayOutput{}
	replayed, next, err := s.cfg.Commands.ReplayDeadLetters(ctx, s.order(ctx, c), filter, after, b.Limit)
	if err != nil {
		return nil, err
	}
	out.Body.Replayed = replayed
	if !next.IsZero() {
		out.Body.NextCursor = cursor(listDead, next)
	}
	return out, nil
}

func (s *server) purgeDeadLetters(ctx context.Context, c *management.Caller, in *purgeInput) (*askedOutput[Purged], error) {
	if err := in.Body.check(); err != nil {
		return nil, err
	}
	f := in.Body.filter()
	f.Replayed = in.Body.Replayed
	filter, err := s.deadLetterFilter(ctx, c, f)
	if err != nil {
		return nil, err
	}
	out, err := asked[Purged](s.cfg.Commands.PurgeDeadLetters(ctx, s.order(ctx, c), filter, in.Body.Limit, in.confirmation()))
	if err != nil {
		return nil, err
	}
	if first, ok := out.Body.(Asked); ok {
		if first.Affects, err = s.cfg.Preview.Purge(ctx, filter, in.Body.Limit); err != nil {
			return nil, err
		}
		out.Body = first
	}
	return out, nil
}
