package sqlite

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/godwit-hq/godwit/internal/store"
)

// A beat remembers whether a durable write has succeeded since the last Ping.
type beat struct{ fresh atomic.Bool }

func (b *beat) wrote()  { b.fresh.Store(true) }
func (b *beat) failed() { b.fresh.Store(false) }

// upkeep checks and describes the database.
type upkeep struct{ *database }

// Ping reports whether a write is possible. It does not write if another write succeeded since the last Ping.
func (s *upkeep) Ping(ctx context.Context) error {
	if s.beat.fresh.Swap(false) {
		return ctx.Err()
	}
	err := s.write(ctx, "ping", func(c *conn) error {
		_, err := c.exec("UPDATE heartbeat SET beats = beats + 1")
		return err
	})
	s.beat.fresh.Store(false) // its own write does not count for the next Ping
	return err
}

// Verify runs SQLite's quick_check, which finds malformed pages and rows. It cannot find a changed byte within a value.
func (s *upkeep) Verify(ctx context.Context) (string, error) {
	const looked = "quick_check found no damage"
	err := s.read(ctx, "verify database", func(c *conn) error {
		return c.each(ctx, "PRAGMA quick_check(1)", nil, func(r *rows) error {
			if text := r.text(0); text != "ok" {
				return fmt.Errorf("%w: %s", store.ErrDamaged, text)
			}
			return nil
		})
	})
	return looked, err
}

// Describe describes this store.
func (s *upkeep) Describe(ctx context.Context) (store.Description, error) {
	known, err := migrations()
	if err != nil {
		return store.Description{}, err
	}
	d := store.Description{
		Backend: "sqlite", ProgramSchema: len(known), Location: s.path,
		Durability: "written and synced to this machine's disk before it is acknowledged (WAL, synchronous=FULL)",
	}
	err = s.read(ctx, "describe store", func(c *conn) (err error) {
		if d.Version, err = libraryVersion(ctx, c); err != nil {
			return err
		}
		d.SchemaVersion, err = schemaVersion(ctx, c)
		return err
	})
	return d, err
}
