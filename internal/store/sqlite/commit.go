package sqlite

import (
	"context"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// batches stores the batches of the engine: accepted events, results of attempts, health and notices.
type batches struct{ *database }

// Commit stores a batch in one synced transaction.
func (s *batches) Commit(ctx context.Context, b *store.Batch) (*store.Committed, error) {
	out := &store.Committed{Existing: make([]*godwit.IdempotencyRecord, len(b.Accepts))}
	err := s.write(ctx, "commit batch", func(c *conn) error {
		used := store.NewTally(b.Now)
		if err := s.accept(c, b, out, used); err != nil {
			return err
		}
		lost, err := s.record(c, b, out, used)
		if err != nil {
			return err
		}
		if err := count(c, b.Now, used); err != nil {
			return err
		}
		if err := s.handed.settle(c); err != nil {
			return err
		}
		if len(b.Evidence) > 0 {
			if err := appendOf(c, b, out.Fenced); err != nil {
				return err
			}
		}
		for i := range b.Health {
			if lost[b.Health[i].EndpointID] {
				continue
			}
			if err := putHealth(c, &b.Health[i]); err != nil {
				return err
			}
		}
		for i := range b.Changes {
			if err := changeEndpoint(c, &b.Changes[i], micros(b.Now)); err != nil {
				return err
			}
		}
		for i := range b.Notices {
			if err := insertNotice(c, &b.Notices[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
