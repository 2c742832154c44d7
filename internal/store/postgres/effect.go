package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// session is a pool, a connection or a transaction.
type session interface {
	querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

const (
	// Effects run the queries of the cold pool on a hot connection, with the plans they get there.
	planCold = `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan TO DEFAULT;
		SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT; SET LOCAL enable_bitmapscan TO DEFAULT;`
	setSavepoint  = `SAVEPOINT effects;`
	nextSavepoint = `RELEASE SAVEPOINT effects; SAVEPOINT effects;`
)

// Apply defers new events to the commit. Before any other effect it inserts the deferred events, so that the effect sees them.
func (t *transaction) Apply(ctx context.Context, list []command.Effect) (results command.Results, refusal, err error) {
	if t.careful || !deferrable(t.now, list) {
		if err := t.prepare(ctx); err != nil {
			return nil, nil, err
		}
	}
	results, err = store.Apply(ctx, effects{t}, list)
	if err != nil {
		err = failed("apply effects", err)
	}
	if store.Refused(err) {
		return nil, err, nil
	}
	return results, nil, err
}

// deferrable reports whether all effects publish events that must be new.
func deferrable(now time.Time, list []command.Effect) bool {
	for _, effect := range list {
		e, ok := effect.(store.Publish)
		if !ok {
			return false
		}
		for i := range e.Events {
			if now.Sub(e.Events[i].Event.CreatedAt) > longAgo {
				return false
			}
		}
	}
	return true
}

// prepare sets the wanted savepoint, and inserts deferred events before or after it as they were added.
func (t *transaction) prepare(ctx context.Context) error {
	if err := t.flush(ctx, t.outbox[:t.marked]); err != nil {
		return err
	}
	if t.wanted {
		mark := nextSavepoint
		if !t.set {
			mark = planCold + setSavepoint
		}
		if err := t.run(ctx, mark); err != nil {
			return err
		}
		t.wanted, t.set = false, true
	}
	err := t.flush(ctx, t.outbox[t.marked:])
	t.outbox, t.marked, t.dirty = nil, 0, true
	return err
}

func (t *transaction) flush(ctx context.Context, events []newEvent) error {
	if len(events) == 0 {
		return nil
	}
	p := newPipeline(ctx, t.conn.PgConn())
	addOutbox(p, events, t.now)
	return p.run()
}

// addOutbox stores events of commands with their deliveries and fan-outs.
func addOutbox(p *pipeline, events []newEvent, now time.Time) {
	if len(events) == 0 {
		return
	}
	addEvents(p, events, false)
	addPending(p, deliveriesOf(events), false)
	addNewFanouts(p, laterOf(events))
	used := store.NewTally(now)
	for i := range events {
		events[i].count(used.Of(events[i].event.TenantID))
	}
	addUsageRows(p, tallied(used), now, commandSlot)
}

// laterOf returns the fan-outs of events.
func laterOf(events []newEvent) (later []store.Fanout) {
	for i := range events {
		if f := events[i].later; f != nil {
			later = append(later, *f)
		}
	}
	return later
}

// effects applies the effects of commands in a transaction.
type effects struct{ *transaction }

var _ store.Applier = effects{}

func (a effects) ChangeEndpoint(ctx context.Context, e store.ChangeEndpoint) error {
	return updateEndpoint(ctx, a.conn, e.Endpoint)
}

func (a effects) IssueSecret(ctx context.Context, e store.IssueSecret) error {
	if e.Secret.TenantID != e.TenantID {
		return store.ErrNotFound
	}
	return addSecret(ctx, a.conn, e.Secret, e.Others)
}

func (a effects) RevokeSecret(ctx context.Context, e store.RevokeSecret) error {
	return revokeSecret(ctx, a.conn, e)
}

func (a effects) RequeueDead(ctx context.Context, e store.RequeueDead) (*store.RequeuedDead, error) {
	return requeueDead(ctx, a.conn, e)
}

func (a effects) Requeue(ctx context.Context, e store.Requeue) ([]godwit.Delivery, error) {
	made, err := requeueDeliveries(ctx, a.conn, e)
	return values(made), err
}

func (a effects) PurgeDead(ctx context.Context, e store.PurgeDead) (*store.PurgedDead, error) {
	return purgeDead(ctx, a.conn, e)
}

func (a effects) RemoveTenant(ctx context.Context, e store.RemoveTenant) ([]godwit.EndpointID, error) {
	return deleteTenant(ctx, a.conn, e.ID, false, e.Now)
}

// Publish stores events with unclaimed deliveries.
func (a effects) Publish(ctx context.Context, events []store.NewEvent) error {
	list := make([]newEvent, len(events))
	for i := range events {
		list[i] = newEvent{event: events[i].Event, deliveries: slices.Clone(events[i].Deliveries)}
		if len(events[i].Later) > 0 {
			later := events[i].Fanout()
			list[i].later = &later
		}
	}
	dropStaleClaims(list, nil)
	if a.wanted { // prepare was not called
		a.outbox, a.deferred = append(a.outbox, list...), true
		return nil
	}
	if err := leaveStored(ctx, a.conn, list); err != nil {
		return err
	}
	return a.flush(ctx, list)
}
