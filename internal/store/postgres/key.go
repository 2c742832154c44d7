package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// keys keeps API keys.
type keys struct{ *database }

// CreateKey stores a key with only the hash of its token.
func (s *keys) CreateKey(ctx context.Context, k *godwit.APIKey) error {
	scopes := make([]string, len(k.Scopes))
	for i, scope := range k.Scopes {
		scopes[i] = string(scope)
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO api_keys (id, tenant_id, principal, name, hint, hash, scopes, created_at, expires_at, revoked_at, made_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		[16]byte(k.ID), [16]byte(k.TenantID), optionalID(k.Principal), clean(k.Name), clean(k.Hint), k.Hash[:], scopes,
		optionalTime(k.CreatedAt), optionalTime(k.ExpiresAt), optionalTime(k.RevokedAt), rawIDs(k.Makers))
	return failed("create key", err)
}

const selectKeys = `SELECT id, tenant_id, principal, name, hint, hash, scopes, created_at, expires_at, revoked_at, made_by FROM api_keys`

// Key returns a tenant's key.
func (s *keys) Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error) {
	return s.readKey(ctx, ` WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
}

// KeyByHash returns the key, live or not.
func (s *keys) KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error) {
	return s.readKey(ctx, ` WHERE hash = $1`, hash[:])
}

func (s *keys) readKey(ctx context.Context, where string, args ...any) (*godwit.APIKey, error) {
	r, err := s.pool.Query(ctx, selectKeys+where, args...)
	if err != nil {
		return nil, failed("read key", err)
	}
	k, err := pgx.CollectExactlyOneRow(r, scanKey)
	return k, failed("read key", err)
}

// ListKeys lists all keys, including revoked and expired ones.
func (s *keys) ListKeys(ctx context.Context, tenant godwit.TenantID, p store.Page) ([]godwit.APIKey, error) {
	var w where
	w.add("tenant_id = ?", [16]byte(tenant))
	w.page(p)
	r, err := s.pool.Query(ctx, selectKeys+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list keys", err)
	}
	list, err := pgx.CollectRows(r, scanKey)
	return values(list), failed("list keys", err)
}

func scanKey(r pgx.CollectableRow) (*godwit.APIKey, error) {
	k := &godwit.APIKey{}
	var hash []byte
	var scopes []string
	var makers [][16]byte
	err := r.Scan(scanID(&k.ID), scanID(&k.TenantID), scanID(&k.Principal), &k.Name, &k.Hint, &hash, &scopes,
		scanTime(&k.CreatedAt), scanTime(&k.ExpiresAt), scanTime(&k.RevokedAt), &makers)
	if err != nil {
		return nil, err
	}
	copy(k.Hash[:], hash)
	for _, scope := range scopes {
		k.Scopes = append(k.Scopes, godwit.Scope(scope))
	}
	for _, id := range makers {
		k.Makers = append(k.Makers, godwit.KeyID(id))
	}
	return k, nil
}

// RevokeKey ends a key and its sessions. It keeps the first revocation time when it is repeated.
func (s *keys) RevokeKey(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID, now time.Time) error {
	tag, err := s.pool.Exec(ctx, `WITH revoked AS (UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND id = $2 RETURNING id),
		ended AS (DELETE FROM sessions AS s USING revoked AS r WHERE s.key_id = r.id AND s.kind = 'dashboard'),
		unused AS (DELETE FROM sign_in_links AS l USING revoked AS r WHERE l.key_id = r.id AND l.used_at IS NULL)
		SELECT id FROM revoked`, [16]byte(tenant), [16]byte(id), now)
	return changed("revoke key", tag, err)
}
