package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const endpointColumns = `e.id, e.tenant_id, e.url, e.method, e.profile, e.description, e.patterns, e.filter, e.policy, e.metadata,
	e.sealed, e.sealed_info, e.status, e.status_reason, e.status_at, e.created_at, e.updated_at, e.version, e.code, e.reenable_at, e.uid, e.signing, e.content_filter`

func scanEndpoint(r *rows) (godwit.Endpoint, error) {
	e := godwit.Endpoint{
		ID: r.id(0), TenantID: r.id(1), URL: r.text(2), Method: r.text(3), Profile: r.text(4), Description: r.text(5),
		Sealed: r.blob(10), Status: godwit.EndpointStatus(r.text(12)), StatusReason: r.text(13), StatusAt: r.time(14),
		CreatedAt: r.time(15), UpdatedAt: r.time(16), Version: r.int(17), Code: r.text(18), ReenableAt: r.time(19), UID: r.text(20),
		Signing: godwit.Signing(r.text(21)),
	}
	for i, doc := range map[int]any{6: &e.Patterns, 7: &e.Filter, 8: &e.Policy, 9: &e.Metadata, 11: &e.SealedInfo, 22: &e.Content} {
		if err := r.parse(i, doc); err != nil {
			return e, err
		}
	}
	return e, nil
}

