package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
)

const (
	selectSecrets = `SELECT id, endpoint_id, tenant_id, algorithm, sealed, public_key, created_at, not_before, expires_at
		FROM endpoint_secrets`
	selectPublicKeys = `SELECT id, endpoint_id, tenant_id, algorithm, NULL::bytea, public_key, created_at, not_before, expires_at
		FROM endpoint_secrets`
)

func insertSecret(ctx context.Context, tx pgx.Tx, s *godwit.Secret) error {
	_, err := tx.Exec(ctx, `INSERT INTO endpoint_secrets (id, endpoint_id, tenant_id, algorithm, sealed, public_key, created_at, not_before, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		[16]byte(s.ID), [16]byte(s.EndpointID), [16]byte(s.TenantID), s.Algorithm, s.Sealed, s.PublicKey,
		optionalTime(s.CreatedAt), optionalTime(s.NotBefore), optionalTime(s.ExpiresAt))
	return err
}

func scanSecret(r pgx.CollectableRow) (*godwit.Secret, error) {
	s := &godwit.Secret{}
	return s, r.Scan(scanID(&s.ID), scanID(&s.EndpointID), scanID(&s.TenantID), &s.Algorithm, &s.Sealed, &s.PublicKey,
		scanTime(&s.CreatedAt), scanTime(&s.NotBefore), scanTime(&s.ExpiresAt))
}

// Secrets lists an endpoint's secrets, expired ones too, newest first.
func (s *Store) Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error) {
	if _, err := s.Endpoint(ctx, tenant, endpoint); err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	r, err := s.pool.Query(ctx, selectSecrets+` WHERE endpoint_id = $1 ORDER BY id DESC`, [16]byte(endpoint))
	if err != nil {
		return nil, failed("list secrets", err)
	}
	list, err := pgx.CollectRows(r, scanSecret)
	return values(list), failed("list secrets", err)
}

// AddSecret stores the new secret and lets all others of the endpoint expire.
func (s *Store) AddSecret(ctx context.Context, secret *godwit.Secret, oldExpire time.Time) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Two rotations at once take turns, so that the later one ends the earlier one's secret.
		tag, err := tx.Exec(ctx, `SELECT FROM endpoints WHERE id = $1 AND tenant_id = $2 AND status <> 'deleted' FOR UPDATE`,
			[16]byte(secret.EndpointID), [16]byte(secret.TenantID))
		if err := changed("find endpoint", tag, err); err != nil {
			return err
		}
		if !oldExpire.IsZero() {
			_, err := tx.Exec(ctx, `UPDATE endpoint_secrets SET expires_at = $2
				WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > $2)`, [16]byte(secret.EndpointID), oldExpire)
			if err != nil {
				return err
			}
		}
		return insertSecret(ctx, tx, secret)
	})
	return failed("add secret", err)
}

// PublicKeys lists secrets with a public key which are not expired.
func (s *Store) PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error) {
	r, err := s.pool.Query(ctx, selectPublicKeys+` WHERE public_key IS NOT NULL AND (expires_at IS NULL OR expires_at > $1) AND id > $2
		ORDER BY id LIMIT $3`, now, [16]byte(after), max(limit, 0))
	if err != nil {
		return nil, failed("list public keys", err)
	}
	list, err := pgx.CollectRows(r, scanSecret)
	return values(list), failed("list public keys", err)
}

// PublicKey returns one public key, expired or not.
func (s *Store) PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error) {
	r, err := s.pool.Query(ctx, selectPublicKeys+` WHERE id = $1 AND public_key IS NOT NULL`, [16]byte(id))
	if err != nil {
		return nil, failed("read public key", err)
	}
	secret, err := pgx.CollectExactlyOneRow(r, scanSecret)
	return secret, failed("read public key", err)
}
