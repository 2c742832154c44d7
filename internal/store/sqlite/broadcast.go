package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// broadcasts keeps events that were posted for many tenants.
type broadcasts struct{ *database }

const (
	broadcastColumns = `b.id, b.environment_id, b.principal, b.type, b.content_type, b.for_all, b.tenants, b.accepted, b.skipped, b.deliveries,
		b.created_at, b.completed_at`
	broadcastWidth = 12
)

func scanBroadcast(r *rows) godwit.Broadcast {
	return godwit.Broadcast{
		ID: r.id(0), EnvironmentID: r.id(1), Principal: r.id(2), Type: r.text(3), ContentType: r.text(4), All: r.bool(5),
		Tenants: int(r.int(6)), Accepted: int(r.int(7)), Skipped: int(r.int(8)), Deliveries: int(r.int(9)),
		CreatedAt: r.time(10), CompletedAt: r.time(11),
	}
}

// CreateBroadcast stores a broadcast, unless the record of its request exists.
func (s *broadcasts) CreateBroadcast(ctx context.Context, n *store.NewBroadcast) (existing *godwit.IdempotencyRecord, err error) {
	attributes, err := document(n.Event.Attributes)
	if err != nil {
		return nil, err
	}
	carried, err := carriedOf(n.Event)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, "create broadcast", func(c *conn) error {
		existing = nil
		if n.Record != nil {
			if existing, err = reserve(c, n.Record, micros(n.Record.CreatedAt)); err != nil || existing != nil {
				return err
			}
		}
		var open int64
		_, err := c.one(ctx, "SELECT count(*) FROM broadcasts WHERE environment_id = ? AND completed_at = 0", ids(n.EnvironmentID[:]),
			func(r *rows) { open = r.int(0) })
		if err != nil {
			return err
		}
		if open >= int64(n.MaxOpen) && n.Open() {
			return store.ErrLimit
		}
		if err := insertBroadcast(c, &n.Broadcast); err != nil {
			return err
		}
		if n.Open() {
			_, err := c.exec("INSERT INTO broadcast_lists (id, attributes, carried, body, tenants) VALUES (?, ?, ?, ?, ?)",
				n.ID[:], attributes, carried, n.Event.Body, store.JoinIDs(n.Work))
			if err != nil {
				return err
			}
		}
		return insertBroadcastItems(c, n.ID, n.Skips)
	})
	if err != nil {
		return nil, err
	}
	return existing, nil
}

func insertBroadcast(c *conn, b *godwit.Broadcast) error {
	_, err := c.exec(`INSERT INTO broadcasts (id, environment_id, principal, type, content_type, for_all, tenants, done, accepted, skipped,
		deliveries, created_at, completed_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?, 0, ?, ?)`,
		b.ID[:], b.EnvironmentID[:], b.Principal[:], b.Type, b.ContentType, flag(b.All), int64(b.Tenants), int64(b.Skipped),
		micros(b.CreatedAt), micros(b.CompletedAt))
	return err
}

var broadcastItemRows = newBulk("broadcast_items (broadcast_id, tenant_id, event_id, reason, detail)", 5, "")

func insertBroadcastItems(c *conn, id godwit.BroadcastID, items []godwit.BroadcastItem) error {
	fresh := inserter{bulk: broadcastItemRows, c: c}
	for i := range items {
		it := &items[i]
		var event []byte
		if !it.EventID.IsZero() {
			event = it.EventID[:]
		}
		fresh.args = append(fresh.args, id[:], it.TenantID[:], event, string(it.Reason), it.Detail)
		if err := fresh.added(); err != nil {
			return err
		}
	}
	return fresh.flush()
}

// acceptBroadcast moves a broadcast's cursor and stores the results of the part; ok is false when the part does not start there.
func acceptBroadcast(c *conn, a *store.Accept, now time.Time) (ok bool, err error) {
	p := a.Broadcast
	completed := int64(0)
	if p.Last {
		completed = micros(now)
	}
	n, err := c.exec(`UPDATE broadcasts SET done = ?, accepted = accepted + ?, skipped = skipped + ?, deliveries = deliveries + ?, completed_at = ?
		WHERE id = ? AND done = ? AND completed_at = 0`,
		int64(p.To), int64(p.Accepted()), int64(p.Skipped()), int64(p.Deliveries), completed, p.ID[:], int64(p.From))
	if err != nil || n == 0 {
		return false, err
	}
	if p.Last {
		if _, err := c.exec("DELETE FROM broadcast_lists WHERE id = ?", p.ID[:]); err != nil {
			return false, err
		}
	}
	for i := range a.Events {
		if len(a.Events[i].Later) > 0 {
			f := a.Events[i].Fanout()
			if err := insertFanout(c, &f); err != nil {
				return false, err
			}
		}
	}
	return true, insertBroadcastItems(c, p.ID, p.Items)
}

