package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// insertFanout stores a fan-out, unless it is already stored.
func insertFanout(c *conn, f *store.Fanout) error {
	id := f.ID()
	n, err := c.exec("INSERT INTO fanouts (id, done) VALUES (?, ?) ON CONFLICT DO NOTHING", id[:], int64(f.Done))
	if err != nil || n == 0 {
		return err
	}
	_, err = c.exec("INSERT INTO fanout_lists (id, tenant_id, run_trigger, events, endpoints) VALUES (?, ?, ?, ?, ?)",
		id[:], f.TenantID[:], string(f.Trigger), store.JoinIDs(f.Events), store.JoinIDs(f.Endpoints))
	return err
}

// advanceFanout moves the fan-out's cursor; ok is false when the part does not start there.
func advanceFanout(c *conn, p *store.FanoutPart) (ok bool, err error) {
	if !p.Last {
		n, err := c.exec("UPDATE fanouts SET done = ? WHERE id = ? AND done = ?", int64(p.To), p.ID[:], int64(p.From))
		return n == 1, err
	}
	n, err := c.exec("DELETE FROM fanouts WHERE id = ? AND done = ?", p.ID[:], int64(p.From))
	if err != nil || n == 0 {
		return false, err
	}
	_, err = c.exec("DELETE FROM fanout_lists WHERE id = ?", p.ID[:])
	return true, err
}

const (
	fanoutColumns = "SELECT l.tenant_id, l.run_trigger, l.events, f.done, "
	fanoutTables  = " FROM fanouts f JOIN fanout_lists l ON l.id = f.id "
)

func scanFanout(r *rows) store.Fanout {
	return store.Fanout{
		TenantID: r.id(0), Trigger: godwit.Trigger(r.text(1)),
		Events: store.SplitIDs[godwit.EventID](r.blob(2)), Done: int(r.int(3)), Endpoints: store.SplitIDs[godwit.EndpointID](r.blob(4)),
	}
}

// fanouts reads the fan-outs that are not complete.
type fanouts struct{ *database }

// Fanouts lists incomplete fan-outs without their endpoints.
func (s *fanouts) Fanouts(ctx context.Context, after godwit.EventID, limit int) (list []store.Fanout, err error) {
	err = s.read(ctx, "list fan-outs", func(c *conn) error {
		list = nil
		args := append(ids(after[:]), int64(limit))
		return c.each(ctx, fanoutColumns+"NULL"+fanoutTables+"WHERE f.id > ? ORDER BY f.id LIMIT ?", args, func(r *rows) error {
			list = append(list, scanFanout(r))
			return nil
		})
	})
	return list, err
}

// Fanout returns an incomplete fan-out.
func (s *fanouts) Fanout(ctx context.Context, id godwit.EventID) (*store.Fanout, error) {
	var f store.Fanout
	err := s.read(ctx, "read fan-out", func(c *conn) error {
		return c.first(ctx, fanoutColumns+"l.endpoints"+fanoutTables+"WHERE f.id = ?", ids(id[:]), func(r *rows) error { f = scanFanout(r); return nil })
	})
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// eventsFanningOut returns the events of incomplete fan-outs.
func eventsFanningOut(ctx context.Context, c *conn) (map[godwit.EventID]bool, error) {
	events := map[godwit.EventID]bool{}
	err := c.each(ctx, "SELECT events FROM fanout_lists", nil, func(r *rows) error {
		for _, id := range store.SplitIDs[godwit.EventID](r.blob(0)) {
			events[id] = true
		}
		return nil
	})
	return events, err
}
