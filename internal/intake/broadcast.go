package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/idempotency"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// Tenants finds the tenants of a broadcast. Package management implements it.
type Tenants interface {
	Find(ctx context.Context, environment godwit.EnvironmentID, named string) (*godwit.Tenant, error)
	List(ctx context.Context, environment godwit.EnvironmentID, p store.Page) ([]godwit.Tenant, error)
}

// A Broadcast is an event for many tenants, as a door parsed it.
type Broadcast struct {
	Environment godwit.EnvironmentID
	Principal   godwit.KeyID
	// Names are ids or uids of tenants of the environment. Nil means all tenants that have an endpoint for the event.
	Names []string
	Event *Event
	// Key is the idempotency key of the request; empty: none. Each tenant's event has a key of its own.
	Key string
}

// broadcastScope is the scope of a key for a broadcast.
const broadcastScope = "POST /v1/events for many tenants"

// Broadcast accepts an event for many tenants and returns the id of the broadcast. If it returns no error, the broadcast is stored
// durably, by this request or by the one that it repeats.
func (in *Intake) Broadcast(ctx context.Context, b *Broadcast) (id godwit.BroadcastID, repeated bool, err error) {
	now := in.cfg.Now()
	id = godwit.NewBroadcastID(now)
	var record *godwit.IdempotencyRecord
	if b.Key != "" {
		record = in.recordOf(b)
		record.CreatedAt = now
		id = broadcastOf(record)
		known, err := in.cfg.Store.Recorded(ctx, record.ID, now)
		if err == nil { // before the event is judged by today's rules
			return answerRepeat(record, known)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return id, false, fmt.Errorf("read idempotency record: %w", err)
		}
	}
	if err := in.checkForm(b.Event); err != nil {
		return id, false, err
	}
	n := &store.NewBroadcast{
		Broadcast: godwit.Broadcast{
			ID: id, EnvironmentID: b.Environment, Principal: b.Principal, Type: b.Event.Type, ContentType: b.Event.ContentType, All: b.Names == nil, CreatedAt: now,
		},
		Event: &godwit.Event{
			Type: b.Event.Type, ContentType: b.Event.ContentType, Body: b.Event.Body, Attributes: b.Event.Attributes, KeptHeaders: b.Event.KeptHeaders,
			Principal: b.Principal,
		},
		Record: record,
	}
	entered, err := in.choose(ctx, b, n)
	var existing *godwit.IdempotencyRecord
	if err == nil {
		existing, err = in.cfg.Engine.Broadcast(ctx, n)
	}
	if err == nil && existing == nil {
		return id, false, nil
	}
	// Nothing was stored: the tenants' limits are as before. If the store does not answer now, they have one event less.
	for _, t := range entered {
		if in.meters.leave(context.WithoutCancel(ctx), t, 1) != nil {
			break
		}
	}
	if err != nil {
		return id, false, err
	}
	return answerRepeat(record, existing)
}

// recordOf returns the record of a request with a key. The id of the broadcast follows from it, so the stored response has nothing to say.
func (in *Intake) recordOf(b *Broadcast) *godwit.IdempotencyRecord {
	home, e := godwit.HomeOf(b.Environment), b.Event
	audience := "*"
	if b.Names != nil {
		audience = strings.Join(b.Names, ",")
	}
	return &godwit.IdempotencyRecord{
		ID:       idempotency.Scope{Principal: b.Principal, Tenant: home, Operation: broadcastScope}.ID(b.Key),
		TenantID: home,
		Fingerprint: in.cfg.Fingerprint.Sum(idempotency.Payload{
			ContentType: e.ContentType, Query: selection(e) + "\nfor " + audience, Body: e.Body,
		}),
		Response: &godwit.StoredResponse{Status: http.StatusAccepted},
	}
}

// broadcastOf returns the id of the broadcast that a request with a key made.
func broadcastOf(r *godwit.IdempotencyRecord) godwit.BroadcastID {
	var derive func(time.Time, []byte) godwit.BroadcastID = godwit.DerivedID
	return derive(r.CreatedAt, r.ID[:])
}

func answerRepeat(own, known *godwit.IdempotencyRecord) (godwit.BroadcastID, bool, error) {
	if known.Fingerprint != own.Fingerprint {
		return godwit.BroadcastID{}, false, engine.ErrKeyReused
	}
	return broadcastOf(known), true, nil
}

// choose finds the tenants of a broadcast and judges the event for each of them. It returns those whose limits it took the event from.
func (in *Intake) choose(ctx context.Context, b *Broadcast, n *store.NewBroadcast) (entered []*godwit.Tenant, err error) {
	j := &jury{in: in, broadcast: b, verdicts: map[godwit.Validation]*problem.Problem{}}
	each := in.named
	if b.Names == nil {
		each = in.subscribed
	}
	err = each(ctx, b, func(t *godwit.Tenant) error {
		item, err := j.judge(ctx, t)
		switch {
		case err != nil:
			return err
		case item != nil:
			n.Skips = append(n.Skips, *item)
		default:
			n.Work = append(n.Work, t.ID)
		}
		if len(n.Work)+len(n.Skips) > godwit.MaxBroadcastTenants {
			return problem.Invalid.In(management.TenantHeader, "selects more than %d tenants; post for them in several requests", godwit.MaxBroadcastTenants)
		}
		return nil
	})
	if err != nil {
		return j.entered, err
	}
	if total := int64(len(b.Event.Body)) * int64(len(n.Work)); total > godwit.MaxBroadcastBytes {
		return j.entered, problem.TooLarge.In("data", "has %d bytes for each of %d tenants, which is over the limit of %d bytes in all; post a smaller payload, or for fewer tenants",
			len(b.Event.Body), len(n.Work), godwit.MaxBroadcastBytes)
	}
	n.Tenants, n.Skipped = len(n.Work)+len(n.Skips), len(n.Skips)
	if len(n.Work) == 0 {
		n.CompletedAt = n.CreatedAt
	}
	return j.entered, nil
}

