package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const eventTypeColumns = "tenant_id, name, description, deprecated, created_at, updated_at, example, schemas, version"

func scanEventType(r *rows) (godwit.EventType, error) {
	t := godwit.EventType{
		TenantID: r.id(0), Name: r.text(1), Description: r.text(2), Deprecated: r.bool(3), CreatedAt: r.time(4), UpdatedAt: r.time(5), Version: r.int(8),
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
	var version int64
	err = s.writeShared(ctx, "put event type", func(c *conn) error {
		if err := ownOrShared(c, t.TenantID, t.Name); err != nil {
			return err
		}
		var stored int64
		known, err := c.one(ctx, "SELECT version FROM event_types WHERE tenant_id = ? AND name = ?", []driver.Value{t.TenantID[:], t.Name},
			func(r *rows) { stored = r.int(0) })
		if err != nil {
			return err
		}
		if t.Version != stored {
			return store.ErrConflict
		}
		if !known {
			if err := countTypes(c, t.TenantID, 1); err != nil {
				return err
			}
		}
		_, err = c.exec("INSERT INTO event_types ("+eventTypeColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (tenant_id, name) DO UPDATE SET description = excluded.description, deprecated = excluded.deprecated,
			updated_at = excluded.updated_at, example = excluded.example, schemas = excluded.schemas, version = excluded.version`,
			t.TenantID[:], t.Name, t.Description, flag(t.Deprecated), micros(t.CreatedAt), micros(t.UpdatedAt), string(t.Example), schemas, stored+1)
		version = stored + 1
		return err
	})
	if err == nil {
		t.Version = version
	}
	return err
}

// ownOrShared returns ErrConflict if the environment shares a type that a tenant wants for itself, or the other way round.
func ownOrShared(c *conn, tenant godwit.TenantID, name string) error {
	var (
		environment godwit.EnvironmentID
		home        bool
	)
	found, err := c.one(context.Background(), "SELECT environment_id, home FROM tenants WHERE id = ? AND deleted_at = 0", ids(tenant[:]),
		func(r *rows) { environment, home = r.id(0), r.bool(1) })
	if err != nil {
		return err
	}
	if !found {
		return store.ErrNotFound
	}
	other := "SELECT 1 FROM event_types WHERE tenant_id = ? AND name = ?"
	if home {
		other = `SELECT 1 FROM event_types y JOIN tenants t ON t.id = y.tenant_id
			WHERE t.environment_id = ? AND y.name = ? AND t.home = 0 AND t.deleted_at = 0 LIMIT 1`
	}
	clash, err := c.one(context.Background(), other, []driver.Value{environment[:], name}, nil)
	if err == nil && clash {
		return store.ErrConflict
	}
	return err
}

// countTypes keeps the number of a tenant's event types in its row, so that a tenant without any costs no lookup.
func countTypes(c *conn, tenant godwit.TenantID, more int64) error {
	_, err := c.exec("UPDATE tenants SET own_types = own_types + ? WHERE id = ?", more, tenant[:])
	return err
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
func (s *eventTypes) DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string, version int64) error {
	return s.write(ctx, "delete event type", func(c *conn) error {
		n, err := c.exec("DELETE FROM event_types WHERE tenant_id = ?1 AND name = ?2 AND ?3 IN (0, version)", tenant[:], name, version)
		if err != nil {
			return err
		}
		if n == 0 {
			known, err := c.one(ctx, "SELECT 1 FROM event_types WHERE tenant_id = ? AND name = ?", []driver.Value{tenant[:], name}, nil)
			if err == nil && known {
				return store.ErrConflict
			}
			return cmp.Or(err, store.ErrNotFound)
		}
		return countTypes(c, tenant, -n)
	})
}
