package sqlite

import (
	"context"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// reserve stores a record, replacing an expired one. If an unexpired one exists, it returns that one. A reservation that replaces
// an interrupted one of the same request keeps the time of the first.
func reserve(c *conn, rec *godwit.IdempotencyRecord, now int64) (*godwit.IdempotencyRecord, error) {
	stored, err := insertRecord(c, rec)
	if err != nil || stored {
		return nil, err
	}
	existing, err := readRecord(context.Background(), c, rec.ID)
	if err != nil {
		return nil, err
	}
	if micros(existing.ExpiresAt) > now {
		return existing, nil
	}
	if rec.InProgress() && existing.InProgress() && existing.Fingerprint == rec.Fingerprint {
		rec.CreatedAt = existing.CreatedAt
	}
	if _, err := c.exec("DELETE FROM idempotency_records WHERE id = ?", rec.ID[:]); err != nil {
		return nil, err
	}
	_, err = insertRecord(c, rec)
	return nil, err
}

func insertRecord(c *conn, rec *godwit.IdempotencyRecord) (bool, error) {
	resp := rec.Response
	if resp == nil {
		resp = &godwit.StoredResponse{}
	}
	var event []byte // null if the request has no events
	if !rec.EventID.IsZero() {
		event = rec.EventID[:]
	}
	n, err := c.exec(`INSERT INTO idempotency_records (id, tenant_id, fingerprint, event_id, status, content_type, location, created_at, expires_at, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		rec.ID[:], rec.TenantID[:], rec.Fingerprint[:], event, int64(resp.Status), resp.ContentType, resp.Location,
		micros(rec.CreatedAt), micros(rec.ExpiresAt), resp.Body)
	return n == 1, err
}

func readRecord(ctx context.Context, c *conn, id [32]byte) (*godwit.IdempotencyRecord, error) {
	rec := &godwit.IdempotencyRecord{ID: id}
	err := c.first(ctx, `SELECT tenant_id, fingerprint, status, content_type, location, created_at, expires_at, body, event_id
		FROM idempotency_records WHERE id = ?`, ids(id[:]), func(r *rows) error {
		rec.TenantID, rec.Fingerprint = r.id(0), r.hash(1)
		rec.CreatedAt, rec.ExpiresAt = r.time(5), r.time(6)
		rec.EventID = r.id(8)
		if r.int(2) != 0 {
			rec.Response = &godwit.StoredResponse{Status: int(r.int(2)), ContentType: r.text(3), Location: r.text(4), Body: r.blob(7)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rec, nil
}

// idempotency keeps the records of management requests.
type idempotency struct{ *database }

// Reserve reserves a key for a request, or returns the existing record.
func (s *idempotency) Reserve(ctx context.Context, rec *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error) {
	var existing *godwit.IdempotencyRecord
	err := s.write(ctx, "reserve idempotency key", func(c *conn) (err error) {
		existing, err = reserve(c, rec, micros(rec.CreatedAt))
		return err
	})
	if err != nil {
		return nil, err
	}
	return existing, nil
}

// Complete stores the answer to be replayed.
func (s *idempotency) Complete(ctx context.Context, held *godwit.IdempotencyRecord, resp *godwit.StoredResponse, expires time.Time) error {
	return s.write(ctx, "complete idempotency record", func(c *conn) error {
		n, err := c.exec("UPDATE idempotency_records SET status = ?, content_type = ?, location = ?, body = ?, expires_at = ? WHERE id = ? AND expires_at = ?",
			int64(resp.Status), resp.ContentType, resp.Location, resp.Body, micros(expires), held.ID[:], micros(held.ExpiresAt))
		if err == nil && n == 0 {
			return store.ErrNotFound
		}
		return err
	})
}

// Interrupt ends the lease of an interrupted request.
func (s *idempotency) Interrupt(ctx context.Context, held *godwit.IdempotencyRecord, now time.Time) error {
	return s.write(ctx, "release idempotency key", func(c *conn) error {
		_, err := c.exec("UPDATE idempotency_records SET expires_at = ? WHERE id = ? AND expires_at = ?", micros(now), held.ID[:], micros(held.ExpiresAt))
		return err
	})
}

// Forget frees a key.
func (s *idempotency) Forget(ctx context.Context, held *godwit.IdempotencyRecord) error {
	return s.write(ctx, "forget idempotency key", func(c *conn) error {
		_, err := c.exec("DELETE FROM idempotency_records WHERE id = ? AND expires_at = ?", held.ID[:], micros(held.ExpiresAt))
		return err
	})
}

// Recorded returns the record of a key.
func (s *idempotency) Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error) {
	var rec *godwit.IdempotencyRecord
	err := s.read(ctx, "read idempotency record", func(c *conn) (err error) {
		rec, err = readRecord(ctx, c, id)
		if err == nil && micros(rec.ExpiresAt) <= micros(now) {
			return store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return rec, nil
}
