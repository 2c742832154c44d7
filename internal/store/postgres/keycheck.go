package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/store"
)

// keyChecks keeps the check values of keys that are held outside the store.
type keyChecks struct{ *database }

// KeyCheck reads a check value.
func (s *keyChecks) KeyCheck(ctx context.Context, name string) (value []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT value FROM key_checks WHERE name = $1`, name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("read key check: %w", store.ErrNotFound)
	}
	return value, failed("read key check", err)
}

// SetKeyCheck replaces a check value.
func (s *keyChecks) SetKeyCheck(ctx context.Context, name string, old, value []byte) error {
	sql, args := `INSERT INTO key_checks (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, []any{name, value}
	if old != nil {
		sql, args = `UPDATE key_checks SET value = $2 WHERE name = $1 AND value = $3`, []any{name, value, old}
	}
	tag, err := s.pool.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() == 0 {
		err = store.ErrConflict
	}
	return failed("write key check", err)
}
