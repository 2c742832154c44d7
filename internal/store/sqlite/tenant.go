package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const tenantColumns = "id, name, require_idempotency_key, created_at, deleted_at, code, alert_emails, validation"

func scanTenant(r *rows) (godwit.Tenant, error) {
	t := godwit.Tenant{
		ID: r.id(0), Name: r.text(1), RequireIdempotencyKey: r.bool(2), CreatedAt: r.time(3), DeletedAt: r.time(4), Code: r.text(5),
		Validation: godwit.Validation(r.text(7)),
	}
	return t, r.parse(6, &t.AlertEmails)
}

// tenants keeps tenants.
type tenants struct{ *database }

// CreateTenant stores a tenant.
func (s *tenants) CreateTenant(ctx context.Context, t *godwit.Tenant) error {
	emails, err := document(t.AlertEmails)
	if err != nil {
		return err
	}
	return s.write(ctx, "create tenant", func(c *conn) error {
		_, err := c.exec("INSERT INTO tenants ("+tenantColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?)", t.ID[:], t.Name,
			flag(t.RequireIdempotencyKey), micros(t.CreatedAt), micros(t.DeletedAt), t.Code, emails, string(t.Validation))
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
}

// UpdateTenant changes name and settings.
func (s *tenants) UpdateTenant(ctx context.Context, t *godwit.Tenant) error {
	emails, err := document(t.AlertEmails)
	if err != nil {
		return err
	}
	return s.write(ctx, "update tenant", func(c *conn) error {
		n, err := c.exec(`UPDATE tenants SET name = ?, require_idempotency_key = ?, alert_emails = ?, validation = ?
			WHERE id = ? AND deleted_at = 0`, t.Name, flag(t.RequireIdempotencyKey), emails, string(t.Validation), t.ID[:])
		if err == nil && n == 0 {
			return store.ErrNotFound
		}
		return err
	})
}

// Tenant returns a tenant that is not deleted.
func (s *tenants) Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	var t godwit.Tenant
	err := s.read(ctx, "read tenant", func(c *conn) error {
		return c.first(ctx, "SELECT "+tenantColumns+" FROM tenants WHERE id = ? AND deleted_at = 0", ids(id[:]),
			func(r *rows) (err error) { t, err = scanTenant(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// ListTenants lists tenants, newest first.
func (s *tenants) ListTenants(ctx context.Context, p store.Page) ([]godwit.Tenant, error) {
	q := newest("SELECT "+tenantColumns+" FROM tenants", "id", p)
	q.where("deleted_at = 0")
	var ts []godwit.Tenant
	err := s.read(ctx, "list tenants", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			t, err := scanTenant(r)
			ts = append(ts, t)
			return err
		})
	})
	return ts, err
}

// deleteTenant marks a tenant, its keys and its endpoints as deleted. The sweep cancels deliveries that wait for the
// endpoints.
func deleteTenant(ctx context.Context, c *conn, id godwit.TenantID, at int64) (endpoints []godwit.EndpointID, err error) {
	n, err := c.exec("UPDATE tenants SET deleted_at = ? WHERE id = ? AND deleted_at = 0", at, id[:])
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, store.ErrNotFound
	}
	if _, err := c.exec("UPDATE api_keys SET revoked_at = ? WHERE tenant_id = ? AND revoked_at = 0", at, id[:]); err != nil {
		return nil, err
	}
	err = c.each(ctx, "SELECT id FROM endpoints WHERE tenant_id = ? AND status <> 'deleted'", ids(id[:]),
		func(r *rows) error { endpoints = append(endpoints, r.id(0)); return nil })
	if err != nil {
		return nil, err
	}
	_, err = c.exec(`UPDATE endpoints SET status = 'deleted', status_reason = 'tenant-deleted', status_at = ?1, updated_at = ?1,
		version = version + 1 WHERE tenant_id = ?2 AND status <> 'deleted'`, at, id[:])
	return endpoints, err
}