// documents encodes members that are stored as JSON.
func documents(vs ...any) ([]driver.Value, error) {
	out := make([]driver.Value, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = document(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// metadata encodes metadata; the values keep their exact bytes.
func metadata(m godwit.Metadata) driver.Value {
	if len(m) == 0 {
		return nil
	}
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		value := m[name]
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		quoted, _ := json.Marshal(name) // a string always encodes
		b = append(append(append(b, quoted...), ':'), value...)
	}
	return string(append(b, '}'))
}

// endpoints keeps endpoints.
type endpoints struct{ *database }

// CreateEndpoint stores an endpoint with its first secret.
func (s *endpoints) CreateEndpoint(ctx context.Context, e *godwit.Endpoint, secret *godwit.Secret) error {
	return s.writeShared(ctx, "create endpoint", func(c *conn) error { return createEndpoint(c, e, secret) })
}

// CreateEndpointWithin stores an endpoint if the tenant has less than most.
func (s *endpoints) CreateEndpointWithin(ctx context.Context, e *godwit.Endpoint, secret *godwit.Secret, most int) error {
	return s.writeShared(ctx, "create endpoint", func(c *conn) error {
		n, err := countEndpoints(ctx, c, e.TenantID)
		if err != nil {
			return err
		}
		if n >= most {
			return store.ErrLimit
		}
		return createEndpoint(c, e, secret)
	})
}

func createEndpoint(c *conn, e *godwit.Endpoint, secret *godwit.Secret) error {
	doc, err := documents(e.Patterns, e.Filter, e.Policy, e.SealedInfo)
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT INTO endpoints (id, tenant_id, url, method, profile, description, patterns, filter, policy, metadata,
			sealed, sealed_info, status, status_reason, status_at, created_at, updated_at, version, code, reenable_at, uid, signing, content_filter)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID[:], e.TenantID[:], e.URL, e.Method, e.Profile, e.Description, doc[0], doc[1], doc[2],
		metadata(e.Metadata), e.Sealed, doc[3], string(e.Status), e.StatusReason, micros(e.StatusAt), micros(e.CreatedAt), micros(e.UpdatedAt), e.Version,
		e.Code, micros(e.ReenableAt), e.UID, string(e.Signing), metadata(godwit.Metadata(e.Content)))
	if taken(err) {
		return store.ErrConflict
	}
	if err != nil || secret == nil {
		return err
	}
	return insertSecret(c, secret)
}

// UpdateEndpoint stores the next version of an endpoint.
func (s *endpoints) UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error {
	return s.writeShared(ctx, "update endpoint", func(c *conn) error { return updateEndpoint(ctx, c, e) })
}

func updateEndpoint(ctx context.Context, c *conn, e *godwit.Endpoint) error {
	doc, err := documents(e.Patterns, e.Filter, e.Policy, e.SealedInfo)
	if err != nil {
		return err
	}
	n, err := c.exec(`UPDATE endpoints SET url = ?, method = ?, description = ?, patterns = ?, filter = ?, policy = ?, metadata = ?,
		sealed = ?, sealed_info = ?, status = ?, status_reason = ?, status_at = ?, reenable_at = ?, updated_at = ?, version = ?, uid = ?, signing = ?, content_filter = ?
		WHERE id = ? AND tenant_id = ? AND status <> 'deleted' AND version = ?`,
		e.URL, e.Method, e.Description, doc[0], doc[1], doc[2], metadata(e.Metadata), e.Sealed, doc[3], string(e.Status),
		e.StatusReason, micros(e.StatusAt), micros(e.ReenableAt), micros(e.UpdatedAt), e.Version, e.UID, string(e.Signing), metadata(godwit.Metadata(e.Content)), e.ID[:], e.TenantID[:], e.Version-1)
	if taken(err) {
		return store.ErrConflict
	}
	if err != nil || n == 1 {
		return err
	}
	if err := owned(ctx, c, e.TenantID, e.ID); err != nil {
		return err
	}
	return store.ErrConflict
}

// owned returns store.ErrNotFound unless the tenant has the endpoint.
func owned(ctx context.Context, c *conn, tenant godwit.TenantID, id godwit.EndpointID) error {
	return c.first(ctx, "SELECT 1 FROM endpoints WHERE id = ? AND tenant_id = ? AND status <> 'deleted'", ids(id[:], tenant[:]),
		func(*rows) error { return nil })
}

// changeEndpoint applies the engine's change of an endpoint.
func changeEndpoint(c *conn, ch *store.EndpointChange, now int64) error {
	if ch.Disable != "" {
		_, err := c.exec(`UPDATE endpoints SET status = 'disabled', status_reason = ?1, status_at = ?2, reenable_at = ?3, updated_at = ?2,
			version = version + 1 WHERE id = ?4 AND status = 'active'`, ch.Disable, now, micros(ch.ReenableAt), ch.EndpointID[:])
		if err != nil {
			return err
		}
	}
	if ch.Enable {
		if err := enable(c, ch.EndpointID, now); err != nil {
			return err
		}
	}
	if !ch.RestUntil.IsZero() {
		_, err := c.exec(`UPDATE endpoints SET reenable_at = ?1, status_at = min(status_at, ?2), updated_at = ?2, version = version + 1
			WHERE id = ?3 AND status = 'disabled' AND reenable_at > ?1`, micros(ch.RestUntil), now, ch.EndpointID[:])
		if err != nil {
			return err
		}
	}
	if ch.MoveTo != "" {
		_, err := c.exec(`UPDATE endpoints SET url = ?, updated_at = ?, version = version + 1
			WHERE id = ? AND url = ? AND status <> 'deleted'`, ch.MoveTo, now, ch.EndpointID[:], ch.MoveFrom)
		return err
	}
	return nil
}

// enable ends an endpoint's rest. Every other change of the status also sets reenable_at, so the condition excludes endpoints
// that were changed since.
func enable(c *conn, id godwit.EndpointID, now int64) error {
	n, err := c.exec(`UPDATE endpoints SET status = 'active', status_reason = '', status_at = ?1, reenable_at = 0, updated_at = ?1,
		version = version + 1 WHERE id = ?2 AND status = 'disabled' AND reenable_at > 0 AND reenable_at <= ?1`, now, id[:])
	if err != nil || n == 0 {
		return err
	}
	return resetHealth(c, id, now)
}

// Endpoint returns an endpoint that is not deleted.
func (s *endpoints) Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	return s.readEndpoint(ctx, "e.id = ? AND e.tenant_id = ?", id[:], tenant[:])
}

// EndpointByCode returns the endpoint with the code, unless it is deleted.
func (s *endpoints) EndpointByCode(ctx context.Context, tenant godwit.TenantID, code string) (*godwit.Endpoint, error) {
	return s.readEndpoint(ctx, "e.code = ? AND e.code <> '' AND e.tenant_id = ?", code, tenant[:])
}

// EndpointByUID returns the endpoint with the uid, unless it is deleted.
func (s *endpoints) EndpointByUID(ctx context.Context, tenant godwit.TenantID, uid string) (*godwit.Endpoint, error) {
	return s.readEndpoint(ctx, "e.tenant_id = ? AND e.uid = ? AND e.uid <> ''", tenant[:], uid)
}

