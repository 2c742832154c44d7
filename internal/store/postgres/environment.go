package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// environments keeps environments.
type environments struct{ *database }

// CreateEnvironment stores an environment and its home tenant.
func (s *environments) CreateEnvironment(ctx context.Context, e *godwit.Environment) error {
	settings, err := json.Marshal(&e.EnvironmentSettings)
	if err != nil {
		return failed("create environment", err)
	}
	return failed("create environment", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO environments (id, uid, name, settings, version, created_at, updated_at, deleted_at, portal)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, [16]byte(e.ID), clean(e.UID), clean(e.Name), settings, e.Version,
			optionalTime(e.CreatedAt), optionalTime(e.UpdatedAt), optionalTime(e.DeletedAt), optionalJSON(&e.Portal))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO tenants (id, name, require_idempotency_key, created_at, environment_id, home)
			VALUES ($1, $2, false, $3, $1, true)`, [16]byte(e.ID), clean(e.Name), optionalTime(e.CreatedAt))
		return err
	}))
}

// UpdateEnvironment changes an environment, and the name of its home tenant.
func (s *environments) UpdateEnvironment(ctx context.Context, e *godwit.Environment) error {
	settings, err := json.Marshal(&e.EnvironmentSettings)
	if err != nil {
		return failed("update environment", err)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := atVersion(ctx, tx, "environments", e.ID, e.Version); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE environments SET uid = $2, name = $3, settings = $4, version = version + 1, updated_at = $5, portal = $6 WHERE id = $1`,
			[16]byte(e.ID), clean(e.UID), clean(e.Name), settings, optionalTime(e.UpdatedAt), optionalJSON(&e.Portal))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE tenants SET name = $2, version = version + 1 WHERE id = $1`, [16]byte(e.ID), clean(e.Name))
		return err
	})
	if err == nil {
		e.Version++
	}
	return failed("update environment", err)
}

// atVersion locks a row. It returns ErrNotFound if the row is missing or deleted, and ErrConflict if it has another version.
func atVersion(ctx context.Context, tx pgx.Tx, table string, id [16]byte, version int64) error {
	var stored int64
	err := tx.QueryRow(ctx, `SELECT version FROM `+table+` WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`, id).Scan(&stored)
	if err == nil && stored != version {
		return store.ErrConflict
	}
	return err
}

// DeleteEnvironment marks an environment without tenants as deleted.
func (s *environments) DeleteEnvironment(ctx context.Context, e *godwit.Environment) error {
	return failed("delete environment", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := atVersion(ctx, tx, "environments", e.ID, e.Version); err != nil {
			return err
		}
		var used bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tenants WHERE environment_id = $1 AND NOT home AND deleted_at IS NULL)`, [16]byte(e.ID)).Scan(&used)
		if err != nil {
			return err
		}
		if used {
			return store.ErrConflict
		}
		if _, err := tx.Exec(ctx, `UPDATE environments SET deleted_at = $2, version = version + 1 WHERE id = $1`, [16]byte(e.ID), e.DeletedAt); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM event_types WHERE tenant_id = $1`, [16]byte(e.ID)); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE endpoint_secrets SET expires_at = $2 WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > $2)`, [16]byte(e.ID), e.DeletedAt)
		if err != nil {
			return err
		}
		_, err = deleteTenant(ctx, tx, godwit.HomeOf(e.ID), true, e.DeletedAt)
		return err
	}))
}

const selectEnvironments = `SELECT id, uid, name, settings, version, created_at, updated_at, deleted_at, portal FROM environments`

func scanEnvironment(r pgx.CollectableRow) (*godwit.Environment, error) {
	e := &godwit.Environment{}
	var settings, portal []byte
	err := r.Scan(scanID(&e.ID), &e.UID, &e.Name, &settings, &e.Version, scanTime(&e.CreatedAt), scanTime(&e.UpdatedAt), scanTime(&e.DeletedAt), &portal)
	if err != nil {
		return nil, err
	}
	return e, errors.Join(decodeMap(settings, &e.EnvironmentSettings), decodeMap(portal, &e.Portal))
}

// Environment returns an environment that is not deleted.
func (s *environments) Environment(ctx context.Context, id godwit.EnvironmentID) (*godwit.Environment, error) {
	return s.readEnvironment(ctx, ` WHERE id = $1`, [16]byte(id))
}

// EnvironmentByUID returns the environment with a uid.
func (s *environments) EnvironmentByUID(ctx context.Context, uid string) (*godwit.Environment, error) {
	return s.readEnvironment(ctx, ` WHERE uid = $1`, clean(uid))
}

func (s *environments) readEnvironment(ctx context.Context, where string, arg any) (*godwit.Environment, error) {
	r, err := s.pool.Query(ctx, selectEnvironments+where+` AND deleted_at IS NULL`, arg)
	if err != nil {
		return nil, failed("read environment", err)
	}
	e, err := pgx.CollectExactlyOneRow(r, scanEnvironment)
	return e, failed("read environment", err)
}

// ListEnvironments lists environments, newest first.
func (s *environments) ListEnvironments(ctx context.Context, p store.Page) ([]godwit.Environment, error) {
	var w where
	w.add("deleted_at IS NULL")
	w.page(p)
	r, err := s.pool.Query(ctx, selectEnvironments+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list environments", err)
	}
	list, err := pgx.CollectRows(r, scanEnvironment)
	return values(list), failed("list environments", err)
}
