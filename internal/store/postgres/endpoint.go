package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const endpointFields = `id, tenant_id, url, method, profile, description, patterns, filter, policy, metadata, sealed,
	sealed_info, status, status_reason, status_at, created_at, updated_at, version, code, reenable_at, uid, signing, content_filter`

// endpoints keeps endpoints.
type endpoints struct{ *database }

// CreateEndpoint stores an endpoint with its first secret, which may be nil.
func (s *endpoints) CreateEndpoint(ctx context.Context, e *godwit.Endpoint, secret *godwit.Secret) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return createEndpoint(ctx, tx, e, secret) })
	return failed("create endpoint", err)
}

// CreateEndpointWithin stores an endpoint if the tenant has less than most.
func (s *endpoints) CreateEndpointWithin(ctx context.Context, e *godwit.Endpoint, secret *godwit.Secret, most int) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(createLock), e.TenantID.String())
		if err != nil {
			return err
		}
		n, err := countEndpoints(ctx, tx, e.TenantID)
		if err != nil {
			return err
		}
		if n >= most {
			return store.ErrLimit
		}
		return createEndpoint(ctx, tx, e, secret)
	})
	return failed("create endpoint", err)
}

func createEndpoint(ctx context.Context, tx pgx.Tx, e *godwit.Endpoint, secret *godwit.Secret) error {
	if err := allowContent(ctx, tx, e); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO endpoints (`+endpointFields+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
		[16]byte(e.ID), [16]byte(e.TenantID), clean(e.URL), e.Method, e.Profile, clean(e.Description), cleanAll(e.Patterns),
		optionalJSON(e.Filter), optionalJSON(e.Policy), encodeRaw(e.Metadata), e.Sealed, optionalJSON(e.SealedInfo),
		string(e.Status), clean(e.StatusReason), optionalTime(e.StatusAt), optionalTime(e.CreatedAt), optionalTime(e.UpdatedAt), e.Version,
		clean(e.Code), optionalTime(e.ReenableAt), clean(e.UID), string(e.Signing), encodeRaw(e.Content))
	if err != nil || secret == nil {
		return err
	}
	return insertSecret(ctx, tx, secret)
}

// UpdateEndpoint stores e if the stored version is e.Version-1.
func (s *endpoints) UpdateEndpoint(ctx context.Context, e *godwit.Endpoint) error {
	return failed("update endpoint", updateEndpoint(ctx, s.pool, e))
}

func updateEndpoint(ctx context.Context, q session, e *godwit.Endpoint) error {
	if err := allowContent(ctx, q, e); err != nil {
		return err
	}
	tag, err := q.Exec(ctx, `UPDATE endpoints SET url = $4, method = $5, description = $6, patterns = $7, filter = $8,
			policy = $9, metadata = $10, sealed = $11, sealed_info = $12, status = $13, status_reason = $14, status_at = $15,
			updated_at = $16, reenable_at = $17, version = $3, uid = $18, signing = $19, content_filter = $20
		WHERE tenant_id = $1 AND id = $2 AND version = $3 - 1 AND status <> 'deleted'`,
		[16]byte(e.TenantID), [16]byte(e.ID), e.Version, clean(e.URL), e.Method, clean(e.Description), cleanAll(e.Patterns),
		optionalJSON(e.Filter), optionalJSON(e.Policy), encodeRaw(e.Metadata), e.Sealed, optionalJSON(e.SealedInfo),
		string(e.Status), clean(e.StatusReason), optionalTime(e.StatusAt), optionalTime(e.UpdatedAt),
		optionalTime(e.ReenableAt), clean(e.UID), string(e.Signing), encodeRaw(e.Content))
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	if _, err := readEndpoint(ctx, q, e.TenantID, e.ID); err != nil {
		return err
	}
	return fmt.Errorf("%w: its version is not %d", store.ErrConflict, e.Version-1)
}

// Endpoint returns an endpoint that is not deleted.
func (s *endpoints) Endpoint(ctx context.Context, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	e, err := readEndpoint(ctx, s.pool, tenant, id)
	return e, failed("read endpoint", err)
}

func readEndpoint(ctx context.Context, q querier, tenant godwit.TenantID, id godwit.EndpointID) (*godwit.Endpoint, error) {
	r, err := q.Query(ctx, `SELECT `+endpointFields+` FROM endpoints
		WHERE tenant_id = $1 AND id = $2 AND status <> 'deleted'`, [16]byte(tenant), [16]byte(id))
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(r, scanEndpoint)
}

// EndpointByCode returns the endpoint with the code, unless it is deleted.
func (s *endpoints) EndpointByCode(ctx context.Context, tenant godwit.TenantID, code string) (*godwit.Endpoint, error) {
	r, err := s.pool.Query(ctx, `SELECT `+endpointFields+` FROM endpoints
		WHERE code = $2 AND code <> '' AND tenant_id = $1 AND status <> 'deleted'`, [16]byte(tenant), clean(code))
	if err != nil {
		return nil, failed("find endpoint", err)
	}
	e, err := pgx.CollectExactlyOneRow(r, scanEndpoint)
	return e, failed("find endpoint", err)
}

// EndpointByUID returns the endpoint with the uid, unless it is deleted.
func (s *endpoints) EndpointByUID(ctx context.Context, tenant godwit.TenantID, uid string) (*godwit.Endpoint, error) {
	r, err := s.pool.Query(ctx, `SELECT `+endpointFields+` FROM endpoints
		WHERE tenant_id = $1 AND uid = $2 AND uid <> '' AND status <> 'deleted'`, [16]byte(tenant), clean(uid))
	if err != nil {
		return nil, failed("find endpoint", err)
	}
	e, err := pgx.CollectExactlyOneRow(r, scanEndpoint)
	return e, failed("find endpoint", err)
}

// inHealth has the condition for each health of an active endpoint. An endpoint without a row has made no attempt yet.
var inHealth = map[store.EndpointHealth]string{
	store.HealthOpen:    "EXISTS (SELECT FROM endpoint_health AS h WHERE h.endpoint_id = endpoints.id AND h.circuit_open_at IS NOT NULL)",
	store.HealthFailing: "EXISTS (SELECT FROM endpoint_health AS h WHERE h.endpoint_id = endpoints.id AND h.circuit_open_at IS NULL AND (h.streak > 0 OR h.degraded_at IS NOT NULL))",
	store.HealthHealthy: "NOT EXISTS (SELECT FROM endpoint_health AS h WHERE h.endpoint_id = endpoints.id AND (h.circuit_open_at IS NOT NULL OR h.streak > 0 OR h.degraded_at IS NOT NULL))",
}

// ListEndpoints leaves out deleted endpoints.
func (s *endpoints) ListEndpoints(ctx context.Context, f store.EndpointFilter, p store.Page) ([]godwit.Endpoint, error) {
	var w where
	w.owners(f.TenantID, f.Environment)
	w.page(p)
	if f.Status != "" {
		w.add("status = ?", string(f.Status))
	}
	if f.Text != "" {
		text := clean(f.Text)
		w.add("(strpos(lower(url), lower(?)) > 0 OR strpos(lower(uid), lower(?)) > 0 OR strpos(lower(description), lower(?)) > 0)", text, text, text)
	}
	if f.Health != "" {
		w.add("status = 'active' AND " + inHealth[f.Health])
	}
	r, err := s.pool.Query(ctx, `SELECT `+endpointFields+` FROM endpoints`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list endpoints", err)
	}
	list, err := pgx.CollectRows(r, scanEndpoint)
	return values(list), failed("list endpoints", err)
}

// CountEndpoints leaves out deleted endpoints.
func (s *endpoints) CountEndpoints(ctx context.Context, tenant godwit.TenantID) (int, error) {
	n, err := countEndpoints(ctx, s.pool, tenant)
	return n, failed("count endpoints", err)
}

func countEndpoints(ctx context.Context, q querier, tenant godwit.TenantID) (int, error) {
	r, err := q.Query(ctx, `SELECT count(*) FROM endpoints WHERE tenant_id = $1 AND status <> 'deleted'`, [16]byte(tenant))
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
}

func scanEndpoint(r pgx.CollectableRow) (*godwit.Endpoint, error) {
	e := &godwit.Endpoint{}
	return e, scanEndpointInto(r, e)
}

// scanEndpointInto reads the columns of endpointFields, and more behind them.
func scanEndpointInto(r pgx.CollectableRow, e *godwit.Endpoint, more ...any) error {
	var filter, policy, metadata, info, content []byte
	err := r.Scan(append([]any{scanID(&e.ID), scanID(&e.TenantID), &e.URL, &e.Method, &e.Profile, &e.Description, &e.Patterns, &filter,
		&policy, &metadata, &e.Sealed, &info, &e.Status, &e.StatusReason, scanTime(&e.StatusAt), scanTime(&e.CreatedAt),
		scanTime(&e.UpdatedAt), &e.Version, &e.Code, scanTime(&e.ReenableAt), &e.UID, &e.Signing, &content}, more...)...)
	if err != nil {
		return err
	}
	return errors.Join(decodeMap(filter, &e.Filter), decodeMap(policy, &e.Policy), decodeMap(metadata, &e.Metadata),
		decodeMap(info, &e.SealedInfo), decodeMap(content, &e.Content))
}

// loadPage is how many endpoints LoadEndpoints reads at once.
const loadPage = 500

// LoadEndpoint returns one endpoint as the engine needs it, of any tenant and in any status.
func (s *endpoints) LoadEndpoint(ctx context.Context, id godwit.EndpointID) (*store.LoadedEndpoint, error) {
	list, err := s.loadEndpoints(ctx, ` WHERE id = $1`, [16]byte(id))
	if err != nil {
		return nil, failed("load endpoint", err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("load endpoint: %w", store.ErrNotFound)
	}
	return list[0], nil
}

// LoadEndpoints passes every endpoint that is not deleted to fn. Two connections read the next ones meanwhile.
func (s *endpoints) LoadEndpoints(ctx context.Context, fn func(*store.LoadedEndpoint) error) error {
	return s.loadPages(ctx, fn, ``)
}

// LoadShards passes the endpoints of some shards to fn. An endpoint's shard is in the last byte of its id.
func (s *endpoints) LoadShards(ctx context.Context, shards []int, fn func(*store.LoadedEndpoint) error) error {
	return s.loadPages(ctx, fn, fmt.Sprintf(` AND get_byte(uuid_send(id), 15) %% %d = ANY ($3)`, godwit.Shards), shards)
}

func (s *endpoints) loadPages(ctx context.Context, fn func(*store.LoadedEndpoint) error, filter string, args ...any) error {
	r := store.EndpointReader{
		Size: loadPage,
		Read: func(ctx context.Context, after godwit.EndpointID) ([]*store.LoadedEndpoint, error) {
			list, err := s.loadBare(ctx, ` WHERE id > $1 AND status <> 'deleted'`+filter+` ORDER BY id LIMIT $2`,
				append([]any{[16]byte(after), loadPage}, args...)...)
			return list, failed("load endpoints", err)
		},
		Fill: func(ctx context.Context, page []*store.LoadedEndpoint) error {
			return failed("load endpoints", s.loadMore(ctx, page))
		},
	}
	return r.Each(ctx, fn)
}

// LoadChosen returns the endpoints with the ids.
func (s *endpoints) LoadChosen(ctx context.Context, ids []godwit.EndpointID) ([]*store.LoadedEndpoint, error) {
	var all []*store.LoadedEndpoint
	for part := range slices.Chunk(ids, loadPage) {
		list, err := s.loadEndpoints(ctx, ` WHERE id = ANY ($1)`, rawIDs(part))
		if err != nil {
			return nil, failed("load endpoints", err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// loadEndpoints reads endpoints with all that the engine needs.
func (s *endpoints) loadEndpoints(ctx context.Context, where string, args ...any) ([]*store.LoadedEndpoint, error) {
	list, err := s.loadBare(ctx, where, args...)
	if err != nil || len(list) == 0 {
		return list, err
	}
	return list, s.loadMore(ctx, list)
}

// loadBare reads endpoints without their secrets and health.
func (s *endpoints) loadBare(ctx context.Context, where string, args ...any) ([]*store.LoadedEndpoint, error) {
	const account = `coalesce((SELECT t.code FROM tenants AS t WHERE t.id = tenant_id), ''),
		coalesce((SELECT (v.settings->>'live') IS NULL FROM tenants AS t JOIN environments AS v ON v.id = t.environment_id WHERE t.id = tenant_id), false),
		CASE WHEN signing <> '' THEN (SELECT t.environment_id FROM tenants AS t WHERE t.id = tenant_id) END`
	r, err := s.pool.Query(ctx, `SELECT `+endpointFields+`, `+account+` FROM endpoints`+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(r, func(r pgx.CollectableRow) (*store.LoadedEndpoint, error) {
		l := &store.LoadedEndpoint{}
		err := scanEndpointInto(r, &l.Endpoint, &l.Account, &l.Test, scanID(&l.Environment))
		l.Health.EndpointID = l.Endpoint.ID
		return l, err
	})
}

// loadMore reads the secrets and the health of endpoints.
func (s *endpoints) loadMore(ctx context.Context, list []*store.LoadedEndpoint) error {
	ids := make([][16]byte, len(list))
	byID := make(map[godwit.EndpointID]*store.LoadedEndpoint, len(list))
	for i, l := range list {
		ids[i], byID[l.Endpoint.ID] = l.Endpoint.ID, l
	}
	batch := &pgx.Batch{}
	batch.Queue(selectSecrets+` WHERE endpoint_id = ANY ($1) ORDER BY id DESC`, ids).Query(func(r pgx.Rows) error {
		secrets, err := pgx.CollectRows(r, scanSecret)
		for _, secret := range secrets {
			byID[secret.EndpointID].Secrets = append(byID[secret.EndpointID].Secrets, *secret)
		}
		return err
	})
	batch.Queue(selectHealth+` WHERE endpoint_id = ANY ($1)`, ids).Query(func(r pgx.Rows) error {
		health, err := pgx.CollectRows(r, scanHealth)
		for _, h := range health {
			byID[h.EndpointID].Health = *h
		}
		return err
	})
	return s.pool.SendBatch(ctx, batch).Close()
}

func cleanAll(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return out
}
