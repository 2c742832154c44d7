package postgresstore

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
	_, err = s.db.Exec(ctx, `INSERT INTO webhook_inbox AS known (id, event_id, event_type, delivery, received_at, at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET event_id = excluded.event_id, event_type = excluded.event_type, delivery = excluded.delivery,
  received_at = excluded.received_at, state = 'waiting', attempt = 0, token = '', at = excluded.at, reason = ''
WHERE known.state IN ('done', 'dead') AND known.at < $7`,
		j.ID, record.Text(data.EventID), record.Text(data.EventType), string(text), data.ReceivedAt,
		record.Millis(j.Delivery.ReceivedAt), record.Millis(j.Replaces))
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// Claim implements [receiver.Inbox]. Workers skip jobs that another worker is claiming.
func (s *Store) Claim(ctx context.Context, limit int, now, leaseUntil time.Time) ([]receiver.ClaimedJob, error) {
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

// claimJobs follows the index webhook_inbox_open, so that a claim does not sort a long queue.
const claimJobs = `WITH due AS MATERIALIZED (SELECT id FROM webhook_inbox WHERE state IN ('waiting', 'claimed') AND at <= $1
  ORDER BY at, received_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
UPDATE webhook_inbox SET state = 'claimed', attempt = attempt + 1, token = $3, at = $4
FROM due WHERE webhook_inbox.id = due.id
RETURNING webhook_inbox.id, delivery, attempt`

func (s *Store) claim(ctx context.Context, limit int, token string, now, leaseUntil time.Time) (jobs []receiver.ClaimedJob, broken []string, err error) {
	rows, err := s.db.Query(ctx, claimJobs, record.Millis(now), limit, token, record.Millis(leaseUntil))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	return record.ClaimedJobs(rows, token)
}

const settleJob = `UPDATE webhook_inbox SET state = $1, at = $2, reason = $3, attempt = attempt - $4
WHERE id = $5 AND token = $6 AND state = 'claimed'`

func settleArgs(j receiver.ClaimedJob, s receiver.Settlement) []any {
	return []any{string(s.State), record.Millis(s.At), record.Reason(s.Reason), record.Refund(s), j.ID, j.Token}
}

// Settle implements [receiver.Inbox].
func (s *Store) Settle(ctx context.Context, j receiver.ClaimedJob, settlement receiver.Settlement) (bool, error) {
	tag, err := s.db.Exec(ctx, settleJob, settleArgs(j, settlement)...)
	if err != nil {
		return false, fmt.Errorf("settle: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// PurgeJobs implements [receiver.Inbox].
func (s *Store) PurgeJobs(ctx context.Context, before time.Time, limit int) (int, error) {
	tag, err := s.db.Exec(ctx, `DELETE FROM webhook_inbox WHERE id IN
  (SELECT id FROM webhook_inbox WHERE state = 'done' AND at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, record.Millis(before), limit)
	if err != nil {
		return 0, fmt.Errorf("purge jobs: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
