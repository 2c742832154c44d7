package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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

var errUnknownEffect = errors.New("the store knows no such effect")

const (
	// Effects run the queries of the cold pool on a hot connection: they get the plans that they would get there.
	planCold = `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan TO DEFAULT;
		SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT; SET LOCAL enable_bitmapscan TO DEFAULT;`
	setSavepoint  = `SAVEPOINT effects;`
	nextSavepoint = `RELEASE SAVEPOINT effects; SAVEPOINT effects;`
)

// apply applies the effects of a step, all of them or, with the error, none.
func (a *advance) apply(ctx context.Context, effects []command.Effect) ([]any, error) {
	mark := nextSavepoint
	if !a.effects {
		mark = planCold + setSavepoint
	}
	if err := a.command(ctx, mark); err != nil {
		return nil, err
	}
	a.effects = true
	results := make([]any, len(effects))
	for i, e := range effects {
		var err error
		if results[i], err = applyEffect(ctx, a.conn, e); err != nil {
			err = failed(fmt.Sprintf("apply %T", e), err)
			if refusal(err) {
				return nil, cmp.Or(a.undo(ctx), err)
			}
			return nil, err
		}
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

func applyEffect(ctx context.Context, conn *pgx.Conn, effect command.Effect) (any, error) {
	switch e := effect.(type) {
	case store.ChangeEndpoint:
		return nil, updateEndpoint(ctx, conn, e.Endpoint)
	case store.IssueSecret:
		if e.Secret.TenantID != e.TenantID {
			return nil, store.ErrNotFound
		}
		return nil, addSecret(ctx, conn, e.Secret, e.Others)
	case store.RevokeSecret:
		return nil, revokeSecret(ctx, conn, e)
	case store.RequeueDead:
		return requeueDead(ctx, conn, e)
	case store.Requeue:
		made, err := requeueDeliveries(ctx, conn, e)
		return values(made), err
	case store.PurgeDead:
		return purgeDead(ctx, conn, e)
	case store.RemoveTenant:
		return deleteTenant(ctx, conn, e.ID, e.Now)
	case store.Publish:
		return nil, publish(ctx, conn, e.Events)
	}
	return nil, fmt.Errorf("%w: %T", errUnknownEffect, effect)
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

// publish stores events with deliveries that nobody has claimed.
func publish(ctx context.Context, conn *pgx.Conn, events []store.NewEvent) error {
	if len(events) == 0 {
		return nil
	}
	list := make([]newEvent, len(events))
	for i := range events {
		list[i] = newEvent{event: events[i].Event, deliveries: events[i].Deliveries}
	}
	if err := leaveStored(ctx, conn, list); err != nil {
		return err
	}
	dropStaleClaims(list, nil)
	p := newPipeline(ctx, conn.PgConn())
	addEvents(p, list, false)
	addPending(p, deliveriesOf(list), false)
	return p.run()
}
