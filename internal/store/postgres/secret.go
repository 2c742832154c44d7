package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const (
	selectSecrets = `SELECT id, endpoint_id, tenant_id, algorithm, sealed, public_key, created_at, not_before, expires_at,
		hash, hint FROM endpoint_secrets`
	selectPublicKeys = `SELECT id, endpoint_id, tenant_id, algorithm, NULL::bytea, public_key, created_at, not_before, expires_at,
		hash, hint FROM endpoint_secrets`
)

func insertSecret(ctx context.Context, q session, s *godwit.Secret) error {
	_, err := q.Exec(ctx, `INSERT INTO endpoint_secrets (id, endpoint_id, tenant_id, algorithm, sealed, public_key, created_at, not_before,
			expires_at, hash, hint)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		[16]byte(s.ID), [16]byte(s.EndpointID), [16]byte(s.TenantID), s.Algorithm, s.Sealed, s.PublicKey,
		optionalTime(s.CreatedAt), optionalTime(s.NotBefore), optionalTime(s.ExpiresAt), clean(s.Hash), clean(s.Hint))
	return err
}

func scanSecret(r pgx.CollectableRow) (*godwit.Secret, error) {
	s := &godwit.Secret{}
	return s, r.Scan(scanID(&s.ID), scanID(&s.EndpointID), scanID(&s.TenantID), &s.Algorithm, &s.Sealed, &s.PublicKey,
		scanTime(&s.CreatedAt), scanTime(&s.NotBefore), scanTime(&s.ExpiresAt), &s.Hash, &s.Hint)
}

// secrets keeps the secrets of endpoints.
type secrets struct {
	*database
	endpoints *endpoints // tells whose endpoint it is
}

// Secrets lists an endpoint's secrets, newest first, including expired ones.
func (s *secrets) Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error) {
	if godwit.EndpointID(tenant) == endpoint {
		var found int
		if err := s.pool.QueryRow(ctx, `SELECT 1 FROM environments WHERE id = $1 AND deleted_at IS NULL`, [16]byte(tenant)).Scan(&found); err != nil {
			return nil, failed("find environment", err)
		}
		return s.EnvironmentKeys(ctx, godwit.EnvironmentID(tenant))
	}
	if _, err := s.endpoints.Endpoint(ctx, tenant, endpoint); err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	r, err := s.pool.Query(ctx, selectSecrets+` WHERE endpoint_id = $1 ORDER BY created_at DESC, id DESC`, [16]byte(endpoint))
	if err != nil {
		return nil, failed("list secrets", err)
	}
	list, err := pgx.CollectRows(r, scanSecret)
	return values(list), failed("list secrets", err)
}

// EnvironmentKeys lists the signing keys of an environment, or of all.
func (s *secrets) EnvironmentKeys(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error) {
	r, err := s.pool.Query(ctx, selectSecrets+` WHERE endpoint_id IN (SELECT id FROM environments WHERE deleted_at IS NULL AND ($1 OR id = $2))
		ORDER BY created_at DESC, id DESC`, id.IsZero(), [16]byte(id))
	if err != nil {
		return nil, failed("list environment keys", err)
	}
	list, err := pgx.CollectRows(r, scanSecret)
	return values(list), failed("list environment keys", err)
}

// AddFirstKey stores the first signing key of an environment.
func (s *secrets) AddFirstKey(ctx context.Context, key *godwit.Secret) error {
	return failed("add environment key", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockEndpoint(ctx, tx, key.TenantID, key.EndpointID); err != nil {
			return err
		}
		var found bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM endpoint_secrets WHERE endpoint_id = $1)`, [16]byte(key.EndpointID)).Scan(&found)
		if err != nil {
			return err
		}
		if found {
			return store.ErrConflict
		}
		return insertSecret(ctx, tx, key)
	}))
}

// addSecret stores a new secret and sets the expiry of the others.
func addSecret(ctx context.Context, q session, secret *godwit.Secret, others store.Expiry) error {
	if err := lockEndpoint(ctx, q, secret.TenantID, secret.EndpointID); err != nil {
		return err
	}
	if err := expireSecrets(ctx, q, secret, others); err != nil {
		return err
	}
	return insertSecret(ctx, q, secret)
}

