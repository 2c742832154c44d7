package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// logDepth is how many deliveries of each kind ListAttempts examines.
const logDepth = 1000

// ListAttempts examines an endpoint's newest deliveries and those with more than one accepted attempt, latest tried first. It
// merges their attempts by time.
func (s *attempts) ListAttempts(ctx context.Context, f store.AttemptFilter, limit int) ([]store.LoggedAttempt, error) {
	deliveries, err := s.loggedDeliveries(ctx, f)
	if err != nil || len(deliveries) == 0 {
		return nil, failed("list attempts", err)
	}
	list, err := s.readLog(ctx, f, deliveries, limit)
	if err == nil {
		err = s.countRuns(ctx, list)
	}
	if err == nil {
		err = s.nameTypes(ctx, f.TenantID, list)
	}
	return list, failed("list attempts", err)
}

// loggedDeliveries finds the deliveries whose attempts may be in the log.
func (s *attempts) loggedDeliveries(ctx context.Context, f store.AttemptFilter) (map[godwit.DeliveryID]*godwit.Delivery, error) {
	var w where
	w.add("tenant_id = ? AND endpoint_id = ?", [16]byte(f.TenantID), [16]byte(f.EndpointID))
	if !f.Until.IsZero() { // later deliveries have no attempt before Until
		w.add("id < ?", firstID(f.Until.Add(skew)))
	}
	newest := w.newestFirst(logDepth)
	byID := w.sql()
	if !f.Since.IsZero() { // deliveries not updated since have no attempt since
		w.add("updated_at >= ?", f.Since)
	}
	latest := fmt.Sprintf(` ORDER BY updated_at DESC LIMIT %d`, logDepth)
	sql := `(SELECT ` + pendingFields + ` FROM pending_deliveries AS d` + w.sql() + ` AND attempts > 0` + latest + `)
		UNION (SELECT ` + deliveryFields + ` FROM deliveries AS d` + w.sql() + ` AND (attempts > 1 OR status <> 'accepted')` + latest + `)`
	if len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, godwit.Accepted) {
		sql += ` UNION (SELECT ` + deliveryFields + ` FROM deliveries AS d` + byID + newest + `)`
	}
	r, err := s.pool.Query(ctx, `SELECT d.*, '' FROM (`+sql+`) AS d`, w.args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(r, scanDelivery)
	found := make(map[godwit.DeliveryID]*godwit.Delivery, len(list))
	for _, d := range list {
		found[d.ID] = d
	}
	return found, err
}

// readLog reads the latest attempts of the deliveries by index lookups: OFFSET 0 keeps the planner from scanning the table.
// Ids follow time, so the oldest delivery and the filter tell which partitions to read.
func (s *attempts) readLog(ctx context.Context, f store.AttemptFilter, deliveries map[godwit.DeliveryID]*godwit.Delivery, limit int) ([]store.LoggedAttempt, error) {
	ids := make([][16]byte, 0, len(deliveries))
	first := f.Since
	for id, d := range deliveries {
		ids = append(ids, id)
		if f.Since.IsZero() && (first.IsZero() || d.CreatedAt.Before(first)) {
			first = d.CreatedAt
		}
	}
	var w where
	w.add("delivery_id = c.id AND a.id >= ?", firstID(first.Add(-skew)))
	if !f.Since.IsZero() {
		w.add("started_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		w.add("started_at <= ? AND a.id < ?", f.Until, firstID(f.Until.Add(skew)))
	}
	if len(f.Outcomes) > 0 {
		outcomes := make([]string, len(f.Outcomes))
		for i, o := range f.Outcomes {
			outcomes[i] = string(o)
		}
		w.add("outcome = ANY (?)", outcomes)
	}
	if f.Exhausted { // as godwit.Attempt.Exhausted
		w.add("outcome = ? AND next_at IS NULL AND trigger <> ?", string(godwit.Transient), string(godwit.TriggerTest))
	}
	w.args = append(w.args, ids)
	r, err := s.pool.Query(ctx, fmt.Sprintf(`SELECT a.* FROM unnest($%d::uuid[]) AS c (id)
		CROSS JOIN LATERAL (SELECT `+attemptFields+` FROM attempts AS a%s OFFSET 0) AS a
		ORDER BY started_at DESC, a.id DESC LIMIT %d`, len(w.args), w.sql(), max(limit, 0)), w.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, func(r pgx.CollectableRow) (l store.LoggedAttempt, err error) {
		l.Attempt, err = scanAttempt(r)
		d := deliveries[l.Attempt.DeliveryID]
		belong(&l.Attempt, d)
		l.Final = godwit.DeliveryPending
		if l.Attempt.N >= d.Attempts {
			l.Final = d.Status
		}
		l.Run = max(d.Run.Attempts-(d.Attempts-l.Attempt.N), 0) // 0: in an earlier run
		return l, err
	})
}

// countRuns numbers the attempts of earlier runs. Each run begins with an attempt whose trigger says so.
func (s *attempts) countRuns(ctx context.Context, list []store.LoggedAttempt) error {
	var ids [][16]byte
	for i := range list {
		if list[i].Run == 0 {
			ids = append(ids, list[i].Attempt.DeliveryID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	continued := []string{string(godwit.TriggerRetry), string(godwit.TriggerRefresh), string(godwit.TriggerMoved)}
	r, err := s.pool.Query(ctx, `SELECT delivery_id, n FROM attempts WHERE delivery_id = ANY ($1) AND (n = 1 OR NOT trigger = ANY ($2))
		ORDER BY n`, ids, continued)
	if err != nil {
		return err
	}
	begun := map[godwit.DeliveryID][]int{} // first attempts of its runs, in order
	var id godwit.DeliveryID
	var n int
	_, err = pgx.ForEachRow(r, []any{scanID(&id), &n}, func() error {
		begun[id] = append(begun[id], n)
		return nil
	})
	for i := range list {
		l := &list[i]
		if l.Run > 0 {
			continue
		}
		l.Run = l.Attempt.N // the beginning was swept
		for _, first := range begun[l.Attempt.DeliveryID] {
			if first <= l.Attempt.N {
				l.Run = l.Attempt.N - first + 1
			}
		}
	}
	return err
}

// nameTypes fills in the types of the events.
func (s *attempts) nameTypes(ctx context.Context, tenant godwit.TenantID, list []store.LoggedAttempt) error {
	ids := make([][16]byte, len(list))
	for i := range list {
		ids[i] = list[i].Attempt.EventID
	}
	r, err := s.pool.Query(ctx, `SELECT id, type FROM events WHERE tenant_id = $1 AND id = ANY ($2)`, [16]byte(tenant), ids)
	if err != nil {
		return err
	}
	types := map[godwit.EventID]string{}
	var id godwit.EventID
	var name string
	_, err = pgx.ForEachRow(r, []any{scanID(&id), &name}, func() error {
		types[id] = name
		return nil
	})
	for i := range list {
		list[i].EventType = types[list[i].Attempt.EventID]
	}
	return err
}
