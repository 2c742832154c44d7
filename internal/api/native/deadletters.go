package native

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
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

// resolve checks the filter and finds its endpoint.
func (f deadLetterFilter) resolve(ctx context.Context, c *management.Caller, finder endpointFinder) (store.DeadLetterFilter, error) {
	out := store.DeadLetterFilter{
		TenantID: c.Tenant.ID, EventType: f.Type, Status: godwit.DeliveryStatus(f.Status), Reason: godwit.Reason(f.Reason),
		Since: f.Since, Until: f.Until, Replayed: f.Replayed,
	}
	if why := godwit.ValidEventType(f.Type); f.Type != "" && why != "" {
		return out, problem.Invalid.In("type", "%s", why)
	}
	var err error
	out.EndpointID, err = finder.filter(ctx, c, f.Endpoint)
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

// DeadLetterGroups counts dead letters.
type DeadLetterGroups struct {
	Items   []DeadLetterGroup `json:"items" doc:"The largest group first, 200 at most"`
	Counted int               `json:"counted" doc:"Dead letters that were counted, also those of groups that are left out"`
	More    bool              `json:"more" doc:"There are more dead letters: the newest 10,000 were counted"`
}

// DeadLetterGroup is the dead letters of an endpoint that have one reason.
type DeadLetterGroup struct {
	EndpointID string    `json:"endpoint_id"`
	Reason     string    `json:"reason"`
	Count      int       `json:"count"`
	LastAt     time.Time `json:"last_at" doc:"When the latest of them ended"`
}

// How many dead letters are counted, and how many groups are shown.
const (
	groupedLetters   = 10_000
	groupsOfDeadShow = 200
)

type (
	groupDeadLettersInput  struct{ DeadLetterParams }
	groupDeadLettersOutput struct{ Body DeadLetterGroups }
	listDeadLettersInput   struct {
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

// Descriptions of the operations on dead letters.
var (
	listDeadLettersDoc = huma.Operation{
		OperationID: "list-dead-letters", Summary: "List dead letters",
		Description: "Those that are open: deliveries which ended without being accepted and were not replayed since. " +
			"With type, status, reason or since, a request examines up to 5,000 dead letters: a page may have fewer items than limit, even none, and still have a next_cursor.",
	}
	groupDeadLettersDoc = huma.Operation{
		OperationID: "group-dead-letters", Summary: "Count dead letters by endpoint and reason",
		Description: "Of those that a list with the same filters has.",
	}
	getDeadLetterDoc = huma.Operation{
		OperationID: "get-dead-letter", Summary: "Get the open dead letter of a delivery",
	}
	replayDeadLetterDoc = huma.Operation{
		OperationID: "replay-dead-letter", Summary: "Replay a dead letter",
		DefaultStatus: http.StatusAccepted, Description: "Starts a new run under the same idempotency key. The dead letter is marked as replayed and kept until it expires.",
	}
	replayDeadLettersDoc = huma.Operation{
		OperationID: "replay-dead-letters", Summary: "Replay the dead letters that match",
		DefaultStatus: http.StatusAccepted,
		Description: "Newest first, up to limit in one request; next_cursor continues where it ended. To select all, say all: true. It runs as the command dead_letters.replay, " +
			"one for each thousand.",
	}
	purgeDeadLettersDoc = huma.Operation{
		OperationID: "purge-dead-letters", Summary: "Remove the dead letters that match",
		Description: "For good, with the copies of their events; newest first, up to limit in one request. To select all, say all: true. It runs as the command dead_letters.purge. " +
			"The first answer tells in affects how many dead letters would go, and from which endpoints.",
	}
)

// deadLetterHandlers serve the operations on dead letters.
type deadLetterHandlers struct {
	store  deadLetterStore
	engine deadLetterEngine
	// commands replay and purge many at once.
	commands interface {
		ReplayDeadLetters(ctx context.Context, r builtincommand.Request, f store.DeadLetterFilter, after godwit.DeliveryID, limit int) (replayed int, next godwit.DeliveryID, err error)
		PurgeDeadLetters(ctx context.Context, r builtincommand.Request, f store.DeadLetterFilter, limit int, c *builtincommand.Confirmation) (*builtincommand.Done, error)
	}
	// preview counts the dead letters that a purge would remove.
	preview interface {
		Purge(ctx context.Context, f store.DeadLetterFilter, limit int) (*builtincommand.Affected, error)
	}
	finder endpointFinder
}

// deadLetterStore is the part of the store that dead letters are read from.
type deadLetterStore interface {
	Delivery(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.Delivery, error)
	DeadLetter(ctx context.Context, tenant godwit.TenantID, id godwit.DeliveryID) (*godwit.DeadLetter, error)
	ListDeadLetters(ctx context.Context, f store.DeadLetterFilter, p store.Page) ([]godwit.DeadLetter, error)
	GroupDeadLetters(ctx context.Context, f store.DeadLetterFilter, limit int) ([]store.DeadLetterGroup, error)
}

// deadLetterEngine is the part of the engine that sends dead letters again.
type deadLetterEngine interface {
	Replay(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, actor string) ([]godwit.Delivery, error)
}

func (h *deadLetterHandlers) get(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deadLetterOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	d, err := h.store.DeadLetter(ctx, c.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	return &deadLetterOutput{Body: deadLetterView(d)}, nil
}

func (h *deadLetterHandlers) list(ctx context.Context, c *management.Caller, in *listDeadLettersInput) (*listOutput[DeadLetter], error) {
	f, err := in.filter().resolve(ctx, c, h.finder)
	if err != nil {
		return nil, err
	}
	read := func(p store.Page) ([]godwit.DeadLetter, error) { return h.store.ListDeadLetters(ctx, f, p) }
	if in.Type == "" && in.Reason == "" && in.Status == "" && in.Since.IsZero() {
		return deadLetters.page(in.PageParams, read)
	}
	wanted := f
	f.EventType, f.Reason, f.Status, f.Since = "", "", "", time.Time{}
	return deadLetters.sift(in.PageParams, read, func(d *godwit.DeadLetter) bool {
		return (wanted.EventType == "" || d.Event.Type == wanted.EventType) && (wanted.Reason == "" || d.Delivery.Reason == wanted.Reason) &&
			(wanted.Status == "" || d.Delivery.Status == wanted.Status) && !d.DeadAt.Before(wanted.Since)
	})
}

func (h *deadLetterHandlers) groups(ctx context.Context, c *management.Caller, in *groupDeadLettersInput) (*groupDeadLettersOutput, error) {
	f, err := in.filter().resolve(ctx, c, h.finder)
	if err != nil {
		return nil, err
	}
	groups, err := h.store.GroupDeadLetters(ctx, f, groupedLetters+1)
	if err != nil {
		return nil, err
	}
	out := &groupDeadLettersOutput{Body: DeadLetterGroups{Items: []DeadLetterGroup{}}}
	for _, g := range groups {
		out.Body.Counted += g.Count
		if len(out.Body.Items) < groupsOfDeadShow {
			out.Body.Items = append(out.Body.Items, DeadLetterGroup{EndpointID: g.EndpointID.String(), Reason: string(g.Reason), Count: g.Count, LastAt: g.LastAt.UTC()})
		}
	}
	out.Body.More = out.Body.Counted > groupedLetters
	return out, nil
}

func (h *deadLetterHandlers) replay(ctx context.Context, c *management.Caller, in *DeliveryPath) (*deliveryOutput, error) {
	id, err := in.parse()
	if err != nil {
		return nil, err
	}
	if _, err := h.store.DeadLetter(ctx, c.Tenant.ID, id); err != nil {
		if errors.Is(err, store.ErrNotFound) && idempotency.Again(ctx) {
			return h.alreadyReplayed(ctx, c, id)
		}
		return nil, err
	}
	replayed, err := h.engine.Replay(ctx, c.Tenant.ID, []godwit.DeliveryID{id}, c.Actor())
	if err != nil {
		return nil, err
	}
	if len(replayed) == 0 {
		return nil, problem.Conflict.With("another request has replayed it, or its endpoint is deleted")
	}
	return &deliveryOutput{Body: deliveryView(&replayed[0])}, nil
}

// alreadyReplayed answers the repeat of an interrupted replay, whose dead letter is no longer open.
func (h *deadLetterHandlers) alreadyReplayed(ctx context.Context, c *management.Caller, id godwit.DeliveryID) (*deliveryOutput, error) {
	d, err := h.store.Delivery(ctx, c.Tenant.ID, id)
	if err == nil && d.Run.Trigger != godwit.TriggerReplay {
		err = store.ErrNotFound
	}
	return deliveryShown(d, err)
}

// replayMany replays dead letters in commands of at most a thousand, so that a million of them neither fill memory
// nor hold a transaction open.
func (h *deadLetterHandlers) replayMany(ctx context.Context, c *management.Caller, in *bulkReplayInput) (*bulkReplayOutput, error) {
	b := &in.Body
	if err := b.check(); err != nil {
		return nil, err
	}
	filter, err := b.filter().resolve(ctx, c, h.finder)
	if err != nil {
		return nil, err
	}
	after, err := parseCursor(listDead, b.Cursor)
	if err != nil {
		return nil, err
	}
	out := &bulkReplayOutput{}
	replayed, next, err := h.commands.ReplayDeadLetters(ctx, commandRequest(ctx), filter, after, b.Limit)
	if err != nil {
		return nil, err
	}
	out.Body.Replayed = replayed
	if !next.IsZero() {
		out.Body.NextCursor = cursor(listDead, next)
	}
	return out, nil
}

func (h *deadLetterHandlers) purge(ctx context.Context, c *management.Caller, in *purgeInput) (*confirmedOutput[Purged], error) {
	if err := in.Body.check(); err != nil {
		return nil, err
	}
	f := in.Body.filter()
	f.Replayed = in.Body.Replayed
	filter, err := f.resolve(ctx, c, h.finder)
	if err != nil {
		return nil, err
	}
	out, err := confirmed[Purged](h.commands.PurgeDeadLetters(ctx, commandRequest(ctx), filter, in.Body.Limit, in.confirmation()))
	if err != nil {
		return nil, err
	}
	if first, ok := out.Body.(Asked); ok {
		if first.Affects, err = h.preview.Purge(ctx, filter, in.Body.Limit); err != nil {
			return nil, err
		}
		out.Body = first
	}
	return out, nil
}
