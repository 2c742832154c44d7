package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// tenantColumns are those of a tenant and the settings of its environment.
const (
	tenantColumns = `t.id, t.name, t.require_idempotency_key, t.created_at, t.deleted_at, t.code, t.alert_emails, t.validation,
		t.environment_id, t.uid, t.home, t.inherits, t.own_types, t.version, e.settings, t.limits`
	tenantTables = " FROM tenants t JOIN environments e ON e.id = t.environment_id"
)

func scanTenant(r *rows) (godwit.Tenant, error) {
	t := godwit.Tenant{
		ID: r.id(0), Name: r.text(1), RequireIdempotencyKey: r.bool(2), CreatedAt: r.time(3), DeletedAt: r.time(4), Code: r.text(5),
		Validation: godwit.Validation(r.text(7)), EnvironmentID: r.id(8), UID: r.text(9), Home: r.bool(10), OwnTypes: int(r.int(12)), Version: r.int(13),
	}
	var lent godwit.EnvironmentSettings
	if err := errors.Join(r.parse(6, &t.AlertEmails), r.parse(11, &t.Inherits), r.parse(14, &lent), r.parse(15, &t.Limits)); err != nil {
		return t, err
	}
	lent.Lend(&t)
	return t, nil
}

// tenants keeps tenants.
type tenants struct{ *database }

// CreateTenant stores a tenant.
func (s *tenants) CreateTenant(ctx context.Context, t *godwit.Tenant) error {
	own := t.WithoutLent()
	lists, err := documents(own.AlertEmails, own.Inherits, storedLimits(own))
	if err != nil {
		return err
	}
	environment, version := cmp.Or(t.EnvironmentID, godwit.DefaultEnvironment), max(t.Version, 1)
	err = s.writeShared(ctx, "create tenant", func(c *conn) error {
		found, err := c.one(ctx, "SELECT 1 FROM environments WHERE id = ? AND deleted_at = 0", ids(environment[:]), nil)
		if err != nil {
			return err
		}
		if !found {
			return store.ErrNotFound
		}
		_, err = c.exec(`INSERT INTO tenants (id, name, require_idempotency_key, created_at, deleted_at, code, alert_emails, validation,
			environment_id, uid, inherits, limits, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, t.ID[:], t.Name,
			flag(own.RequireIdempotencyKey), micros(t.CreatedAt), micros(t.DeletedAt), t.Code, lists[0], string(own.Validation),
			environment[:], t.UID, lists[1], lists[2], version)
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
	if err == nil {
		t.EnvironmentID, t.Version = environment, version
	}
	return err
}

// UpdateTenant changes uid, name and settings.
func (s *tenants) UpdateTenant(ctx context.Context, t *godwit.Tenant) error {
	own := t.WithoutLent()
	lists, err := documents(own.AlertEmails, own.Inherits, storedLimits(own))
	if err != nil {
		return err
	}
	err = s.writeShared(ctx, "update tenant", func(c *conn) error {
		if err := atVersion(c, "tenants", t.ID, t.Version); err != nil {
			return err
		}
		_, err := c.exec(`UPDATE tenants SET name = ?, uid = ?, require_idempotency_key = ?, alert_emails = ?, validation = ?, inherits = ?,
			limits = ?, version = version + 1 WHERE id = ?`, t.Name, t.UID, flag(own.RequireIdempotencyKey), lists[0], string(own.Validation), lists[1], lists[2], t.ID[:])
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
	if err == nil {
		t.Version++
	}
	return err
}

// storedLimits returns nil for a tenant without limits of its own.
func storedLimits(t *godwit.Tenant) *godwit.TenantLimits {
	if t.Limits == (godwit.TenantLimits{}) {
		return nil
	}
	return &t.Limits
}

// Tenant returns a tenant that is not deleted.
func (s *tenants) Tenant(ctx context.Context, id godwit.TenantID) (*godwit.Tenant, error) {
	return s.readTenant(ctx, "t.id = ?", ids(id[:]))
}

// TenantByUID returns the tenant of an environment with a uid.
func (s *tenants) TenantByUID(ctx context.Context, environment godwit.EnvironmentID, uid string) (*godwit.Tenant, error) {
	return s.readTenant(ctx, "t.environment_id = ? AND t.uid = ? AND t.uid <> ''", []driver.Value{environment[:], uid})
}

func (s *tenants) readTenant(ctx context.Context, where string, args []driver.Value) (*godwit.Tenant, error) {
	var t godwit.Tenant
	err := s.read(ctx, "read tenant", func(c *conn) error {
		return c.first(ctx, "SELECT "+tenantColumns+tenantTables+" WHERE "+where+" AND t.deleted_at = 0", args,
			func(r *rows) (err error) { t, err = scanTenant(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// ListTenants lists tenants, newest first.
func (s *tenants) ListTenants(ctx context.Context, f store.TenantFilter, p store.Page) ([]godwit.Tenant, error) {
	q := newest("SELECT "+tenantColumns+tenantTables, "t.id", p)
	q.where("t.deleted_at = 0 AND t.home = 0")
	if !f.Environment.IsZero() {
		q.where("t.environment_id = ?", f.Environment[:])
	}
	if f.Text != "" {
		q.where("(instr(lower(t.name), lower(?)) > 0 OR instr(lower(t.uid), lower(?)) > 0)", f.Text, f.Text)
	}
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
// endpoints. home says which of the two it must be: the home tenant of an environment or another.
func deleteTenant(ctx context.Context, c *conn, id godwit.TenantID, home bool, at int64) (endpoints []godwit.EndpointID, err error) {
	n, err := c.exec("UPDATE tenants SET deleted_at = ?, version = version + 1 WHERE id = ? AND home = ? AND deleted_at = 0", at, id[:], flag(home))
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, store.ErrNotFound
	}
	if _, err := c.exec("UPDATE api_keys SET revoked_at = ? WHERE tenant_id = ? AND revoked_at = 0", at, id[:]); err != nil {
		return nil, err
	}
	if _, err := c.exec("INSERT INTO stats_gone (tenant_id) VALUES (?) ON CONFLICT DO NOTHING", id[:]); err != nil {
		return nil, err
	}
	if err := endSessionsOfTenant(c, id); err != nil {
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
