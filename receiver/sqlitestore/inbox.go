package sqlitestore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/receiver"
	"github.com/godwit-hq/godwit/receiver/internal/record"
)

// Enqueue implements [receiver.Inbox].
func (s *Store) Enqueue(ctx context.Context, j receiver.Job) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	data := j.Data()
	_, err = s.write(ctx, `INSERT INTO webhook_inbox AS known (id, event_id, event_type, delivery, received_at, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id, event_type = excluded.event_type, delivery = excluded.delivery,
  received_at = excluded.received_at, state = 'waiting', attempt = 0, token = '', at = excluded.at, reason = ''
WHERE known.state IN ('done', 'dead') AND known.at < ?`,
		j.ID, record.Text(data.EventID), record.Text(data.EventType), string(text), data.ReceivedAt,
		record.Millis(j.Delivery.ReceivedAt), record.Millis(j.Replaces))
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// Claim implements [receiver.Inbox].
func (s *Store) Claim(ctx context.Context, limit int, now, leaseUntil time.Time) ([]receiver.ClaimedJob, error) {
	if idle, err := s.idle(ctx, now); err != nil || idle {
		return nil, err
	}
	token := record.Token()
	jobs, broken, err := s.claim(ctx, limit, token, now, leaseUntil)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	for _, id := range broken {
		j := receiver.ClaimedJob{Job: receiver.Job{ID: id}, Token: token}
		if _, err := s.Settle(ctx, j, receiver.Settlement{State: receiver.JobDead, At: now, Reason: "cannot be read"}); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// idle queries without the write lock, so that idle workers do not block writers.
func (s *Store) idle(ctx context.Context, now time.Time) (bool, error) {
	var due bool
	err := s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM webhook_inbox WHERE state IN ('waiting', 'claimed') AND at <= ?)`,
		record.Millis(now)).Scan(&due)
	if err != nil {
		return false, fmt.Errorf("look for jobs: %w", err)
	}
	return !due, nil
}

// claimJobs queries each state by itself: then the index has the order, and a claim does not sort a long queue.
const claimJobs = `UPDATE webhook_inbox SET state = 'claimed', attempt = attempt + 1, token = ?1, at = ?2 WHERE id IN (
  SELECT id FROM (
    SELECT * FROM (SELECT id, at, received_at FROM webhook_inbox WHERE state = 'waiting' AND at <= ?3 ORDER BY at, received_at, id LIMIT ?4)
    UNION ALL
    SELECT * FROM (SELECT id, at, received_at FROM webhook_inbox WHERE state = 'claimed' AND at <= ?3 ORDER BY at, received_at, id LIMIT ?4)
  ) ORDER BY at, received_at, id LIMIT ?4)
RETURNING id, delivery, attempt`

func (s *Store) claim(ctx context.Context, limit int, token string, now, leaseUntil time.Time) (jobs []receiver.ClaimedJob, broken []string, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer s.unlock()
	rows, err := s.db.QueryContext(ctx, claimJobs, token, record.Millis(leaseUntil), record.Millis(now), limit)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	return record.ClaimedJobs(rows, token)
}

const settleJob = `UPDATE webhook_inbox SET state = ?, at = ?, reason = ?, attempt = attempt - ?
WHERE id = ? AND token = ? AND state = 'claimed'`

func settleArgs(j receiver.ClaimedJob, s receiver.Settlement) []any {
	return []any{string(s.State), record.Millis(s.At), record.Reason(s.Reason), record.Refund(s), j.ID, j.Token}
}

// Settle implements [receiver.Inbox].
func (s *Store) Settle(ctx context.Context, j receiver.ClaimedJob, settlement receiver.Settlement) (bool, error) {
	n, err := s.write(ctx, settleJob, settleArgs(j, settlement)...)
	if err != nil {
		return false, fmt.Errorf("settle: %w", err)
	}
	return n == 1, nil
}

// PurgeJobs implements [receiver.Inbox].
func (s *Store) PurgeJobs(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := s.write(ctx, `DELETE FROM webhook_inbox WHERE id IN (SELECT id FROM webhook_inbox WHERE state = 'done' AND at < ? LIMIT ?)`,
		record.Millis(before), limit)
	if err != nil {
		return 0, fmt.Errorf("purge jobs: %w", err)
	}
	return int(n), nil
}
