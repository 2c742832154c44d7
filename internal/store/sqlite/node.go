package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// ClaimNode gives the name to the process. Only one process serves a data directory, so a claim fails only if this process
// already has the name.
func (s *Store) ClaimNode(ctx context.Context, n godwit.Node) error {
	return s.write(ctx, "claim node name", func(c *conn) error {
		if other, claimed := s.nodes[n.Name]; claimed && other.Instance != n.Instance {
			return &store.NodeTaken{Name: n.Name, Holder: other.Holder}
		}
		_, err := c.exec(`INSERT INTO nodes (name, instance, holder) VALUES (?1, ?2, ?3)
			ON CONFLICT (name) DO UPDATE SET instance = ?2, holder = ?3`, n.Name, n.Instance, n.Holder)
		if err != nil {
			return err
		}
		// An owner without an instance was stored by an earlier release.
		if _, err := c.exec(`UPDATE leases SET owner = '' WHERE owner = ?1 OR substr(owner, 1, length(?1) + 1) = ?1 || ' '`, n.Name); err != nil {
			return err
		}
		s.nodes[n.Name] = n
		return nil
	})
}

// KeepNode checks that the process still has the name.
func (s *Store) KeepNode(ctx context.Context, n godwit.Node) error {
	return s.read(ctx, "keep node name", func(c *conn) error {
		there, err := c.one(ctx, "SELECT 1 FROM nodes WHERE name = ? AND instance = ?", []driver.Value{n.Name, n.Instance}, nil)
		if err == nil && !there {
			return store.ErrFenced
		}
		return err
	})
}

// KeyCheck reads a check value.
func (s *Store) KeyCheck(ctx context.Context, name string) (value []byte, err error) {
	err = s.read(ctx, "read key check", func(c *conn) error {
		return c.first(ctx, "SELECT value FROM key_checks WHERE name = ?", []driver.Value{name}, func(r *rows) error {
			value = r.blob(0)
			return nil
		})
	})
	return value, err
}

// SetKeyCheck replaces a check value.
func (s *Store) SetKeyCheck(ctx context.Context, name string, old, value []byte) error {
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