func (s *endpoints) readEndpoint(ctx context.Context, where string, args ...driver.Value) (*godwit.Endpoint, error) {
	var e godwit.Endpoint
	err := s.read(ctx, "read endpoint", func(c *conn) error {
		return c.first(ctx, "SELECT "+endpointColumns+" FROM endpoints e WHERE "+where+" AND e.status <> 'deleted'", args,
			func(r *rows) (err error) { e, err = scanEndpoint(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// inHealth has the condition for each health of an active endpoint. An endpoint without a row has made no attempt yet.
var inHealth = map[store.EndpointHealth]string{
	store.HealthOpen:    "EXISTS (SELECT 1 FROM health h WHERE h.endpoint_id = e.id AND h.circuit_open_at <> 0)",
	store.HealthFailing: "EXISTS (SELECT 1 FROM health h WHERE h.endpoint_id = e.id AND h.circuit_open_at = 0 AND (h.streak > 0 OR h.degraded_at <> 0))",
	store.HealthHealthy: "NOT EXISTS (SELECT 1 FROM health h WHERE h.endpoint_id = e.id AND (h.circuit_open_at <> 0 OR h.streak > 0 OR h.degraded_at <> 0))",
}

// ListEndpoints lists the endpoints of a tenant or environment, newest first.
func (s *endpoints) ListEndpoints(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error) {
	var q *listing
	if f.Environment.IsZero() {
		q = newest("SELECT "+endpointColumns+" FROM endpoints e INDEXED BY endpoints_tenant", "e.id", p)
		q.where("e.tenant_id = ? AND e.status <> 'deleted'", f.TenantID[:])
	} else {
		q = ofEnvironment("SELECT "+endpointColumns+" FROM endpoints e", "e", f.Environment, p)
	}
	if f.Status != "" {
		q.where("e.status = ?", string(f.Status))
	}
	if f.Text != "" {
		q.where("(instr(lower(e.url), lower(?)) > 0 OR instr(lower(e.uid), lower(?)) > 0 OR instr(lower(e.description), lower(?)) > 0)", f.Text, f.Text, f.Text)
	}
	if f.Health != "" {
		q.where("e.status = 'active' AND " + inHealth[f.Health])
	}
	var es []godwit.Endpoint
	err := s.read(ctx, "list endpoints", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			e, err := scanEndpoint(r)
			es = append(es, e)
			return err
		})
	})
	return es, err
}

// CountEndpoints counts a tenant's endpoints.
func (s *endpoints) CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error) {
	var n int
	err := s.read(ctx, "count endpoints", func(c *conn) (err error) {
		n, err = countEndpoints(ctx, c, tenant)
		return err
	})
	return n, err
}

func countEndpoints(ctx context.Context, c *conn, tenant godwit.TenantID) (n int, err error) {
	_, err = c.one(ctx, "SELECT count(*) FROM endpoints WHERE tenant_id = ? AND status <> 'deleted'", ids(tenant[:]),
		func(r *rows) { n = int(r.int(0)) })
	return n, err
}

// LoadEndpoint returns one endpoint as the engine needs it.
func (s *endpoints) LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error) {
	var le store.LoadedEndpoint
	err := s.read(ctx, "load endpoint", func(c *conn) error {
		err := c.first(ctx, "SELECT "+endpointColumns+" FROM endpoints e WHERE e.id = ?", ids(id[:]),
			func(r *rows) (err error) { le.Endpoint, err = scanEndpoint(r); return err })
		if err != nil {
			return err
		}
		return loadMore(ctx, c, &le)
	})
	if err != nil {
		return nil, err
	}
	return &le, nil
}

// LoadChosen returns the endpoints with the ids.
func (s *endpoints) LoadChosen(ctx context.Context, ids []godwit.EndpointID) ([]*store.LoadedEndpoint, error) {
	var list []*store.LoadedEndpoint
	for _, id := range ids {
		le, err := s.LoadEndpoint(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, le)
	}
	return list, nil
}

func loadMore(ctx context.Context, c *conn, le *store.LoadedEndpoint) (err error) {
	if le.Secrets, err = listSecrets(ctx, c, le.Endpoint.ID); err != nil {
		return err
	}
	if le.Health, _, err = readHealth(ctx, c, le.Endpoint.ID); err != nil {
		return err
	}
	_, err = c.one(ctx, "SELECT t.code, "+testEnvironment+", t.environment_id FROM tenants t JOIN environments v ON v.id = t.environment_id WHERE t.id = ?",
		ids(le.Endpoint.TenantID[:]), func(r *rows) {
			le.Account, le.Test = r.text(0), r.bool(1)
			if le.Endpoint.Signing == godwit.SigningEnvironment {
				le.Environment = r.id(2)
			}
		})
	return err
}

// testEnvironment says that environment v is not live.
const testEnvironment = "json_extract(v.settings, '$.live') IS NULL"

// loadPage is how many endpoints one reader reads at once.
const loadPage = 500

// LoadEndpoints passes every endpoint that is not deleted to fn.
func (s *endpoints) LoadEndpoints(ctx context.Context, fn func(*store.LoadedEndpoint) error) error {
	return s.loadPages(ctx, fn)
}

// LoadShards passes the endpoints of some shards to fn. An endpoint's shard is in the last byte of its id.
func (s *endpoints) LoadShards(ctx context.Context, shards []int, fn func(*store.LoadedEndpoint) error) error {
	want := map[int]bool{}
	for _, shard := range shards {
		want[shard] = true
	}
	// SQLite has no function for a byte's number. Shards change hands only at a start, when all are wanted.
	return s.loadPages(ctx, func(e *store.LoadedEndpoint) error {
		if !want[e.Endpoint.ID.Shard()] {
			return nil
		}
		return fn(e)
	})
}

func (s *endpoints) loadPages(ctx context.Context, fn func(*store.LoadedEndpoint) error) error {
	r := store.EndpointReader{Size: loadPage, Read: s.loadAfter}
	return r.Each(ctx, fn)
}

func (s *endpoints) loadAfter(ctx context.Context, after godwit.EndpointID) ([]*store.LoadedEndpoint, error) {
	var page []*store.LoadedEndpoint
	err := s.read(ctx, "load endpoints", func(c *conn) error {
		page = nil
		err := c.each(ctx, "SELECT "+endpointColumns+", (SELECT t.code FROM tenants t WHERE t.id = e.tenant_id), "+
			"coalesce((SELECT "+testEnvironment+" FROM tenants t JOIN environments v ON v.id = t.environment_id WHERE t.id = e.tenant_id), 0), "+
			"CASE WHEN e.signing <> '' THEN (SELECT t.environment_id FROM tenants t WHERE t.id = e.tenant_id) END "+
			"FROM endpoints e WHERE e.id > ? AND e.status <> 'deleted' ORDER BY e.id LIMIT ?",
			[]driver.Value{after[:], int64(loadPage)}, func(r *rows) error {
				e, err := scanEndpoint(r)
				page = append(page, &store.LoadedEndpoint{Endpoint: e, Health: godwit.Health{EndpointID: e.ID}, Account: r.text(23), Test: r.bool(24), Environment: r.id(25)})
				return err
			})
		if err != nil || len(page) == 0 {
			return err
		}
		return loadRange(ctx, c, page)
	})
	return page, err
}

// loadRange reads the secrets and the health of endpoints that follow each other. One query for all of them takes a fraction of
// the time of one for each.
func loadRange(ctx context.Context, c *conn, page []*store.LoadedEndpoint) error {
	byID := make(map[godwit.EndpointID]*store.LoadedEndpoint, len(page))
	for _, le := range page {
		byID[le.Endpoint.ID] = le
	}
	between := ids(page[0].Endpoint.ID[:], page[len(page)-1].Endpoint.ID[:]) // with deleted ones
	err := c.each(ctx, "SELECT "+secretColumns+" FROM secrets INDEXED BY secrets_endpoint WHERE endpoint_id BETWEEN ? AND ? ORDER BY created_at DESC, id DESC", between,
		func(r *rows) error {
			secret := scanSecret(r)
			if le := byID[secret.EndpointID]; le != nil {
				le.Secrets = append(le.Secrets, secret)
			}
			return nil
		})
	if err != nil {
		return err
	}
	return c.each(ctx, "SELECT "+healthColumns+", endpoint_id FROM health WHERE endpoint_id BETWEEN ? AND ?", between, func(r *rows) error {
		if le := byID[r.id(17)]; le != nil {
			return scanHealth(r, &le.Health)
		}
		return nil
	})
}
