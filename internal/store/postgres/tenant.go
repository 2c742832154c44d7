package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// changed turns an update of no row into ErrNotFound.
func changed(doing string, tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	return failed(doing, err)
}

// tenants keeps tenants.
type tenants struct{ *database }

// CreateTenant stores a tenant.
func (s *tenants) CreateTenant(ctx context.Context, t *godwit.Tenant) error {
	own := t.WithoutLent()
	environment, version := cmp.Or(t.EnvironmentID, godwit.DefaultEnvironment), max(t.Version, 1)
	// The lock keeps the environment until the tenant is stored.
	tag, err := s.pool.Exec(ctx, `INSERT INTO tenants (id, name, require_idempotency_key, created_at, deleted_at, code, alert_emails, validation,
			environment_id, uid, inherits, version, limits)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, e.id, $10, $11, $12, $13 FROM (SELECT id FROM environments WHERE id = $9 AND deleted_at IS NULL FOR SHARE) AS e`,
		[16]byte(t.ID), clean(t.Name), own.RequireIdempotencyKey, optionalTime(t.CreatedAt), optionalTime(t.DeletedAt), clean(t.Code),
		cleanAll(own.AlertEmails), string(own.Validation), [16]byte(environment), clean(t.UID), settingNames(own.Inherits), version, encodeLimits(&own.Limits))
	if err := changed("create tenant", tag, err); err != nil {
		return err
	}
	t.EnvironmentID, t.Version = environment, version
	return nil
}

// encodeLimits returns nil for a tenant without limits of its own.
func encodeLimits(l *godwit.TenantLimits) []byte {
	text, err := json.Marshal(l)
	if err != nil || len(text) == len("{}") {
		return nil
	}
	return text
}

func settingNames(list []godwit.Setting) []string {
	var names []string
	for _, s := range list {
		names = append(names, string(s))
	}
	return names
}

// UpdateTenant changes uid, name and settings.
func (s *tenants) UpdateTenant(ctx context.Context, t *godwit.Tenant) error {
	own := t.WithoutLent()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := atVersion(ctx, tx, "tenants", t.ID, t.Version); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE tenants SET name = $2, uid = $3, require_idempotency_key = $4, alert_emails = $5, validation = $6, inherits = $7,
			limits = $8, version = version + 1 WHERE id = $1`, [16]byte(t.ID), clean(t.Name), clean(t.UID), own.RequireIdempotencyKey, cleanAll(own.AlertEmails),
			string(own.Validation), settingNames(own.Inherits), encodeLimits(&own.Limits))
		return err
	})
	if err == nil {
		t.Version++
	}
	return failed("update tenant", err)
}

const selectTenants = `SELECT t.id, t.name, t.require_idempotency_key, t.created_at, t.deleted_at, t.code, t.alert_emails, t.validation,
	t.environment_id, t.uid, t.home, t.inherits, t.own_types, t.version, e.settings, t.limits
	FROM tenants AS t JOIN environments AS e ON e.id = t.environment_id`

// Tenant returns a tenant that is not deleted.
func (s *tenants) Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	return s.readTenant(ctx, ` WHERE t.id = $1`, [16]byte(id))
}

// TenantByUID returns the tenant of an environment with a uid.
func (s *tenants) TenantByUID(ctx context.Context, environment godwit.EnvironmentID, uid string) (*godwit.Tenant, error) {
	return s.readTenant(ctx, ` WHERE t.environment_id = $1 AND t.uid = $2 AND t.uid <> ''`, [16]byte(environment), clean(uid))
}

func (s *tenants) readTenant(ctx context.Context, where string, args ...any) (*godwit.Tenant, error) {
	r, err := s.pool.Query(ctx, selectTenants+where+` AND t.deleted_at IS NULL`, args...)
	if err != nil {
		return nil, failed("read tenant", err)
	}
	t, err := pgx.CollectExactlyOneRow(r, scanTenant)
	return t, failed("read tenant", err)
}

// ListTenants leaves out deleted tenants and homes of environments.
func (s *tenants) ListTenants(ctx context.Context, f store.TenantFilter, p store.Page) ([]godwit.Tenant, error) {
	var w where
	w.add("t.deleted_at IS NULL AND NOT t.home")
	if !f.Environment.IsZero() {
		w.add("t.environment_id = ?", [16]byte(f.Environment))
	}
	if f.Text != "" {
		w.add("(strpos(lower(t.name), lower(?)) > 0 OR strpos(lower(t.uid), lower(?)) > 0)", clean(f.Text), clean(f.Text))
	}
	if p.After != ([16]byte{}) {
		w.add("t.id < ?", p.After)
	}
	r, err := s.pool.Query(ctx, selectTenants+w.sql()+fmt.Sprintf(" ORDER BY t.id DESC LIMIT %d", max(p.Limit, 0)), w.args...)
	if err != nil {
		return nil, failed("list tenants", err)
	}
	list, err := pgx.CollectRows(r, scanTenant)
	return values(list), failed("list tenants", err)
}

func scanTenant(r pgx.CollectableRow) (*godwit.Tenant, error) {
	t := &godwit.Tenant{}
	var (
		inherits []string
		settings []byte
		limits   []byte
		lent     godwit.EnvironmentSettings
	)
	err := r.Scan(scanID(&t.ID), &t.Name, &t.RequireIdempotencyKey, scanTime(&t.CreatedAt), scanTime(&t.DeletedAt), &t.Code,
		&t.AlertEmails, &t.Validation, scanID(&t.EnvironmentID), &t.UID, &t.Home, &inherits, &t.OwnTypes, &t.Version, &settings, &limits)
	if err != nil {
		return nil, err
	}
	for _, name := range inherits {
		t.Inherits = append(t.Inherits, godwit.Setting(name))
	}
	if err := errors.Join(decodeMap(settings, &lent), decodeMap(limits, &t.Limits)); err != nil {
		return nil, err
	}
	lent.Lend(t)
	return t, nil
}

// deleteTenant marks a tenant, its keys and its endpoints as deleted. The sweep cancels deliveries that wait for the
// endpoints. home says which of the two it must be: the home tenant of an environment or another.
func deleteTenant(ctx context.Context, q session, id godwit.TenantID, home bool, now time.Time) ([]godwit.EndpointID, error) {
	tag, err := q.Exec(ctx, `UPDATE tenants SET deleted_at = $2, version = version + 1 WHERE id = $1 AND home = $3 AND deleted_at IS NULL`, [16]byte(id), now, home)
	if err := changed("mark tenant", tag, err); err != nil {
		return nil, err
	}
	if _, err := q.Exec(ctx, `UPDATE api_keys SET revoked_at = $2 WHERE tenant_id = $1 AND revoked_at IS NULL`, [16]byte(id), now); err != nil {
		return nil, err
	}
	if _, err := q.Exec(ctx, `INSERT INTO stats_gone (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING`, [16]byte(id)); err != nil {
		return nil, err
	}
	if err := endSessionsOfTenant(ctx, q, id); err != nil {
		return nil, err
	}
	r, err := q.Query(ctx, `WITH own AS MATERIALIZED (SELECT id FROM endpoints WHERE tenant_id = $1 AND status <> 'deleted' ORDER BY id FOR NO KEY UPDATE)
		UPDATE endpoints AS e SET status = 'deleted', status_at = $2, updated_at = $2, version = version + 1 FROM own WHERE e.id = own.id RETURNING e.id`,
		[16]byte(id), now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, func(r pgx.CollectableRow) (id godwit.EndpointID, err error) {
		return id, r.Scan(scanID(&id))
	})
}