// lockEndpoint makes transactions that change an endpoint's secrets take turns, so that the later one sees the earlier change. For the keys of an
// environment it locks that.
func lockEndpoint(ctx context.Context, q session, tenant godwit.TenantID, id godwit.EndpointID) error {
	if godwit.EndpointID(tenant) == id {
		tag, err := q.Exec(ctx, `SELECT FROM environments WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`, [16]byte(id))
		return changed("find environment", tag, err)
	}
	tag, err := q.Exec(ctx, `SELECT FROM endpoints WHERE id = $1 AND tenant_id = $2 AND status <> 'deleted' FOR UPDATE`,
		[16]byte(id), [16]byte(tenant))
	return changed("find endpoint", tag, err)
}

// revokeSecret ends a secret at once, unless it is the only live one.
func revokeSecret(ctx context.Context, q session, e store.RevokeSecret) error {
	if err := lockEndpoint(ctx, q, e.TenantID, e.EndpointID); err != nil {
		return err
	}
	r, err := q.Query(ctx, selectSecrets+` WHERE endpoint_id = $1`, [16]byte(e.EndpointID))
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(r, scanSecret)
	if err != nil {
		return err
	}
	var revoked *godwit.Secret
	others := false
	for _, secret := range list {
		if secret.ID == e.SecretID {
			revoked = secret
		} else if secret.LiveAt(e.Now) {
			others = true
		}
	}
	switch {
	case revoked == nil:
		return fmt.Errorf("find secret: %w", store.ErrNotFound)
	case !revoked.ExpiresAt.IsZero() && !e.Now.Before(revoked.ExpiresAt):
		return fmt.Errorf("%w: the secret has ended before", store.ErrConflict)
	case revoked.LiveAt(e.Now) && !others:
		return fmt.Errorf("%w: it is the only secret that signs", store.ErrConflict)
	}
	_, err = q.Exec(ctx, `UPDATE endpoint_secrets SET expires_at = $2 WHERE id = $1`, [16]byte(e.SecretID), e.Now)
	return err
}

// expireSecrets sets the end of an endpoint's secrets that do not end earlier: the newest of them end at the given time, the
// other live ones when the new one begins.
func expireSecrets(ctx context.Context, q session, fresh *godwit.Secret, others store.Expiry) error {
	if others.At.IsZero() {
		return nil
	}
	keep := others.Keep
	if keep <= 0 {
		keep = math.MaxInt32
	}
	begins := fresh.Begins()
	if begins.After(others.At) { // all end before the new one begins
		begins = others.At
	}
	_, err := q.Exec(ctx, `UPDATE endpoint_secrets AS s SET expires_at = least(s.expires_at, n.ends) FROM (
			SELECT id, CASE WHEN row_number() OVER (ORDER BY created_at DESC, id DESC) <= $3 THEN $2::timestamptz ELSE $4::timestamptz END AS ends
			FROM endpoint_secrets WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > $4)) AS n
		WHERE s.id = n.id`, [16]byte(fresh.EndpointID), others.At, keep, begins)
	return err
}

// PublicKeys lists secrets with a public key that have not expired.
func (s *secrets) PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error) {
	r, err := s.pool.Query(ctx, selectPublicKeys+` WHERE public_key IS NOT NULL AND (expires_at IS NULL OR expires_at > $1) AND id > $2
		ORDER BY id LIMIT $3`, now, [16]byte(after), max(limit, 0))
	if err != nil {
		return nil, failed("list public keys", err)
	}
	list, err := pgx.CollectRows(r, scanSecret)
	return values(list), failed("list public keys", err)
}

// PublicKey returns one public key, expired or not.
func (s *secrets) PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error) {
	r, err := s.pool.Query(ctx, selectPublicKeys+` WHERE id = $1 AND public_key IS NOT NULL`, [16]byte(id))
	if err != nil {
		return nil, failed("read public key", err)
	}
	secret, err := pgx.CollectExactlyOneRow(r, scanSecret)
	return secret, failed("read public key", err)
}
