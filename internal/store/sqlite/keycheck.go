package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/godwit-hq/godwit/internal/store"
)

// keyChecks keeps the check values of keys that are held outside the store.
type keyChecks struct{ *database }

// KeyCheck reads a check value.
func (s *keyChecks) KeyCheck(ctx context.Context, name string) (value []byte, err error) {
	err = s.read(ctx, "read key check", func(c *conn) error {
		return c.first(ctx, "SELECT value FROM key_checks WHERE name = ?", []driver.Value{name}, func(r *rows) error {
			value = r.blob(0)
			return nil
		})
	})
	return value, err
}

// SetKeyCheck replaces a check value.
func (s *keyChecks) SetKeyCheck(ctx context.Context, name string, old, value []byte) error {
	return s.write(ctx, "write key check", func(c *conn) error {
		query, args := "INSERT INTO key_checks (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", []driver.Value{name, value}
		if old != nil {
			query, args = "UPDATE key_checks SET value = ? WHERE name = ? AND value = ?", []driver.Value{value, name, old}
		}
		n, err := c.exec(query, args...)
		if err == nil && n == 0 {
			return store.ErrConflict
		}
		return err
	})
}
