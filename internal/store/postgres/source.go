package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// encodeCarried encodes an event's kept headers and origin: nil for most events.
func encodeCarried(e *godwit.Event) []byte {
	carried := e.Carried()
	if carried == nil {
		return nil
	}
	text, err := json.Marshal(carried)
	if err != nil {
		return nil // strings always encode
	}
	return text
}

func decodeCarried(text []byte, e *godwit.Event) error {
	if text == nil {
		return nil
	}
	var carried godwit.Carried
	if err := json.Unmarshal(text, &carried); err != nil {
		return err
	}
	e.Carry(&carried)
	return nil
}

const sourceFields = `s.id, s.tenant_id, s.name, s.description, s.scheme, s.settings, s.sealed, s.credentials, s.adopt, s.mode,
	s.event_type, s.keep, s.status, s.created_at, s.updated_at, s.version,
	(SELECT r.received_at FROM source_receipts AS r WHERE r.source_id = s.id)`

func scanSource(r pgx.CollectableRow) (*godwit.Source, error) {
	s := &godwit.Source{}
	var settings, credentials, eventType, keep []byte
	err := r.Scan(scanID(&s.ID), scanID(&s.TenantID), &s.Name, &s.Description, &s.Scheme, &settings, &s.Sealed, &credentials, &s.Adopt,
		&s.Mode, &eventType, &keep, &s.Status, scanTime(&s.CreatedAt), scanTime(&s.UpdatedAt), &s.Version, scanTime(&s.LastReceivedAt))
	if err != nil {
		return nil, err
	}
	return s, errors.Join(decodeMap(settings, &s.Settings), decodeMap(credentials, &s.Credentials), decodeMap(eventType, &s.EventType),
		decodeMap(keep, &s.Keep))
}

// sources keeps inbound sources, their acknowledgments and their rejected requests.
type sources struct{ *database }

// CreateSource stores a source.
func (s *sources) CreateSource(ctx context.Context, src *godwit.Source) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO sources (id, tenant_id, name, description, scheme, settings, sealed, credentials, adopt, mode,
			event_type, keep, status, created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		[16]byte(src.ID), [16]byte(src.TenantID), clean(src.Name), clean(src.Description), clean(src.Scheme), optionalJSON(src.Settings),
		src.Sealed, optionalJSON(src.Credentials), src.Adopt, string(src.Mode), optionalJSON(src.EventType), optionalJSON(src.Keep),
		string(src.Status), src.CreatedAt, src.UpdatedAt, src.Version)
	return failed("create source", err)
}

// ReceivedAt notes when a source received a request.
func (s *sources) ReceivedAt(ctx context.Context, id godwit.SourceID, at time.Time) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO source_receipts (source_id, received_at) SELECT id, $2 FROM sources WHERE id = $1 AND status <> 'deleted'
		ON CONFLICT (source_id) DO UPDATE SET received_at = greatest(source_receipts.received_at, excluded.received_at)`, [16]byte(id), at)
	return failed("note receipt", err)
}

// UpdateSource stores src if the stored version is src.Version-1.
func (s *sources) UpdateSource(ctx context.Context, src *godwit.Source) error {
	tag, err := s.pool.Exec(ctx, `UPDATE sources SET name = $4, description = $5, settings = $6, sealed = $7, credentials = $8, adopt = $9,
			mode = $10, event_type = $11, keep = $12, status = $13, updated_at = $14, version = $3
		WHERE tenant_id = $1 AND id = $2 AND version = $3 - 1 AND status <> 'deleted'`,
		[16]byte(src.TenantID), [16]byte(src.ID), src.Version, clean(src.Name), clean(src.Description), optionalJSON(src.Settings), src.Sealed,
		optionalJSON(src.Credentials), src.Adopt, string(src.Mode), optionalJSON(src.EventType), optionalJSON(src.Keep), string(src.Status),
		src.UpdatedAt)
	if err != nil || tag.RowsAffected() == 1 {
		return failed("update source", err)
	}
	if _, err := s.Source(ctx, src.TenantID, src.ID); err != nil {
		return fmt.Errorf("update source: %w", err)
	}
	return fmt.Errorf("update source: %w: its version is not %d", store.ErrConflict, src.Version-1)
}

// Source returns a source of a tenant.
func (s *sources) Source(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error) {
	return s.oneSource(ctx, `s WHERE s.tenant_id = $1 AND s.id = $2 AND s.status <> 'deleted'`, [16]byte(tenant), [16]byte(id))
}

// SourceAt finds a source by its id alone.
func (s *sources) SourceAt(ctx context.Context, id godwit.SourceID) (*godwit.Source, error) {
	return s.oneSource(ctx, `s JOIN tenants AS t ON t.id = s.tenant_id AND t.deleted_at IS NULL
		WHERE s.id = $1 AND s.status <> 'deleted'`, [16]byte(id))
}

// SourceNamed finds a source by its tenant's code and its name.
func (s *sources) SourceNamed(ctx context.Context, account, name string) (*godwit.Source, error) {
	return s.oneSource(ctx, `s JOIN tenants AS t ON t.id = s.tenant_id AND t.deleted_at IS NULL
		WHERE t.code = $1 AND t.code <> '' AND s.name = $2 AND s.status <> 'deleted'`, clean(account), clean(name))
}

func (s *sources) oneSource(ctx context.Context, from string, args ...any) (*godwit.Source, error) {
	r, err := s.pool.Query(ctx, `SELECT `+sourceFields+` FROM sources AS `+from, args...)
	if err != nil {
		return nil, failed("read source", err)
	}
	src, err := pgx.CollectExactlyOneRow(r, scanSource)
	return src, failed("read source", err)
}

// ListSources lists the sources of a tenant or environment, newest first.
func (s *sources) ListSources(ctx context.Context, f store.SourceFilter, p store.Page) ([]godwit.Source, error) {
	var w where
	w.owners(f.TenantID, f.Environment)
	w.page(p)
	r, err := s.pool.Query(ctx, `SELECT `+sourceFields+` FROM sources AS s`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list sources", err)
	}
	list, err := pgx.CollectRows(r, scanSource)
	return values(list), failed("list sources", err)
}

// CountSources counts a tenant's sources.
func (s *sources) CountSources(ctx context.Context, tenant godwit.TenantID) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM sources WHERE tenant_id = $1 AND status <> 'deleted'`, [16]byte(tenant)).Scan(&n)
	return n, failed("count sources", err)
}