// Broadcast returns a broadcast of an environment.
func (s *broadcasts) Broadcast(ctx context.Context, environment godwit.EnvironmentID, id godwit.BroadcastID) (*godwit.Broadcast, error) {
	var b godwit.Broadcast
	err := s.read(ctx, "read broadcast", func(c *conn) error {
		return c.first(ctx, "SELECT "+broadcastColumns+" FROM broadcasts b WHERE b.id = ? AND b.environment_id = ?", ids(id[:], environment[:]),
			func(r *rows) error { b = scanBroadcast(r); return nil })
	})
	if err != nil {
		return nil, err
	}
	return &b, nil
}

// ListBroadcasts lists the broadcasts of an environment, newest first.
func (s *broadcasts) ListBroadcasts(ctx context.Context, environment godwit.EnvironmentID, p store.Page) (list []godwit.Broadcast, err error) {
	q := newest("SELECT "+broadcastColumns+" FROM broadcasts b", "b.id", p)
	q.where("b.environment_id = ?", environment[:])
	err = s.read(ctx, "list broadcasts", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error { list = append(list, scanBroadcast(r)); return nil })
	})
	return list, err
}

// ListBroadcastItems lists the tenants of a broadcast that have a result.
func (s *broadcasts) ListBroadcastItems(ctx context.Context, f store.BroadcastFilter, p store.Page) (list []godwit.BroadcastItem, err error) {
	q := newest(`SELECT i.tenant_id, i.event_id, i.reason, i.detail, t.uid FROM broadcast_items i
		LEFT JOIN tenants t ON t.id = i.tenant_id AND t.deleted_at = 0`, "i.tenant_id", p)
	q.where("i.broadcast_id = ?", f.ID[:])
	if f.Skipped {
		q.where("i.event_id IS NULL")
	}
	err = s.read(ctx, "list tenants of a broadcast", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			list = append(list, godwit.BroadcastItem{
				TenantID: r.id(0), EventID: r.id(1), Reason: godwit.SkipReason(r.text(2)), Detail: r.text(3), TenantUID: r.text(4),
			})
			return nil
		})
	})
	return list, err
}

// OpenBroadcasts lists incomplete broadcasts, oldest first.
func (s *broadcasts) OpenBroadcasts(ctx context.Context, after godwit.BroadcastID, limit int) (list []store.OpenBroadcast, err error) {
	err = s.read(ctx, "list open broadcasts", func(c *conn) error {
		list = nil
		return c.each(ctx, "SELECT id, done FROM broadcasts INDEXED BY broadcasts_open WHERE completed_at = 0 AND id > ? ORDER BY id LIMIT ?",
			append(ids(after[:]), int64(limit)), func(r *rows) error {
				list = append(list, store.OpenBroadcast{ID: r.id(0), Done: int(r.int(1))})
				return nil
			})
	})
	return list, err
}

// BroadcastWork returns an incomplete broadcast with its event and its tenants.
func (s *broadcasts) BroadcastWork(ctx context.Context, id godwit.BroadcastID) (*store.BroadcastWork, error) {
	w := &store.BroadcastWork{}
	err := s.read(ctx, "read work of a broadcast", func(c *conn) error {
		return c.first(ctx, "SELECT "+broadcastColumns+`, b.done, l.attributes, l.carried, l.body, l.tenants
			FROM broadcasts b JOIN broadcast_lists l ON l.id = b.id WHERE b.id = ?`, ids(id[:]), func(r *rows) error {
			const at = broadcastWidth
			w.Broadcast, w.Done = scanBroadcast(r), int(r.int(at))
			w.Event = &godwit.Event{Type: w.Type, ContentType: w.ContentType, Principal: w.Principal, Body: r.blob(at + 3)}
			w.Work = store.SplitIDs[godwit.TenantID](r.blob(at + 4))
			return errors.Join(r.parse(at+1, &w.Event.Attributes), parseCarried(r.text(at+2), w.Event))
		})
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// sweepBroadcasts removes results of one expired broadcast, and the broadcast itself after them.
func sweepBroadcasts(ctx context.Context, c *conn, before time.Time, limit int, out *store.Swept) (more bool, err error) {
	var firstAt func(time.Time) godwit.BroadcastID = godwit.FirstIDAt
	bound := firstAt(before.Add(slack)) // redundant, but ends the search early
	var id [16]byte
	found, err := c.one(ctx, "SELECT id FROM broadcasts WHERE id < ? AND created_at < ? AND completed_at <> 0 ORDER BY id LIMIT 1",
		[]driver.Value{bound[:], micros(before)}, func(r *rows) { id = r.id(0) })
	if err != nil || !found {
		return false, err
	}
	n, err := c.exec(`DELETE FROM broadcast_items WHERE broadcast_id = ?1 AND tenant_id IN (
		SELECT tenant_id FROM broadcast_items WHERE broadcast_id = ?1 LIMIT ?2)`, id[:], int64(limit))
	if err != nil || n == int64(limit) {
		return true, err
	}
	out.Broadcasts, err = c.exec("DELETE FROM broadcasts WHERE id = ?", id[:])
	return true, err
}
