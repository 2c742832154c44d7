package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const eventTypeColumns = "tenant_id, name, description, deprecated, created_at, updated_at, example, schemas"

func scanEventType(r *rows) (godwit.EventType, error) {
	t := godwit.EventType{
		TenantID: r.id(0), Name: r.text(1), Description: r.text(2), Deprecated: r.bool(3), CreatedAt: r.time(4), UpdatedAt: r.time(5),
	}
	if example := r.text(6); example != "" {
		t.Example = json.RawMessage(example)
	}
	return t, r.parse(7, &t.Schemas)
}

// encodeSchemas keeps each schema unchanged, except for whitespace between tokens.
func encodeSchemas(schemas []godwit.EventSchema) (driver.Value, error) {
	if len(schemas) == 0 {
		return nil, nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(schemas); err != nil {
		return nil, fmt.Errorf("encode schemas: %w", err)
	}
	return b.String(), nil
}

// eventTypes keeps the catalogue of event types.
type eventTypes struct{ *database }

// PutEventType stores an entry of a tenant's catalogue.
func (s *eventTypes) PutEventType(ctx context.Context, t *godwit.EventType) error {
	schemas, err := encodeSchemas(t.Schemas)
	if err != nil {
		return err
	}
	return s.write(ctx, "put event type", func(c *conn) error {
		_, err := c.exec("INSERT INTO event_types ("+eventTypeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant_id, name) DO UPDATE SET description = excluded.description, deprecated = excluded.deprecated,
			updated_at = excluded.updated_at, example = excluded.example, schemas = excluded.schemas`,
			t.TenantID[:], t.Name, t.Description, flag(t.Deprecated), micros(t.CreatedAt), micros(t.UpdatedAt), string(t.Example), schemas)
		return err
	})
}

// EventType returns an entry.
func (s *eventTypes) EventType(ctx context.Context, tenant godwit.TenantID, name string) (*godwit.EventType, error) {
	var t godwit.EventType
	err := s.read(ctx, "read event type", func(c *conn) error {
		return c.first(ctx, "SELECT "+eventTypeColumns+" FROM event_types WHERE tenant_id = ? AND name = ?",
			[]driver.Value{tenant[:], name}, func(r *rows) (err error) { t, err = scanEventType(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// ListEventTypes lists a tenant's entries by name.
func (s *eventTypes) ListEventTypes(ctx context.Context, tenant godwit.TenantID, after string, limit int) ([]godwit.EventType, error) {
	var ts []godwit.EventType
	err := s.read(ctx, "list event types", func(c *conn) error {
		return c.each(ctx, "SELECT "+eventTypeColumns+" FROM event_types WHERE tenant_id = ? AND name > ? ORDER BY name LIMIT ?",
			[]driver.Value{tenant[:], after, int64(max(limit, 0))}, func(r *rows) error {
				t, err := scanEventType(r)
				ts = append(ts, t)
				return err
			})
	})
	return ts, err
}

// DeleteEventType removes an entry from the catalogue.
func (s *eventTypes) DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string) error {
	return s.write(ctx, "delete event type", func(c *conn) error {
		n, err := c.exec("DELETE FROM event_types WHERE tenant_id = ? AND name = ?", tenant[:], name)
		if err == nil && n == 0 {
			return store.ErrNotFound
		}
		return err
	})
}
