package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const eventColumns = `e.tenant_id, e.id, e.type, e.key, e.content_type, e.attributes, e.principal, e.created_at,
	e.format, e.source_id, e.occurred_at, e.carried`

// scanEvent reads eventColumns from position at; the body follows them if the query selects it.
func scanEvent(r *rows, at int) (*godwit.Event, error) {
	e := &godwit.Event{
		TenantID: r.id(at), ID: r.id(at + 1), Type: r.text(at + 2), Key: r.text(at + 3), ContentType: r.text(at + 4),
		Principal: r.id(at + 6), CreatedAt: r.time(at + 7), Format: r.text(at + 8), SourceID: r.text(at + 9), OccurredAt: r.time(at + 10),
	}
	if carried := r.text(at + 11); carried != "" {
		if err := parseCarried(carried, e); err != nil {
			return e, err
		}
	}
	return e, r.parse(at+5, &e.Attributes)
}

const eventWidth = 12

var eventRows = newBulk(`events (tenant_id, id, type, key, content_type, attributes, principal, created_at, kept_since, format,
	source_id, occurred_at, deliveries, body, carried)`, 15, " ON CONFLICT DO NOTHING")

// appendEvent appends a row for eventRows.
func appendEvent(args []driver.Value, e *godwit.Event, keptSince int64, recipients []recipient) ([]driver.Value, error) {
	attributes, err := document(e.Attributes)
	if err != nil {
		return nil, err
	}
	carried, err := carriedOf(e)
	packed := make(packer, 0, 48*len(recipients))
	for i := range recipients {
		packed.recipient(recipients[i])
	}
	return append(args,
		e.TenantID[:], e.ID[:], e.Type, e.Key, e.ContentType, attributes, e.Principal[:], micros(e.CreatedAt), keptSince,
		e.Format, e.SourceID, micros(e.OccurredAt), []byte(packed), e.Body, carried), err
}

// events reads stored events.
type events struct{ *database }

// Event returns an event with its body.
func (s *events) Event(ctx context.Context, tenant godwit.TenantID, id godwit.EventID) (*godwit.Event, error) {
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
func (s *events) ListEvents(ctx context.Context, f store.EventFilter, p store.Page) ([]godwit.Event, error) {
	var list []godwit.Event
	err := s.read(ctx, "list events", func(c *conn) (err error) {
		if f.Key != "" {
			list, err = listKeyed(ctx, c, &f, p)
		} else {
			list, err = listedEvents(ctx, c, selectedEvents("events e INDEXED BY events_id", &f, p))
		}
		return err
	})
	return list, err
}

// selectedEvents returns the query for the events that a filter selects.
func selectedEvents(from string, f *store.EventFilter, p store.Page) *listing {
	q := newest("SELECT "+eventColumns+" FROM "+from, "e.id", p)
	q.where("e.tenant_id = ?", f.TenantID[:])
	if prefix, wild := strings.CutSuffix(f.Type, "*"); wild {
		// A range, not LIKE, because '_' is an ordinary character here.
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
	return q
}

func listedEvents(ctx context.Context, c *conn, q *listing) (list []godwit.Event, err error) {
	err = q.each(ctx, c, func(r *rows) error {
		e, err := scanEvent(r, 0)
		if err == nil {
			list = append(list, *e)
		}
		return err
	})
	return list, err
}

// ScanEvents passes a tenant's events to fn, newest first. Columns that are not asked for are not read: a long body lies on pages of its own.
func (s *events) ScanEvents(ctx context.Context, f store.EventScan, fn func(*store.ScannedEvent) bool) error {
	columns := "e.id, e.type, e.key, e.created_at, e.attributes"
	var args []driver.Value
	if f.Bodies && f.Type != "" {
		columns += ", CASE WHEN " + typeIs + " THEN e.body END"
		args = typeArguments(f.Type)
	} else if f.Bodies {
		columns += ", e.body"
	} else {
		columns += ", NULL"
	}
	if f.Carried {
		columns += ", e.carried"
	} else {
		columns += ", NULL"
	}
	q := newest("SELECT "+columns+" FROM events e INDEXED BY events_id", "e.id", store.Page{After: f.After, Limit: f.Limit})
	q.args = append(args, q.args...)
	q.where("e.tenant_id = ?", f.TenantID[:])
	q.created("e", f.Since, f.Until)
	return s.read(ctx, "scan events", func(c *conn) error {
		r, err := c.query(ctx, q.text(), q.arguments()...)
		if err != nil {
			return err
		}
		defer r.close()
		for r.next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			e := store.ScannedEvent{
				ID: r.id(0), Type: r.text(1), Key: []byte(r.text(2)), CreatedAt: r.time(3), Attributes: []byte(r.text(4)), Body: r.blob(5), Carried: []byte(r.text(6)),
			}
			if !fn(&e) {
				return nil
			}
		}
		return r.err
	})
}

// typeIs compares the type with a pattern as godwit.MatchPattern does; typeArguments makes its arguments: the exact type, and the range of a prefix.
const typeIs = "(e.type = ? OR e.type > ? AND e.type < ?)"

func typeArguments(pattern string) []driver.Value {
	prefix, wild := strings.CutSuffix(pattern, "*")
	switch {
	case wild && prefix == "":
		return []driver.Value{pattern, "", "\U0010FFFF"}
	case wild:
		return []driver.Value{pattern, prefix, prefix[:len(prefix)-1] + string(rune(prefix[len(prefix)-1])+1)}
	}
	return []driver.Value{pattern, "", ""}
}

// EventsAfter lists a tenant's events, oldest first. It checks the types before it reads whole events, since patterns may
// exclude many.
func (s *events) EventsAfter(ctx context.Context, f store.EventRange) ([]godwit.Event, error) {
	before := f.Before
	if before.IsZero() {
		before = godwit.EventID{0xff}
	}
	var events []godwit.Event
	err := s.read(ctx, "list events in order", func(c *conn) error {
		r, err := c.query(ctx, `SELECT e.id, e.type, e.created_at, e.occurred_at FROM events e INDEXED BY events_id
			WHERE e.tenant_id = ? AND e.id > ? AND e.id < ? ORDER BY e.id`, f.TenantID[:], f.After[:], before[:])
		if err != nil {
			return err
		}
		defer r.close()
		for size := 0; len(events) < f.Limit && r.next(); {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !inRange(&f, r.text(1), &godwit.Event{CreatedAt: r.time(2), OccurredAt: r.time(3)}) {
				continue
			}
			e, err := readEvent(ctx, c, f.TenantID, r.id(0))
			if err != nil {
				return err
			}
			if size += len(e.Body); f.MaxBytes > 0 && size > f.MaxBytes && len(events) > 0 {
				return nil
			}
			events = append(events, *e)
		}
		return r.err
	})
	return events, err
}

func inRange(f *store.EventRange, eventType string, e *godwit.Event) bool {
	return within(e.Time(), f.Since, f.Until) && (len(f.Patterns) == 0 || slices.ContainsFunc(f.Patterns, func(p string) bool { return godwit.MatchPattern(p, eventType) }))
}

// ids converts ids to arguments.
func ids(id ...[]byte) []driver.Value {
	args := make([]driver.Value, len(id))
	for i := range id {
		args[i] = id[i]
	}
	return args
}