// tenantPage is how many tenants are read at once.
const tenantPage = 500

// subscribed calls yield for each tenant of the environment that has an endpoint for the event.
func (in *Intake) subscribed(ctx context.Context, b *Broadcast, yield func(*godwit.Tenant) error) error {
	if err := in.cfg.Engine.CatchUp(ctx); err != nil {
		return err
	}
	event := &godwit.Event{Type: b.Event.Type, Body: b.Event.Body, Attributes: b.Event.Attributes, KeptHeaders: b.Event.KeptHeaders}
	page := store.Page{Limit: tenantPage}
	for {
		list, err := in.cfg.Tenants.List(ctx, b.Environment, page)
		if err != nil {
			return fmt.Errorf("list tenants: %w", err)
		}
		for i := range list {
			if in.cfg.Engine.Receives(list[i].ID, event) == 0 {
				continue
			}
			if err := yield(&list[i]); err != nil {
				return err
			}
		}
		if len(list) < page.Limit {
			return nil
		}
		page.After = list[len(list)-1].ID
	}
}

// named calls yield for each tenant that the request names.
func (in *Intake) named(ctx context.Context, b *Broadcast, yield func(*godwit.Tenant) error) error {
	list := make([]*godwit.Tenant, 0, len(b.Names))
	names := map[godwit.TenantID]string{}
	for _, name := range b.Names {
		t, err := in.cfg.Tenants.Find(ctx, b.Environment, name)
		if errors.Is(err, store.ErrNotFound) || err == nil && t.EnvironmentID != b.Environment { // what other environments have is not told
			return problem.NotFound.With("there is no tenant of this environment with the id or uid %q; nothing was stored", clip(name))
		}
		if err != nil {
			return fmt.Errorf("find tenant: %w", err)
		}
		if first, twice := names[t.ID]; twice {
			return problem.Invalid.In(management.TenantHeader, "names the same tenant as %q and as %q", clip(first), clip(name))
		}
		names[t.ID] = name
		list = append(list, t)
	}
	slices.SortFunc(list, func(x, y *godwit.Tenant) int { return slices.Compare(y.ID[:], x.ID[:]) }) // newest first, as results are listed
	for _, t := range list {
		if err := yield(t); err != nil {
			return err
		}
	}
	return nil
}

// A jury judges the event of a broadcast for its tenants.
type jury struct {
	in        *Intake
	broadcast *Broadcast
	verdicts  map[godwit.Validation]*problem.Problem // of the environment's catalogue, by the tenants' setting
	entered   []*godwit.Tenant                       // with limits that the event was taken from
}

// judge returns a result if the tenant gets no event. Its error refuses the whole broadcast: the event does not match what the
// environment shares.
func (j *jury) judge(ctx context.Context, t *godwit.Tenant) (*godwit.BroadcastItem, error) {
	if t.RequireIdempotencyKey && j.broadcast.Key == "" {
		return nil, problem.KeyMissing.In(idempotency.Header, "is required by the tenant %s", cmp.Or(t.UID, t.ID.String()))
	}
	if item, err := j.checkCatalogue(ctx, t); err != nil || item != nil {
		return item, err
	}
	err := checkTenantPayload(t, j.broadcast.Event)
	if err == nil {
		err = j.in.meters.enter(ctx, t, 1)
		if err == nil && t.Limits.Intake(j.in.meters.server).EventsPerSecond > 0 {
			own := *t
			j.entered = append(j.entered, &own)
		}
	}
	if errors.Is(err, problem.TooLarge) || errors.Is(err, problem.TooManyRequests) {
		return &godwit.BroadcastItem{TenantID: t.ID, Reason: godwit.SkipLimit, Detail: problem.From(err).Detail}, nil
	}
	return nil, err
}

// checkCatalogue judges the event by the tenant's own type, or by what the environment shares.
func (j *jury) checkCatalogue(ctx context.Context, t *godwit.Tenant) (*godwit.BroadcastItem, error) {
	if t.Validation == godwit.ValidateNone {
		return nil, nil
	}
	own, err := j.in.cfg.Catalogue.Owns(ctx, t, j.broadcast.Event.Type)
	if err != nil {
		return nil, err
	}
	if own {
		refusal, err := j.in.refusal(ctx, t, j.broadcast.Event)
		if err != nil || refusal == nil {
			return nil, err
		}
		return &godwit.BroadcastItem{TenantID: t.ID, Reason: godwit.SkipInvalid, Detail: firstFields(refusal)}, nil
	}
	verdict, judged := j.verdicts[t.Validation]
	if !judged {
		shared := *t
		shared.OwnTypes = 0
		if verdict, err = j.in.refusal(ctx, &shared, j.broadcast.Event); err != nil {
			return nil, err
		}
		j.verdicts[t.Validation] = verdict
	}
	if verdict != nil {
		return nil, verdict
	}
	return nil, nil
}

// firstFields describes the first errors of a refusal in a line.
func firstFields(p *problem.Problem) string {
	const most = 3
	var parts []string
	for _, f := range p.Errors[:min(len(p.Errors), most)] {
		parts = append(parts, f.Field+" "+f.Detail)
	}
	if len(p.Errors) > most {
		parts = append(parts, fmt.Sprintf("and %d more", len(p.Errors)-most))
	}
	return strings.Join(parts, "; ")
}
