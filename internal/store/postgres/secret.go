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

func insertSecret(ctx context.Context, tx pgx.Tx, s *godwit.Secret) error {
	_, err := tx.Exec(ctx, `INSERT INTO endpoint_secrets (id, endpoint_id, tenant_id, algorithm, sealed, public_key, created_at, not_before,
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

// Secrets lists an endpoint's secrets, expired ones too, newest first.
func (s *Store) Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error) {
	if _, err := s.Endpoint(ctx, tenant, endpoint); err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	r, err := s.pool.Query(ctx, selectSecrets+` WHERE endpoint_id = $1 ORDER BY created_at DESC, id DESC`, [16]byte(endpoint))
	if err != nil {
		return nil, failed("list secrets", err)
	}
	list, err := pgx.CollectRows(r, scanSecret)
	return values(list), failed("list secrets", err)
}

// AddSecret stores the new secret and gives the endpoint's others their end.
func (s *Store) AddSecret(ctx context.Context, secret *godwit.Secret, others store.Expiry) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Two rotations at once take turns, so that the later one ends the earlier one's secret.
		tag, err := tx.Exec(ctx, `SELECT FROM endpoints WHERE id = $1 AND tenant_id = $2 AND status <> 'deleted' FOR UPDATE`,
			[16]byte(secret.EndpointID), [16]byte(secret.TenantID))
		if err := changed("find endpoint", tag, err); err != nil {
			return err
		}
		if err := endSecrets(ctx, tx, secret, others); err != nil {
			return err
		}
		return insertSecret(ctx, tx, secret)
	})
	return failed("add secret", err)
}

// endSecrets lets an endpoint's secrets end, unless they do so before: the newest of them at the time given, the rest of
// those that still sign when the new one begins.
func endSecrets(ctx context.Context, tx pgx.Tx, fresh *godwit.Secret, others store.Expiry) error {
	if others.At.IsZero() {
		return nil
	}
	keep := others.Keep
	if keep <= 0 {
		keep = math.MaxInt32
	}
	begins := fresh.NotBefore
	if begins.IsZero() {
		begins = fresh.CreatedAt
	}
	_, err := tx.Exec(ctx, `UPDATE endpoint_secrets AS s SET expires_at = least(s.expires_at, n.ends) FROM (
			SELECT id, CASE WHEN row_number() OVER (ORDER BY created_at DESC, id DESC) <= $3 THEN $2::timestamptz ELSE least($2::timestamptz, $4::timestamptz) END AS ends
			FROM endpoint_secrets WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > $4)) AS n
		WHERE s.id = n.id`, [16]byte(fresh.EndpointID), others.At, keep, begins)
	return err
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
