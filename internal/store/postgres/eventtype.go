package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// eventTypes keeps the catalogue of event types.
type eventTypes struct{ *database }

// PutEventType stores an entry of the catalogue and replaces one of the same name.
func (s *eventTypes) PutEventType(ctx context.Context, t *godwit.EventType) error {
	schemas, err := encodeSchemas(t.Schemas)
	if err != nil {
		return fmt.Errorf("store event type: %w", err)
	}
	var stored int64
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := ownOrShared(ctx, tx, t.TenantID, clean(t.Name)); err != nil {
			return err
		}
		// The environment is locked, so that no other change comes between; a deletion locks the row alone.
		err := tx.QueryRow(ctx, `SELECT version FROM event_types WHERE tenant_id = $1 AND name = $2 FOR UPDATE`, [16]byte(t.TenantID), clean(t.Name)).Scan(&stored)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if t.Version != stored {
			return store.ErrConflict
		}
		_, err = tx.Exec(ctx, `INSERT INTO event_types (tenant_id, name, description, deprecated, example, schemas, created_at, updated_at, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (tenant_id, name) DO UPDATE SET description = excluded.description, deprecated = excluded.deprecated,
				example = excluded.example, schemas = excluded.schemas, updated_at = excluded.updated_at, version = excluded.version`,
			[16]byte(t.TenantID), clean(t.Name), clean(t.Description), t.Deprecated, optionalRaw(t.Example), schemas,
			optionalTime(t.CreatedAt), optionalTime(t.UpdatedAt), stored+1)
		return err
	})
	if err == nil {
		t.Version = stored + 1
	}
	return failed("store event type", err)
}

// ownOrShared returns ErrConflict if the environment shares a type that a tenant wants for itself, or the other way round. It locks the
// environment, so that types of one name do not pass each other.
func ownOrShared(ctx context.Context, tx pgx.Tx, tenant godwit.TenantID, name string) error {
	var (
		environment godwit.EnvironmentID
		home, clash bool
	)
	err := tx.QueryRow(ctx, `SELECT e.id, t.home FROM tenants AS t JOIN environments AS e ON e.id = t.environment_id
		WHERE t.id = $1 AND t.deleted_at IS NULL AND e.deleted_at IS NULL FOR NO KEY UPDATE OF e`, [16]byte(tenant)).Scan(scanID(&environment), &home)
	if err != nil {
		return err
	}
	other := `SELECT EXISTS (SELECT FROM event_types WHERE tenant_id = $1 AND name = $2)`
	if home {
		other = `SELECT EXISTS (SELECT FROM event_types AS y JOIN tenants AS t ON t.id = y.tenant_id
			WHERE t.environment_id = $1 AND y.name = $2 AND NOT t.home AND t.deleted_at IS NULL)`
	}
	if err := tx.QueryRow(ctx, other, [16]byte(environment), name).Scan(&clash); err != nil {
		return err
	}
	if clash {
		return store.ErrConflict
	}
	return nil
}

// encodeSchemas returns nil if there are none.
func encodeSchemas(list []godwit.EventSchema) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // schemas are returned unchanged
	err := e.Encode(list)
	return text.Bytes(), err
}

// optionalRaw returns the parameter for a document that may be missing.
func optionalRaw(text json.RawMessage) any {
	if len(text) == 0 {
		return nil
	}
	return []byte(text)
}

const selectEventTypes = `SELECT tenant_id, name, description, deprecated, example, schemas, created_at, updated_at, version FROM event_types`

func scanEventType(r pgx.CollectableRow) (*godwit.EventType, error) {
	t := &godwit.EventType{}
	var example, schemas []byte
	err := r.Scan(scanID(&t.TenantID), &t.Name, &t.Description, &t.Deprecated, &example, &schemas, scanTime(&t.CreatedAt), scanTime(&t.UpdatedAt), &t.Version)
	if err != nil {
		return nil, err
	}
	t.Example = example
	return t, decodeMap(schemas, &t.Schemas)
}

// EventType returns one entry.
func (s *eventTypes) EventType(ctx context.Context, tenant godwit.TenantID, name string) (*godwit.EventType, error) {
	r, err := s.pool.Query(ctx, selectEventTypes+` WHERE tenant_id = $1 AND name = $2`, [16]byte(tenant), clean(name))
	if err != nil {
		return nil, failed("read event type", err)
	}
	t, err := pgx.CollectExactlyOneRow(r, scanEventType)
	return t, failed("read event type", err)
}

// ListEventTypes lists entries by name, after the given name.
func (s *eventTypes) ListEventTypes(ctx context.Context, tenant godwit.TenantID, after string, limit int) ([]godwit.EventType, error) {
	r, err := s.pool.Query(ctx, selectEventTypes+` WHERE tenant_id = $1 AND name > $2 ORDER BY name LIMIT $3`,
		[16]byte(tenant), clean(after), max(limit, 0))
	if err != nil {
		return nil, failed("list event types", err)
	}
	list, err := pgx.CollectRows(r, scanEventType)
	return values(list), failed("list event types", err)
}

// DeleteEventType removes an entry.
func (s *eventTypes) DeleteEventType(ctx context.Context, tenant godwit.TenantID, name string, version int64) error {
	var there, deleted bool
	err := s.pool.QueryRow(ctx, `WITH gone AS (DELETE FROM event_types WHERE tenant_id = $1 AND name = $2 AND $3::int8 IN (0, version) RETURNING 1)
		SELECT EXISTS (SELECT FROM event_types WHERE tenant_id = $1 AND name = $2), EXISTS (SELECT FROM gone)`,
		[16]byte(tenant), clean(name), version).Scan(&there, &deleted)
	switch {
	case err != nil || deleted:
		return failed("delete event type", err)
	case there && version != 0:
		return fmt.Errorf("delete event type: %w", store.ErrConflict)
	}
	return fmt.Errorf("delete event type: %w", store.ErrNotFound)
}
