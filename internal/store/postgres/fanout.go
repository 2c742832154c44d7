package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var fanoutColumns = []string{
	"id uuid", "tenant_id uuid", "run_trigger text", "events bytea", "endpoints bytea", "done int4",
}

var (
	insertFanouts = prepared("fanouts", insert("fanouts", fanoutColumns...)+` ON CONFLICT DO NOTHING`)
	moveFanouts   = prepared("move_fanouts", `WITH moved AS (UPDATE fanouts AS f SET done = n.upto
			FROM `+rows(1, "id uuid", "since int4", "upto int4")+` AS n WHERE f.id = n.id AND f.done = n.since RETURNING f.id)
		SELECT expect(count(*), $4, '`+stateFanoutMoved+`') FROM moved`)
	endFanouts = prepared("end_fanouts", `DELETE FROM fanouts WHERE id = ANY ($1::uuid[])`)
)

// addNewFanouts stores fan-outs that are not stored.
func addNewFanouts(p *pipeline, list []store.Fanout) {
	if len(list) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, list, func(f store.Fanout) { a.id(f.ID()) })
	column(a, typeID, list, func(f store.Fanout) { a.id(f.TenantID) })
	column(a, typeText, list, func(f store.Fanout) { a.text(string(f.Trigger)) })
	column(a, typeBytes, list, func(f store.Fanout) { a.bytes(store.JoinIDs(f.Events)) })
	column(a, typeBytes, list, func(f store.Fanout) { a.bytes(store.JoinIDs(f.Endpoints)) })
	column(a, typeInt4, list, func(f store.Fanout) { a.int4(f.Done) })
	p.add(insertFanouts, nil)
}

// addFanouts stores new fan-outs and moves the cursors of those whose parts are in the batch.
func (c *commit) addFanouts(p *pipeline) {
	addNewFanouts(p, c.batch.Fanouts)
	if len(c.parts) == 0 {
		return
	}
	a := p.begin()
	column(a, typeID, c.parts, func(f *store.FanoutPart) { a.id(f.ID) })
	column(a, typeInt4, c.parts, func(f *store.FanoutPart) { a.int4(f.From) })
	column(a, typeInt4, c.parts, func(f *store.FanoutPart) { a.int4(f.To) })
	a.scalarInt8(int64(len(c.parts)))
	p.add(moveFanouts, nil)
	var last []*store.FanoutPart
	for _, part := range c.parts {
		if part.Last {
			last = append(last, part)
		}
	}
	if len(last) > 0 {
		a := p.begin()
		column(a, typeID, last, func(f *store.FanoutPart) { a.id(f.ID) })
		p.add(endFanouts, nil)
	}
}

// cursors locks rows with a cursor, and returns where each stands.
func cursors(ctx context.Context, tx pgx.Tx, sql string, ids [][16]byte) (map[[16]byte]int, error) {
	r, err := tx.Query(ctx, sql, ids)
	if err != nil {
		return nil, err
	}
	stands := map[[16]byte]int{}
	var id [16]byte
	var done int
	_, err = pgx.ForEachRow(r, []any{&id, &done}, func() error {
		stands[id] = done
		return nil
	})
	return stands, err
}

// leaveMoved leaves out parts that do not start at their fan-out's cursor. It locks the other fan-outs.
func (c *commit) leaveMoved(ctx context.Context, tx pgx.Tx) error {
	if len(c.parts) == 0 {
		return nil
	}
	list := make([][16]byte, len(c.parts))
	for i, part := range c.parts {
		list[i] = part.ID
	}
	stands, err := cursors(ctx, tx, `SELECT id, done FROM fanouts WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, list)
	if err != nil {
		return err
	}
	moved := func(part *store.FanoutPart) bool {
		done, open := stands[part.ID]
		return !open || done != part.From
	}
	for i := range c.batch.Accepts {
		if part := c.batch.Accepts[i].Part; part != nil && moved(part) {
			c.moved = append(c.moved, i)
		}
	}
	c.parts = slices.DeleteFunc(c.parts, moved)
	c.plain = slices.DeleteFunc(c.plain, func(e newEvent) bool { return e.part != nil && moved(e.part) })
	return nil
}

const selectFanouts = `SELECT tenant_id, run_trigger, events, done, `

func scanFanout(r pgx.CollectableRow) (store.Fanout, error) {
	var f store.Fanout
	var tenant [16]byte
	var trigger string
	var events, endpoints []byte
	err := r.Scan(&tenant, &trigger, &events, &f.Done, &endpoints)
	f.TenantID, f.Trigger = tenant, godwit.Trigger(trigger)
	f.Events, f.Endpoints = store.SplitIDs[godwit.EventID](events), store.SplitIDs[godwit.EndpointID](endpoints)
	return f, err
}

// fanouts reads the fan-outs that are not complete.
type fanouts struct{ *database }

// Fanouts lists incomplete fan-outs without their endpoints.
func (s *fanouts) Fanouts(ctx context.Context, after godwit.EventID, limit int) ([]store.Fanout, error) {
	r, err := s.pool.Query(ctx, selectFanouts+`NULL::bytea FROM fanouts WHERE id > $1 ORDER BY id LIMIT $2`, [16]byte(after), limit)
	if err != nil {
		return nil, failed("list fan-outs", err)
	}
	list, err := pgx.CollectRows(r, scanFanout)
	return list, failed("list fan-outs", err)
}

// Fanout returns an incomplete fan-out.
func (s *fanouts) Fanout(ctx context.Context, id godwit.EventID) (*store.Fanout, error) {
	r, err := s.pool.Query(ctx, selectFanouts+`endpoints FROM fanouts WHERE id = $1`, [16]byte(id))
	if err != nil {
		return nil, failed("read fan-out", err)
	}
	f, err := pgx.CollectExactlyOneRow(r, scanFanout)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, failed("read fan-out", err)
	}
	return &f, nil
}
