package postgres

import (
	"context"
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
	_, err := s.pool.Exec(ctx, `INSERT INTO tenants (id, name, require_idempotency_key, created_at, deleted_at, code, alert_emails, validation)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		[16]byte(t.ID), clean(t.Name), t.RequireIdempotencyKey, optionalTime(t.CreatedAt), optionalTime(t.DeletedAt), clean(t.Code),
		cleanAll(t.AlertEmails), string(t.Validation))
	return failed("create tenant", err)
}

// UpdateTenant changes name and settings.
func (s *tenants) UpdateTenant(ctx context.Context, t *godwit.Tenant) error {
	tag, err := s.pool.Exec(ctx, `UPDATE tenants SET name = $2, require_idempotency_key = $3, alert_emails = $4, validation = $5
		WHERE id = $1 AND deleted_at IS NULL`, [16]byte(t.ID), clean(t.Name), t.RequireIdempotencyKey, cleanAll(t.AlertEmails), string(t.Validation))
	return changed("update tenant", tag, err)
}

const selectTenants = `SELECT id, name, require_idempotency_key, created_at, deleted_at, code, alert_emails, validation FROM tenants`

// Tenant returns a tenant that is not deleted.
func (s *tenants) Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	r, err := s.pool.Query(ctx, selectTenants+` WHERE id = $1 AND deleted_at IS NULL`, [16]byte(id))
	if err != nil {
		return nil, failed("read tenant", err)
	}
	t, err := pgx.CollectExactlyOneRow(r, scanTenant)
	return t, failed("read tenant", err)
}

// ListTenants leaves out deleted tenants.
func (s *tenants) ListTenants(ctx context.Context, p store.Page) ([]godwit.Tenant, error) {
	var w where
	w.add("deleted_at IS NULL")
	w.page(p)
	r, err := s.pool.Query(ctx, selectTenants+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list tenants", err)
	}
	list, err := pgx.CollectRows(r, scanTenant)
	return values(list), failed("list tenants", err)
}

func scanTenant(r pgx.CollectableRow) (*godwit.Tenant, error) {
	t := &godwit.Tenant{}
	return t, r.Scan(scanID(&t.ID), &t.Name, &t.RequireIdempotencyKey, scanTime(&t.CreatedAt), scanTime(&t.DeletedAt), &t.Code,
		&t.AlertEmails, &t.Validation)
}

// deleteTenant marks a tenant, its keys and its endpoints as deleted. The sweep cancels deliveries that wait for the
// endpoints.
func deleteTenant(ctx context.Context, q session, id godwit.TenantID, now time.Time) ([]godwit.EndpointID, error) {
	tag, err := q.Exec(ctx, `UPDATE tenants SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL`, [16]byte(id), now)
	if err := changed("mark tenant", tag, err); err != nil {
		return nil, err
	}
	if _, err := q.Exec(ctx, `UPDATE api_keys SET revoked_at = $2 WHERE tenant_id = $1 AND revoked_at IS NULL`, [16]byte(id), now); err != nil {
		return nil, err
	}
	r, err := q.Query(ctx, `UPDATE endpoints SET status = 'deleted', status_at = $2, updated_at = $2, version = version + 1
		WHERE tenant_id = $1 AND status <> 'deleted' RETURNING id`, [16]byte(id), now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, func(r pgx.CollectableRow) (id godwit.EndpointID, err error) {
		return id, r.Scan(scanID(&id))
	})
}
