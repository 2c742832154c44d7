package native

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/builtincommand"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// previewed is the largest number of deliveries that a preview counts.
const previewed = 10_000

// DeliveryChoice are the body members that select deliveries.
type DeliveryChoice struct {
	IDs      []string   `json:"ids,omitempty" minItems:"1" maxItems:"1000" doc:"These deliveries, whatever their status. Goes with no filter."`
	Endpoint string     `json:"endpoint,omitempty" minLength:"1" doc:"Only to this endpoint"`
	Event    string     `json:"event,omitempty" minLength:"1" doc:"Only of this event"`
	Type     string     `json:"type,omitempty" minLength:"1" maxLength:"128" doc:"Only events of this type"`
	Since    *time.Time `json:"since,omitempty" doc:"Created at or after"`
	Until    *time.Time `json:"until,omitempty" doc:"Created before"`
	All      bool       `json:"all,omitempty" doc:"true: all deliveries of the tenant. Required where neither ids nor a filter is given, and refused beside one."`
}

// BulkPart says how much of the choice one request takes.
type BulkPart struct {
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"1000" doc:"How many at most in this request"`
	Cursor string `json:"cursor,omitempty" maxLength:"64" doc:"next_cursor of the request before"`
	DryRun bool   `json:"dry_run,omitempty" doc:"true: change nothing, and count all that match, up to 10,000; with type, among the newest 5,000 of each status"`
}

// BulkChanged is the result of an operation on many deliveries.
type BulkChanged struct {
	Matched    int    `json:"matched" doc:"How many match: of all with dry_run, else of those that this request looked at"`
	Changed    int    `json:"changed" doc:"How many this request changed; 0 with dry_run. Those that had changed meanwhile, or are under way at this moment, are left alone."`
	More       bool   `json:"more" doc:"There are more: with dry_run, matched is a lower bound; else send the request again with next_cursor"`
	NextCursor string `json:"next_cursor,omitempty" doc:"For cursor of the next request"`
}

type (
	retryDeliveriesInput struct {
		Body struct {
			DeliveryChoice
			Status string `json:"status,omitempty" enum:"pending,accepted,terminal,exhausted,cancelled" doc:"Only those with this status. Absent: pending, terminal and exhausted ones, which is what has not arrived."`
			BulkPart
		} `nameHint:"BulkRetry"`
	}
	cancelDeliveriesInput struct {
		Body struct {
			DeliveryChoice
			BulkPart
		} `nameHint:"BulkCancel"`
	}
	bulkChangedOutput struct{ Body BulkChanged }
)

// Descriptions of the operations on many deliveries.
var (
	retryDeliveriesDoc = huma.Operation{
		OperationID: "retry-deliveries", Summary: "Try the deliveries that match now",
		Description: "Newest first, up to limit in one request; next_cursor continues where it ended. Waiting ones are made due at once; those that ended start a new run under the same idempotency key. " +
			"With type, a request examines up to 5,000 deliveries of each status, and may change none and still have a next_cursor. To select all, say all: true. With dry_run, the answer says how many there are. The tenant's evidence records who did it, with the choice and the number.",
	}
	cancelDeliveriesDoc = huma.Operation{
		OperationID: "cancel-deliveries", Summary: "Cancel the deliveries that match",
		Description: "Ends those that wait, newest first, up to limit in one request; next_cursor continues where it ended. One that is under way at this moment is left alone. " +
			"With type, a request examines up to 5,000 deliveries of each status, and may change none and still have a next_cursor. To select all, say all: true. With dry_run, the answer says how many there are. The tenant's evidence records who did it, with the choice and the number.",
	}
)

// deliveryBulk serves the operations on many deliveries.
type deliveryBulk struct {
	store    deliveryStore
	engine   bulkEngine
	evidence interface {
		Observed(r builtincommand.Request, operation, what string) error
	}
	finder endpointFinder
}

// bulkEngine is the part of the engine that changes many deliveries.
type bulkEngine interface {
	RetryMany(ctx context.Context, tenant godwit.TenantID, ids []godwit.DeliveryID, only []godwit.DeliveryStatus, actor string) (int, error)
	CancelMany(ctx context.Context, tenant godwit.TenantID, deliveries []godwit.Delivery) (int, error)
}

// missed are the statuses of deliveries that have not arrived.
var missed = []godwit.DeliveryStatus{godwit.DeliveryPending, godwit.DeliveryTerminal, godwit.DeliveryExhausted}

func (h *deliveryBulk) retry(ctx context.Context, c *management.Caller, in *retryDeliveriesInput) (*bulkChangedOutput, error) {
	b := &in.Body
	statuses := missed
	if b.Status != "" {
		statuses = []godwit.DeliveryStatus{godwit.DeliveryStatus(b.Status)}
	}
	chosen, err := h.choose(ctx, c, &b.DeliveryChoice, b.Status, statuses)
	if err != nil {
		return nil, err
	}
	only := statuses
	if len(b.IDs) > 0 {
		only = nil
	}
	return h.run(ctx, chosen, &b.BulkPart, "deliveries.retry", b.describe(b.Status), func(part []godwit.Delivery) (int, error) {
		return h.engine.RetryMany(ctx, c.Tenant.ID, idsOf(part), only, c.Actor())
	})
}

func (h *deliveryBulk) cancel(ctx context.Context, c *management.Caller, in *cancelDeliveriesInput) (*bulkChangedOutput, error) {
	b := &in.Body
	chosen, err := h.choose(ctx, c, &b.DeliveryChoice, "", []godwit.DeliveryStatus{godwit.DeliveryPending})
	if err != nil {
		return nil, err
	}
	return h.run(ctx, chosen, &b.BulkPart, "deliveries.cancel", b.describe(""), func(part []godwit.Delivery) (int, error) {
		part = slices.DeleteFunc(part, func(d godwit.Delivery) bool { return d.Status != godwit.DeliveryPending })
		return h.engine.CancelMany(ctx, c.Tenant.ID, part)
	})
}

func idsOf(list []godwit.Delivery) []godwit.DeliveryID {
	ids := make([]godwit.DeliveryID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return ids
}

// run counts the chosen deliveries, or changes a part of them.
func (h *deliveryBulk) run(ctx context.Context, chosen deliveryPages, part *BulkPart, operation, what string, change func([]godwit.Delivery) (int, error)) (*bulkChangedOutput, error) {
	after, err := parseCursor(listDels, part.Cursor)
	if err != nil {
		return nil, err
	}
	limit := part.Limit
	if part.DryRun {
		limit = previewed
	}
	if part.DryRun && after == [16]byte{} && chosen.countable() {
		n, err := chosen.count(ctx, limit+1)
		return &bulkChangedOutput{Body: BulkChanged{Matched: min(n, limit), More: n > limit}}, err
	}
	list, next, err := chosen.read(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	more := next != [16]byte{}
	out := &bulkChangedOutput{Body: BulkChanged{Matched: len(list), More: more}}
	if part.DryRun {
		return out, nil
	}
	if more {
		out.Body.NextCursor = cursor(listDels, next)
	}
	if len(list) == 0 {
		return out, nil
	}
	changed, err := change(list)
	if changed > 0 {
		if seen := h.evidence.Observed(commandRequest(ctx), operation, fmt.Sprintf("%d deliveries: %s", changed, what)); seen != nil && err == nil {
			err = seen
		}
	}
	out.Body.Changed = changed
	return out, err
}

// describe writes the choice for the evidence.
func (c *DeliveryChoice) describe(status string) string {
	if len(c.IDs) > 0 {
		return "chosen by id"
	}
	var parts []string
	for _, p := range [][2]string{{"endpoint", c.Endpoint}, {"event", c.Event}, {"type", c.Type}, {"status", status}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	for name, t := range map[string]*time.Time{"since": c.Since, "until": c.Until} {
		if t != nil {
			parts = append(parts, name+" "+t.UTC().Format(time.RFC3339))
		}
	}
	if parts == nil {
		return "all of the tenant"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// deliveryPages reads chosen deliveries, newest first.
type deliveryPages struct {
	store    deliveryStore
	filter   store.DeliveryFilter
	statuses []godwit.DeliveryStatus
	named    []godwit.Delivery // those named by id, newest first
}

// choose checks the choice and finds what it names.
func (h *deliveryBulk) choose(ctx context.Context, c *management.Caller, in *DeliveryChoice, status string, statuses []godwit.DeliveryStatus) (deliveryPages, error) {
	p := deliveryPages{store: h.store, statuses: statuses, filter: store.DeliveryFilter{TenantID: c.Tenant.ID, EventType: in.Type}}
	if err := in.check(status); err != nil {
		return p, err
	}
	var err error
	for i, text := range in.IDs {
		field := "ids[" + strconv.Itoa(i) + "]"
		id, err := godwit.ParseDeliveryID(text)
		if err != nil {
			return p, badID(field, "del_…")
		}
		d, err := h.store.Delivery(ctx, c.Tenant.ID, id)
		if err != nil {
			return p, missing(field, "delivery", err)
		}
		p.named = append(p.named, *d)
	}
	newestFirst(p.named)
	p.named = slices.CompactFunc(p.named, func(a, b godwit.Delivery) bool { return a.ID == b.ID })
	if why := godwit.ValidEventType(in.Type); in.Type != "" && why != "" {
		return p, problem.Invalid.In("type", "%s", why)
	}
	if p.filter.EndpointID, err = h.finder.filter(ctx, c, in.Endpoint); err != nil {
		return p, err
	}
	if in.Event != "" {
		if p.filter.EventID, err = parseEvent("event", in.Event); err != nil {
			return p, err
		}
	}
	if in.Since != nil {
		p.filter.Since = *in.Since
	}
	if in.Until != nil {
		p.filter.Until = *in.Until
	}
	return p, nil
}

// check requires ids, a filter, or "all": true. A filter that is missing by mistake must not select everything.
func (c *DeliveryChoice) check(status string) error {
	filtered := status != "" || c.Endpoint != "" || c.Event != "" || c.Type != "" || c.Since != nil || c.Until != nil
	switch {
	case len(c.IDs) > 0 && (filtered || c.All):
		return problem.InvalidRequest.In("ids", "must not stand beside a filter, a status or all; leave one of the two out")
	case filtered && c.All:
		return problem.InvalidRequest.In("all", "must not be true beside a filter; leave one of the two out")
	case len(c.IDs) == 0 && !filtered && !c.All:
		return problem.InvalidRequest.In("all", "must be true to select every delivery; to select some, give ids, endpoint, event, type, since or until")
	}
	return nil
}

func newestFirst(list []godwit.Delivery) {
	slices.SortFunc(list, func(a, b godwit.Delivery) int { return bytes.Compare(b.ID[:], a.ID[:]) })
}

// countable reports whether an index counts the chosen deliveries.
func (p *deliveryPages) countable() bool {
	return p.named == nil && p.filter.EventID.IsZero() && p.filter.EventType == ""
}

// count counts the chosen deliveries, at most upTo.
func (p *deliveryPages) count(ctx context.Context, upTo int) (n int, err error) {
	for _, status := range p.statuses {
		f := p.filter
		f.Status = status
		part, err := p.store.CountDeliveries(ctx, f, upTo)
		if err != nil {
			return 0, err
		}
		n += part
	}
	return min(n, upTo), nil
}

// read returns up to limit deliveries after the given one, and where the next part begins; zero: there is none. Types have no index: it examines a bounded number of
// deliveries for them, and may return fewer than limit, even none.
func (p *deliveryPages) read(ctx context.Context, after [16]byte, limit int) (list []godwit.Delivery, next [16]byte, err error) {
	if p.named != nil {
		list = slices.DeleteFunc(slices.Clone(p.named), func(d godwit.Delivery) bool {
			return after != [16]byte{} && bytes.Compare(d.ID[:], after[:]) >= 0
		})
	} else {
		examined := limit + 1
		if p.filter.EventType != "" {
			examined = sifted
		}
		for _, status := range p.statuses {
			f := p.filter
			f.Status, f.EventType = status, ""
			part, err := p.store.ListDeliveries(ctx, f, store.Page{After: after, Limit: examined})
			if err != nil {
				return nil, next, err
			}
			if len(part) == examined { // others may follow, so that nothing older may be returned yet
				if last := part[examined-1].ID; bytes.Compare(last[:], next[:]) > 0 {
					next = last
				}
			}
			list = append(list, part...)
		}
		newestFirst(list)
		list = slices.CompactFunc(list, func(a, b godwit.Delivery) bool { return a.ID == b.ID }) // it ended between two reads
		list = slices.DeleteFunc(list, func(d godwit.Delivery) bool {
			return bytes.Compare(d.ID[:], next[:]) < 0 || p.filter.EventType != "" && d.EventType != p.filter.EventType
		})
	}
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	return list, next, nil
}
