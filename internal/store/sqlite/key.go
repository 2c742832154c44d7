package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

const keyColumns = "id, tenant_id, principal, name, hint, hash, scopes, created_at, expires_at, revoked_at, made_by"

func scanKey(r *rows) (godwit.APIKey, error) {
	k := godwit.APIKey{
		ID: r.id(0), TenantID: r.id(1), Principal: r.id(2), Name: r.text(3), Hint: r.text(4), Hash: r.hash(5),
		CreatedAt: r.time(7), ExpiresAt: r.time(8), RevokedAt: r.time(9),
	}
	return k, errors.Join(r.parse(6, &k.Scopes), r.parse(10, &k.Makers))
}

// keys keeps API keys.
type keys struct{ *database }

// CreateKey stores an API key.
func (s *keys) CreateKey(ctx context.Context, k *godwit.APIKey) error {
	scopes, err := document(k.Scopes)
	if err != nil {
		return err
	}
	makers, err := document(k.Makers)
	if err != nil {
		return err
	}
	return s.write(ctx, "create key", func(c *conn) error {
		_, err := c.exec("INSERT INTO api_keys ("+keyColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			k.ID[:], k.TenantID[:], k.Principal[:], k.Name, k.Hint, k.Hash[:], scopes,
			micros(k.CreatedAt), micros(k.ExpiresAt), micros(k.RevokedAt), makers)
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
}

func (s *keys) readKey(ctx context.Context, where string, args []driver.Value) (*godwit.APIKey, error) {
	var k godwit.APIKey
	err := s.read(ctx, "read key", func(c *conn) error {
		return c.first(ctx, "SELECT "+keyColumns+" FROM api_keys WHERE "+where, args,
			func(r *rows) (err error) { k, err = scanKey(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &k, nil
}

// Key returns a tenant's key.
func (s *keys) Key(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID) (*godwit.APIKey, error) {
	return s.readKey(ctx, "id = ? AND tenant_id = ?", ids(id[:], tenant[:]))
}

// KeyByHash returns the key with the hash of a token.
func (s *keys) KeyByHash(ctx context.Context, hash [32]byte) (*godwit.APIKey, error) {
	return s.readKey(ctx, "hash = ?", ids(hash[:]))
}

// ListKeys lists a tenant's keys, newest first.
func (s *keys) ListKeys(ctx context.Context, tenant godwit.TenantID, p store.Page) ([]godwit.APIKey, error) {
	q := newest("SELECT "+keyColumns+" FROM api_keys", "id", p)
	q.where("tenant_id = ?", tenant[:])
	var ks []godwit.APIKey
	err := s.read(ctx, "list keys", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			k, err := scanKey(r)
			ks = append(ks, k)
			return err
		})
	})
	return ks, err
}

// RevokeKey ends a key and its sessions.
func (s *keys) RevokeKey(ctx context.Context, tenant godwit.TenantID, id godwit.KeyID, now time.Time) error {
	return s.write(ctx, "revoke key", func(c *conn) error {
		n, err := c.exec("UPDATE api_keys SET revoked_at = iif(revoked_at = 0, ?, revoked_at) WHERE id = ? AND tenant_id = ?",
			micros(now), id[:], tenant[:])
		if err == nil && n == 0 {
			return store.ErrNotFound
		}
		if err != nil {
			return err
		}
		return endSessionsOfKey(c, id)
	})
}
