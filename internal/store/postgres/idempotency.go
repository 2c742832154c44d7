package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// idempotency keeps the records of management requests.
type idempotency struct{ *database }

// Reserve inserts the record or replaces an expired one, in one atomic step; otherwise it returns the existing one. A record that
// replaces an interrupted one of the same request keeps the time of the first.
func (s *idempotency) Reserve(ctx context.Context, r *godwit.IdempotencyRecord) (*godwit.IdempotencyRecord, error) {
	for {
		err := s.pool.QueryRow(ctx, `INSERT INTO idempotency_records AS r (id, tenant_id, fingerprint, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET tenant_id = excluded.tenant_id, event_id = NULL, fingerprint = excluded.fingerprint,
				response_status = NULL, response_type = NULL, response_location = NULL, response_body = NULL,
				created_at = CASE WHEN r.response_status IS NULL AND r.fingerprint = excluded.fingerprint
					THEN r.created_at ELSE excluded.created_at END,
				expires_at = excluded.expires_at
			WHERE r.expires_at <= excluded.created_at
			RETURNING created_at`,
			r.ID[:], [16]byte(r.TenantID), r.Fingerprint[:], r.CreatedAt, optionalTime(r.ExpiresAt)).Scan(scanTime(&r.CreatedAt))
		if !errors.Is(err, pgx.ErrNoRows) {
			return nil, failed("reserve key", err)
		}
		there, err := s.readRecord(ctx, r.ID, r.CreatedAt)
		if !errors.Is(err, pgx.ErrNoRows) { // otherwise the record was removed meanwhile
			return there, failed("reserve key", err)
		}
	}
}

// Recorded returns the record if it has not expired.
func (s *idempotency) Recorded(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error) {
	r, err := s.readRecord(ctx, id, now)
	return r, failed("read idempotency record", err)
}

func (s *idempotency) readRecord(ctx context.Context, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error) {
	return unexpiredRecord(ctx, s.pool, id, now)
}

func unexpiredRecord(ctx context.Context, s interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, id [32]byte, now time.Time) (*godwit.IdempotencyRecord, error) {
	r := &godwit.IdempotencyRecord{ID: id}
	var fingerprint, body []byte
	var status *int
	var contentType, location *string
	err := s.QueryRow(ctx, `SELECT tenant_id, fingerprint, response_status, response_type, response_location,
		response_body, created_at, expires_at, event_id FROM idempotency_records WHERE id = $1 AND expires_at > $2`, id[:], now).
		Scan(scanID(&r.TenantID), &fingerprint, &status, &contentType, &location, &body, scanTime(&r.CreatedAt), scanTime(&r.ExpiresAt), scanID(&r.EventID))
	if err != nil {
		return nil, err
	}
	copy(r.Fingerprint[:], fingerprint)
	if status != nil {
		r.Response = &godwit.StoredResponse{Status: *status, ContentType: *contentType, Location: *location, Body: body}
	}
	return r, nil
}

// Complete stores the response and the end of the window.
func (s *idempotency) Complete(ctx context.Context, held *godwit.IdempotencyRecord, resp *godwit.StoredResponse, expires time.Time) error {
	tag, err := s.pool.Exec(ctx, `UPDATE idempotency_records SET response_status = $2, response_type = $3,
		response_location = $4, response_body = $5, expires_at = $6 WHERE id = $1 AND expires_at = $7`,
		held.ID[:], resp.Status, clean(resp.ContentType), clean(resp.Location), resp.Body, optionalTime(expires), held.ExpiresAt)
	return changed("complete key", tag, err)
}

// Interrupt ends the lease of an interrupted request.
func (s *idempotency) Interrupt(ctx context.Context, held *godwit.IdempotencyRecord, now time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE idempotency_records SET expires_at = $2 WHERE id = $1 AND expires_at = $3`, held.ID[:], now, held.ExpiresAt)
	return failed("release key", err)
}

// Forget frees the key.
func (s *idempotency) Forget(ctx context.Context, held *godwit.IdempotencyRecord) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM idempotency_records WHERE id = $1 AND expires_at = $2`, held.ID[:], held.ExpiresAt)
	return failed("forget key", err)
}
