package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// tenantsAtOnce is how many tenants one step of a sweep of an environment looks at. Most have nothing that expired.
const tenantsAtOnce = 100

// SweepEnvironment takes one step through the tenants of an environment, deleted ones too. Partitions hold the rows of all environments, so these are
// deleted one by one.
func (s *sweeps) SweepEnvironment(ctx context.Context, w store.EnvironmentSweep) (*store.EnvironmentSwept, error) {
	sw := &environmentSweep{sweeps: s, EnvironmentSweep: w}
	if err := sw.step(ctx); err != nil {
		return nil, failed("sweep environment", err)
	}
	return &sw.out, nil
}

type environmentSweep struct {
	*sweeps
	store.EnvironmentSweep
	out store.EnvironmentSwept
}

func (w *environmentSweep) step(ctx context.Context) error {
	r, err := w.pool.Query(ctx, `SELECT id FROM tenants WHERE environment_id = $1 AND id >= $2 AND NOT home ORDER BY id LIMIT $3`,
		[16]byte(w.Environment), [16]byte(w.From.Tenant), tenantsAtOnce+1)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(r, pgx.RowTo[[16]byte])
	if err != nil {
		return err
	}
	looked := list[:min(len(list), tenantsAtOnce)]
	withEvents, err := w.having(ctx, `SELECT t.id FROM unnest($1::uuid[]) AS t (id)
		WHERE EXISTS (SELECT FROM events AS e WHERE e.tenant_id = t.id AND e.id < $2)`, looked, firstID(w.EventsBefore.Add(skew)), w.EventsBefore.IsZero())
	if err != nil {
		return err
	}
	withLetters, err := w.having(ctx, `SELECT t.id FROM unnest($1::uuid[]) AS t (id)
		WHERE EXISTS (SELECT FROM dead_letters AS l WHERE l.tenant_id = t.id AND l.dead_at < $2)`, looked, w.DeadLettersBefore, w.DeadLettersBefore.IsZero())
	if err != nil {
		return err
	}
	for _, tenant := range list {
		w.out.Next = store.EnvironmentCursor{Tenant: tenant}
		if tenant == w.From.Tenant {
			w.out.Next.Event = w.From.Event
		}
		if !slices.Contains(looked, tenant) || w.out.Events+w.out.Deliveries+w.out.DeadLetters >= int64(w.Limit) {
			w.out.More = true
			return nil
		}
		if slices.Contains(withEvents, tenant) {
			if err := w.events(ctx, tenant); err != nil || w.out.More {
				return err
			}
		}
		if slices.Contains(withLetters, tenant) {
			if err := w.deadLetters(ctx, tenant); err != nil || w.out.More {
				return err
			}
		}
	}
	return nil
}

// having returns the tenants that a query selects.
func (w *environmentSweep) having(ctx context.Context, query string, tenants [][16]byte, bound any, none bool) ([][16]byte, error) {
	if none || len(tenants) == 0 {
		return nil, nil
	}
	r, err := w.pool.Query(ctx, query, tenants, bound)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, pgx.RowTo[[16]byte])
}

// events looks at the next events of a tenant that are old enough, and removes those that ended.
func (w *environmentSweep) events(ctx context.Context, tenant [16]byte) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		// Locked before they are checked, as in deleteEvents.
		r, err := tx.Query(ctx, `SELECT e.id, e.created_at < $4 AND NOT EXISTS (
				SELECT FROM kept_events AS k WHERE k.tenant_id = e.tenant_id AND k.id = e.id AND k.kept_at >= $4)
			FROM events AS e WHERE e.tenant_id = $1 AND e.id > $2 AND e.id < $3 ORDER BY e.id LIMIT $5 FOR UPDATE OF e SKIP LOCKED`,
			tenant, [16]byte(w.out.Next.Event), firstID(w.EventsBefore.Add(skew)), w.EventsBefore, w.Limit)
		if err != nil {
			return err
		}
		var (
			tenants, ids [][16]byte
			id           [16]byte
			old          bool
		)
		found, last := 0, [16]byte(w.out.Next.Event)
		_, err = pgx.ForEachRow(r, []any{&id, &old}, func() error {
			found, last = found+1, id
			if old {
				tenants, ids = append(tenants, tenant), append(ids, id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		var events, deliveries, attempts int64
		if len(ids) > 0 {
			err := tx.QueryRow(ctx, `WITH `+goneEvents("events")+`,
				tried AS (DELETE FROM attempts AS a USING gone CROSS JOIN LATERAL `+idsOf("gone.deliveries")+` AS n
					WHERE a.delivery_id = n.id AND NOT EXISTS (SELECT FROM dead_letters AS l WHERE l.tenant_id = gone.tenant_id AND l.id = n.id) RETURNING 1)
				SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM followed), (SELECT count(*) FROM tried)`,
				tenants, ids).Scan(&events, &deliveries, &attempts)
			if err != nil {
				return err
			}
		}
		w.out.Events += events
		w.out.Deliveries += deliveries
		w.out.Attempts += attempts
		w.out.Next.Event, w.out.More = godwit.EventID(last), found == w.Limit
		return nil
	})
}

// deadLetters removes expired dead letters of a tenant, with their attempts if their event is gone.
func (w *environmentSweep) deadLetters(ctx context.Context, tenant [16]byte) error {
	var letters, attempts int64
	err := w.pool.QueryRow(ctx, `WITH gone AS (
			DELETE FROM dead_letters WHERE ctid = ANY (ARRAY(
				SELECT ctid FROM dead_letters WHERE tenant_id = $1 AND dead_at < $2 LIMIT $3 FOR UPDATE SKIP LOCKED)) RETURNING tenant_id, id, event_id),
		tried AS (DELETE FROM attempts AS a USING gone WHERE a.delivery_id = gone.id
			AND NOT EXISTS (SELECT FROM events AS e WHERE e.tenant_id = gone.tenant_id AND e.id = gone.event_id) RETURNING 1)
		SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM tried)`, tenant, w.DeadLettersBefore, w.Limit).Scan(&letters, &attempts)
	if err != nil {
		return err
	}
	w.out.DeadLetters += letters
	w.out.Attempts += attempts
	w.out.More = letters >= int64(w.Limit)
	return nil
}
