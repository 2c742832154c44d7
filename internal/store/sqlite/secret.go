package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// Public lists select NULL in place of the sealed column.
const (
	secretColumns = "id, endpoint_id, tenant_id, algorithm, public_key, created_at, not_before, expires_at, hash, hint, sealed"
	publicColumns = "id, endpoint_id, tenant_id, algorithm, public_key, created_at, not_before, expires_at, hash, hint, NULL"
)

func scanSecret(r *rows) godwit.Secret {
	return godwit.Secret{
		ID: r.id(0), EndpointID: r.id(1), TenantID: r.id(2), Algorithm: r.text(3), PublicKey: r.blob(4),
		CreatedAt: r.time(5), NotBefore: r.time(6), ExpiresAt: r.time(7), Hash: r.text(8), Hint: r.text(9), Sealed: r.blob(10),
	}
}

func insertSecret(c *conn, s *godwit.Secret) error {
	_, err := c.exec("INSERT INTO secrets ("+secretColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.ID[:], s.EndpointID[:], s.TenantID[:], s.Algorithm, s.PublicKey, micros(s.CreatedAt), micros(s.NotBefore),
		micros(s.ExpiresAt), s.Hash, s.Hint, s.Sealed)
	if taken(err) {
		return store.ErrConflict
	}
	return err
}

func listSecrets(ctx context.Context, c *conn, endpoint godwit.EndpointID) (ss []godwit.Secret, err error) {
	err = c.each(ctx, "SELECT "+secretColumns+" FROM secrets WHERE endpoint_id = ? ORDER BY created_at DESC, id DESC", ids(endpoint[:]),
		func(r *rows) error { ss = append(ss, scanSecret(r)); return nil })
	return ss, err
}

// secrets keeps the secrets of endpoints.
type secrets struct{ *database }

// Secrets lists an endpoint's secrets, newest first.
func (s *secrets) Secrets(ctx context.Context, tenant godwit.TenantID, endpoint godwit.EndpointID) ([]godwit.Secret, error) {
	var ss []godwit.Secret
	err := s.read(ctx, "list secrets", func(c *conn) (err error) {
		if err := ownsSecrets(ctx, c, tenant, endpoint); err != nil {
			return err
		}
		ss, err = listSecrets(ctx, c, endpoint)
		return err
	})
	return ss, err
}

// ownsSecrets returns store.ErrNotFound unless the tenant has the endpoint, or is the home of an environment whose keys are meant.
func ownsSecrets(ctx context.Context, c *conn, tenant godwit.TenantID, endpoint godwit.EndpointID) error {
	if godwit.EndpointID(tenant) != endpoint {
		return owned(ctx, c, tenant, endpoint)
	}
	return c.first(ctx, "SELECT 1 FROM environments WHERE id = ? AND deleted_at = 0", ids(tenant[:]), func(*rows) error { return nil })
}

// EnvironmentKeys lists the signing keys of an environment, or of all.
func (s *secrets) EnvironmentKeys(ctx context.Context, id godwit.EnvironmentID) ([]godwit.Secret, error) {
	var keys []godwit.Secret
	err := s.read(ctx, "list environment keys", func(c *conn) error {
		keys = nil
		return c.each(ctx, "SELECT "+secretColumns+` FROM secrets WHERE endpoint_id IN (SELECT id FROM environments WHERE deleted_at = 0 AND (?1 OR id = ?2))
			ORDER BY created_at DESC, id DESC`, []driver.Value{flag(id.IsZero()), id[:]},
			func(r *rows) error { keys = append(keys, scanSecret(r)); return nil })
	})
	return keys, err
}

// AddFirstKey stores the first signing key of an environment.
func (s *secrets) AddFirstKey(ctx context.Context, key *godwit.Secret) error {
	return s.write(ctx, "add environment key", func(c *conn) error {
		if err := ownsSecrets(ctx, c, key.TenantID, key.EndpointID); err != nil {
			return err
		}
		found, err := c.one(ctx, "SELECT 1 FROM secrets WHERE endpoint_id = ? LIMIT 1", ids(key.EndpointID[:]), nil)
		if err != nil {
			return err
		}
		if found {
			return store.ErrConflict
		}
		return insertSecret(c, key)
	})
}

