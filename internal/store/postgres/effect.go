package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

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
	// Effects run the queries of the cold pool on a hot connection: they get the plans that they would get there.
	planCold = `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan TO DEFAULT;
		SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT; SET LOCAL enable_bitmapscan TO DEFAULT;`
	setSavepoint  = `SAVEPOINT effects;`
	nextSavepoint = `RELEASE SAVEPOINT effects; SAVEPOINT effects;`
)

// apply applies the effects of a step, all of them or, with the error, none.
func (a *advance) apply(ctx context.Context, list []command.Effect) (command.Results, error) {
	mark := nextSavepoint
	if !a.effects {
		mark = planCold + setSavepoint
	}
	if err := a.command(ctx, mark); err != nil {
		return nil, err
	}
	a.effects = true
	results, err := store.Apply(ctx, effects{a.conn}, list)
	if err != nil {
		err = failed("apply effects", err)
		if store.Refused(err) {
			return nil, cmp.Or(a.undo(ctx), err)
		}
		return nil, err
	}
	return results, nil
}

// undo takes back the effects of a step.
func (a *advance) undo(ctx context.Context) error {
	return a.command(ctx, `ROLLBACK TO SAVEPOINT effects`)
}

func (a *advance) command(ctx context.Context, sql string) error {
	_, err := a.conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// effects applies the effects of commands on a connection with an open transaction.
type effects struct{ conn *pgx.Conn }

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
	return deleteTenant(ctx, a.conn, e.ID, e.Now)
}

// Publish stores events with deliveries that no node has claimed.
func (a effects) Publish(ctx context.Context, events []store.NewEvent) error {
	list := make([]newEvent, len(events))
	for i := range events {
		list[i] = newEvent{event: events[i].Event, deliveries: events[i].Deliveries}
	}
	if err := leaveStored(ctx, a.conn, list); err != nil {
		return err
	}
	dropStaleClaims(list, nil)
	p := newPipeline(ctx, a.conn.PgConn())
	addEvents(p, list, false)
	addPending(p, deliveriesOf(list), false)
	return p.run()
}

// requeueDead makes the open dead letters due that a filter selects.
func requeueDead(ctx context.Context, q session, e store.RequeueDead) (*store.RequeuedDead, error) {
	e.Filter.Replayed = false
	if err := lockRequeue(ctx, q, e.Filter.TenantID); err != nil {
		return nil, err
	}
	w := selectLetters(e.Filter, e.Page)
	r, err := q.Query(ctx, `SELECT id FROM dead_letters`+w.sql()+w.newestFirst(e.Page.Limit), w.args...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (id godwit.DeliveryID, err error) { return id, r.Scan(scanID(&id)) })
	if err != nil {
		return nil, err
	}
	done := &store.RequeuedDead{Seen: len(ids), More: len(ids) > 0 && len(ids) == e.Page.Limit}
	if len(ids) == 0 {
		return done, nil
	}
	done.Last = ids[len(ids)-1]
	made, err := requeueDeliveries(ctx, q, store.Requeue{
		TenantID: e.Filter.TenantID, Deliveries: ids, Trigger: godwit.TriggerReplay, Actor: e.Actor, Now: e.Now,
	})
	slices.SortFunc(made, func(a, b *godwit.Delivery) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	done.Deliveries = values(made)
	return done, err
}

// purgeDead removes dead letters that a filter selects. It takes turns with whoever requeues them.
func purgeDead(ctx context.Context, q session, e store.PurgeDead) (*store.PurgedDead, error) {
	if err := lockRequeue(ctx, q, e.Filter.TenantID); err != nil {
		return nil, err
	}
	w := selectLetters(e.Filter, store.Page{})
	tag, err := q.Exec(ctx, `DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letters`+w.sql()+
		fmt.Sprintf(` ORDER BY id DESC, dead_at DESC LIMIT %d FOR UPDATE))`, max(e.Limit, 0)), w.args...)
	purged := int(tag.RowsAffected())
	return &store.PurgedDead{Purged: purged, More: purged > 0 && purged == e.Limit}, err
}
