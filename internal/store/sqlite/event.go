package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const eventColumns = `e.tenant_id, e.id, e.type, e.key, e.content_type, e.attributes, e.principal, e.created_at`

// scanEvent reads eventColumns from position at; the body follows them where it is asked for.
func scanEvent(r *rows, at int) (*godwit.Event, error) {
	e := &godwit.Event{
		TenantID: r.id(at), ID: r.id(at + 1), Type: r.text(at + 2), Key: r.text(at + 3), ContentType: r.text(at + 4),
		Principal: r.id(at + 6), CreatedAt: r.time(at + 7),
	}
	return e, r.parse(at+5, &e.Attributes)
}

const eventWidth = 8

// insertEvent stores an event unless it is there, and reports whether it did.
func insertEvent(c *conn, e *godwit.Event, keptSince int64) (bool, error) {
	attributes, err := document(e.Attributes)
	if err != nil {
		return false, err
	}
	n, err := c.exec(`INSERT INTO events (tenant_id, id, type, key, content_type, attributes, principal, created_at, kept_since, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		e.TenantID[:], e.ID[:], e.Type, e.Key, e.ContentType, attributes, e.Principal[:], micros(e.CreatedAt), keptSince, e.Body)
	return n == 1, err
}

// Event returns an event with its body.
func (s *Store) Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error) {
	var e *godwit.Event
	err := s.read(ctx, "read event", func(c *conn) (err error) {
		e, err = readEvent(ctx, c, tenant, id)
		return err
	})
	return e, err
}

func readEvent(ctx context.Context, c *conn, tenant godwit.TenantID, id godwit.EventID) (e *godwit.Event, err error) {
	err = c.first(ctx, "SELECT "+eventColumns+", e.body FROM events e WHERE e.tenant_id = ? AND e.id = ?", ids(tenant[:], id[:]),
		func(r *rows) error {
			if e, err = scanEvent(r, 0); err == nil {
				e.Body = r.blob(eventWidth)
			}
			return err
		})
	return e, err
}

// ListEvents lists a tenant's events without bodies, newest first.
func (s *Store) ListEvents(ctx context.Context, f store.EventFilter, p store.Page) ([]godwit.Event, error) {
	q := newest("SELECT "+eventColumns+" FROM events e INDEXED BY events_id", "e.id", p)
	q.where("e.tenant_id = ?", f.TenantID[:])
	if prefix, wild := strings.CutSuffix(f.Type, "*"); wild {
		// A range, not LIKE: '_' is an ordinary character here.
		if prefix != "" {
			q.where("e.type > ?", prefix)
			q.where("e.type < ?", prefix[:len(prefix)-1]+string(rune(prefix[len(prefix)-1])+1))
		}
	} else if f.Type != "" {
		q.where("e.type = ?", f.Type)
	}
	if f.Key != "" {
		q.where("e.key = ?", f.Key)
	}
	q.created("e", f.Since, f.Until)
	var events []godwit.Event
	err := s.read(ctx, "list events", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			e, err := scanEvent(r, 0)
			if err == nil {
				events = append(events, *e)
			}
			return err
		})
	})
	return events, err
}

// ids makes arguments of ids.
func ids(id ...[]byte) []driver.Value {
	args := make([]driver.Value, len(id))
	for i := range id {
		args[i] = id[i]
	}
	return args
}
