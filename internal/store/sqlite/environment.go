package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const environmentColumns = "id, uid, name, settings, version, created_at, updated_at, deleted_at, portal"

func scanEnvironment(r *rows) (godwit.Environment, error) {
	e := godwit.Environment{
		ID: r.id(0), UID: r.text(1), Name: r.text(2), Version: r.int(4), CreatedAt: r.time(5), UpdatedAt: r.time(6), DeletedAt: r.time(7),
	}
	return e, errors.Join(r.parse(3, &e.EnvironmentSettings), r.parse(8, &e.Portal))
}

// environments keeps environments.
type environments struct{ *database }

// CreateEnvironment stores an environment and its home tenant.
func (s *environments) CreateEnvironment(ctx context.Context, e *godwit.Environment) error {
	settings, err := documents(e.EnvironmentSettings, e.Portal)
	if err != nil {
		return err
	}
	return s.write(ctx, "create environment", func(c *conn) error {
		_, err := c.exec("INSERT INTO environments ("+environmentColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", e.ID[:], e.UID, e.Name, settings[0],
			e.Version, micros(e.CreatedAt), micros(e.UpdatedAt), micros(e.DeletedAt), settings[1])
		if err == nil {
			_, err = c.exec(`INSERT INTO tenants (id, name, require_idempotency_key, created_at, deleted_at, environment_id, home)
				VALUES (?1, ?2, 0, ?3, 0, ?1, 1)`, e.ID[:], e.Name, micros(e.CreatedAt))
		}
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
}

// UpdateEnvironment changes an environment, and the name of its home tenant.
func (s *environments) UpdateEnvironment(ctx context.Context, e *godwit.Environment) error {
	settings, err := documents(e.EnvironmentSettings, e.Portal)
	if err != nil {
		return err
	}
	err = s.write(ctx, "update environment", func(c *conn) error {
		if err := atVersion(c, "environments", e.ID, e.Version); err != nil {
			return err
		}
		_, err := c.exec("UPDATE environments SET uid = ?, name = ?, settings = ?, portal = ?, version = version + 1, updated_at = ? WHERE id = ?",
			e.UID, e.Name, settings[0], settings[1], micros(e.UpdatedAt), e.ID[:])
		if taken(err) {
			return store.ErrConflict
		}
		if err != nil {
			return err
		}
		_, err = c.exec("UPDATE tenants SET name = ?, version = version + 1 WHERE id = ?", e.Name, e.ID[:])
		return err
	})
	if err == nil {
		e.Version++
	}
	return err
}

// atVersion returns ErrNotFound if the row is missing or deleted, and ErrConflict if it has another version.
func atVersion(c *conn, table string, id [16]byte, version int64) error {
	var stored int64
	found, err := c.one(context.Background(), "SELECT version FROM "+table+" WHERE id = ? AND deleted_at = 0", ids(id[:]),
		func(r *rows) { stored = r.int(0) })
	switch {
	case err != nil:
		return err
	case !found:
		return store.ErrNotFound
	case stored != version:
		return store.ErrConflict
	}
	return nil
}

// DeleteEnvironment marks an environment without tenants as deleted.
func (s *environments) DeleteEnvironment(ctx context.Context, e *godwit.Environment) error {
	return s.write(ctx, "delete environment", func(c *conn) error {
		if err := atVersion(c, "environments", e.ID, e.Version); err != nil {
			return err
		}
		used, err := c.one(ctx, "SELECT 1 FROM tenants WHERE environment_id = ? AND home = 0 AND deleted_at = 0 LIMIT 1", ids(e.ID[:]), nil)
		if err != nil {
			return err
		}
		if used {
			return store.ErrConflict
		}
		at := micros(e.DeletedAt)
		if _, err := c.exec("UPDATE environments SET deleted_at = ?, version = version + 1 WHERE id = ?", at, e.ID[:]); err != nil {
			return err
		}
		if _, err := c.exec("DELETE FROM event_types WHERE tenant_id = ?", e.ID[:]); err != nil {
			return err
		}
		if _, err := c.exec("UPDATE secrets SET expires_at = ?1 WHERE endpoint_id = ?2 AND (expires_at = 0 OR expires_at > ?1)", at, e.ID[:]); err != nil {
			return err
		}
		_, err = deleteTenant(ctx, c, godwit.HomeOf(e.ID), true, at)
		return err
	})
}

// Environment returns an environment that is not deleted.
func (s *environments) Environment(ctx context.Context, id godwit.EnvironmentID) (*godwit.Environment, error) {
	return s.readEnvironment(ctx, "id = ?", id[:])
}

// EnvironmentByUID returns the environment with a uid.
func (s *environments) EnvironmentByUID(ctx context.Context, uid string) (*godwit.Environment, error) {
	return s.readEnvironment(ctx, "uid = ?", uid)
}

func (s *environments) readEnvironment(ctx context.Context, where string, arg driver.Value) (*godwit.Environment, error) {
	var e godwit.Environment
	err := s.read(ctx, "read environment", func(c *conn) error {
		return c.first(ctx, "SELECT "+environmentColumns+" FROM environments WHERE "+where+" AND deleted_at = 0", []driver.Value{arg},
			func(r *rows) (err error) { e, err = scanEnvironment(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// ListEnvironments lists environments, newest first.
func (s *environments) ListEnvironments(ctx context.Context, p store.Page) ([]godwit.Environment, error) {
	q := newest("SELECT "+environmentColumns+" FROM environments", "id", p)
	q.where("deleted_at = 0")
	var list []godwit.Environment
	err := s.read(ctx, "list environments", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			e, err := scanEnvironment(r)
			list = append(list, e)
			return err
		})
	})
	return list, err
}