// AddAcknowledgment stores that an upstream agreed to a description.
func (s *sources) AddAcknowledgment(ctx context.Context, a *godwit.Acknowledgment) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO acknowledgments (id, tenant_id, source_id, version, terms, by, actor, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, [16]byte(a.ID), [16]byte(a.TenantID), [16]byte(a.SourceID), clean(a.Version), a.Terms,
		clean(a.By), clean(a.Actor), a.At)
	return failed("add acknowledgment", err)
}

// ListAcknowledgments lists a source's acknowledgments, newest first.
func (s *sources) ListAcknowledgments(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p store.Page) ([]godwit.Acknowledgment, error) {
	var w where
	w.add("tenant_id = ? AND source_id = ?", [16]byte(tenant), [16]byte(source))
	w.page(p)
	r, err := s.pool.Query(ctx, `SELECT id, tenant_id, source_id, version, terms, by, actor, at FROM acknowledgments`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list acknowledgments", err)
	}
	list, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (a godwit.Acknowledgment, err error) {
		return a, r.Scan(scanID(&a.ID), scanID(&a.TenantID), scanID(&a.SourceID), &a.Version, &a.Terms, &a.By, &a.Actor, scanTime(&a.At))
	})
	return list, failed("list acknowledgments", err)
}

// AddRejection stores a rejected request and removes the oldest ones.
func (s *sources) AddRejection(ctx context.Context, j *godwit.Rejection, keep int) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO rejections (id, tenant_id, source_id, status, code, reason, detail, remote_addr, method, size,
				headers, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
			[16]byte(j.ID), [16]byte(j.TenantID), [16]byte(j.SourceID), j.Status, clean(j.Code), clean(j.Reason), clean(j.Detail),
			clean(j.RemoteAddr), clean(j.Method), j.Size, optionalJSON(cleanAll(j.Headers)), j.At)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM rejections WHERE id IN (
			SELECT id FROM rejections WHERE source_id = $1 ORDER BY id DESC OFFSET $2)`, [16]byte(j.SourceID), max(keep, 0))
		return err
	})
	return failed("add rejection", err)
}

// ListRejections lists a source's rejected requests, newest first.
func (s *sources) ListRejections(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p store.Page) ([]godwit.Rejection, error) {
	var w where
	w.add("tenant_id = ? AND source_id = ?", [16]byte(tenant), [16]byte(source))
	w.page(p)
	r, err := s.pool.Query(ctx, `SELECT id, tenant_id, source_id, status, code, reason, detail, remote_addr, method, size, headers, at
		FROM rejections`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list rejections", err)
	}
	list, err := pgx.CollectRows(r, func(r pgx.CollectableRow) (j godwit.Rejection, err error) {
		var headers []byte
		err = r.Scan(scanID(&j.ID), scanID(&j.TenantID), scanID(&j.SourceID), &j.Status, &j.Code, &j.Reason, &j.Detail, &j.RemoteAddr,
			&j.Method, &j.Size, &headers, scanTime(&j.At))
		return j, errors.Join(err, decodeMap(headers, &j.Headers))
	})
	return list, failed("list rejections", err)
}