// addSecret stores a new secret and sets the expiry of the others.
func addSecret(ctx context.Context, c *conn, tenant godwit.TenantID, secret *godwit.Secret, others store.Expiry) error {
	if err := ownsSecrets(ctx, c, tenant, secret.EndpointID); err != nil {
		return err
	}
	if err := expireSecrets(c, secret, others); err != nil {
		return err
	}
	return insertSecret(c, secret)
}

// revokeSecret ends a secret, unless it is the only live one.
func revokeSecret(ctx context.Context, c *conn, e *store.RevokeSecret) error {
	if err := ownsSecrets(ctx, c, e.TenantID, e.EndpointID); err != nil {
		return err
	}
	all, err := listSecrets(ctx, c, e.EndpointID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(s godwit.Secret) bool { return s.ID == e.SecretID })
	if i < 0 {
		return store.ErrNotFound
	}
	now := fromMicros(micros(e.Now))
	if end := all[i].ExpiresAt; !end.IsZero() && !now.Before(end) {
		return store.ErrConflict
	}
	others := slices.ContainsFunc(all, func(s godwit.Secret) bool { return s.ID != e.SecretID && s.LiveAt(now) })
	if all[i].LiveAt(now) && !others {
		return store.ErrConflict
	}
	_, err = c.exec("UPDATE secrets SET expires_at = ? WHERE id = ?", micros(now), e.SecretID[:])
	return err
}

// expireSecrets sets the end of an endpoint's existing secrets when a new one is added. Secrets that end earlier do not count
// as kept.
func expireSecrets(c *conn, next *godwit.Secret, others store.Expiry) error {
	if others.At.IsZero() {
		return nil
	}
	if others.Keep > 0 {
		_, err := c.exec(`UPDATE secrets SET expires_at = ?1 WHERE endpoint_id = ?2 AND (expires_at = 0 OR expires_at > ?1) AND id NOT IN (
			SELECT id FROM secrets WHERE endpoint_id = ?2 AND (expires_at = 0 OR expires_at > ?1) ORDER BY created_at DESC, id DESC LIMIT ?3)`,
			micros(next.Begins()), next.EndpointID[:], int64(others.Keep))
		if err != nil {
			return err
		}
	}
	_, err := c.exec(`UPDATE secrets SET expires_at = ?1 WHERE endpoint_id = ?2 AND (expires_at = 0 OR expires_at > ?1)`,
		micros(others.At), next.EndpointID[:])
	return err
}

// PublicKeys lists the public keys that have not expired.
func (s *secrets) PublicKeys(ctx context.Context, now time.Time, after godwit.SecretID, limit int) ([]godwit.Secret, error) {
	var ss []godwit.Secret
	err := s.read(ctx, "list public keys", func(c *conn) error {
		return c.each(ctx, "SELECT "+publicColumns+` FROM secrets INDEXED BY secrets_public
			WHERE public_key IS NOT NULL AND id > ? AND (expires_at = 0 OR expires_at > ?) ORDER BY id LIMIT ?`,
			[]driver.Value{after[:], micros(now), int64(max(limit, 0))},
			func(r *rows) error { ss = append(ss, scanSecret(r)); return nil })
	})
	return ss, err
}

// PublicKey returns one public key, expired or not.
func (s *secrets) PublicKey(ctx context.Context, id godwit.SecretID) (*godwit.Secret, error) {
	var secret godwit.Secret
	err := s.read(ctx, "read public key", func(c *conn) error {
		return c.first(ctx, "SELECT "+publicColumns+" FROM secrets WHERE id = ? AND public_key IS NOT NULL", ids(id[:]),
			func(r *rows) error { secret = scanSecret(r); return nil })
	})
	if err != nil {
		return nil, err
	}
	return &secret, nil
}
