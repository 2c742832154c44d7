package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// carriedOf encodes an event's kept headers and origin: NULL for most events.
func carriedOf(e *godwit.Event) (driver.Value, error) {
	carried := e.Carried()
	if carried == nil {
		return nil, nil
	}
	text, err := json.Marshal(carried)
	if err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return string(text), nil
}

func parseCarried(text string, e *godwit.Event) error {
	var carried godwit.Carried
	if err := parseDocument(text, &carried); err != nil {
		return err
	}
	e.Carry(&carried)
	return nil
}

const sourceColumns = `s.id, s.tenant_id, s.name, s.description, s.scheme, s.settings, s.sealed, s.credentials, s.adopt, s.mode,
	s.event_type, s.keep, s.status, s.created_at, s.updated_at, s.version,
	(SELECT r.received_at FROM source_receipts r WHERE r.source_id = s.id)`

func scanSource(r *rows) (godwit.Source, error) {
	s := godwit.Source{
		ID: r.id(0), TenantID: r.id(1), Name: r.text(2), Description: r.text(3), Scheme: r.text(4), Sealed: r.blob(6), Adopt: r.bool(8),
		Mode: godwit.RelayMode(r.text(9)), Status: godwit.SourceStatus(r.text(12)), CreatedAt: r.time(13), UpdatedAt: r.time(14),
		Version: r.int(15), LastReceivedAt: r.time(16),
	}
	for i, doc := range map[int]any{5: &s.Settings, 7: &s.Credentials, 10: &s.EventType, 11: &s.Keep} {
		if err := r.parse(i, doc); err != nil {
			return s, err
		}
	}
	return s, nil
}

// sources keeps inbound sources, their acknowledgments and their rejected requests.
type sources struct{ *database }

// CreateSource stores a source.
func (s *sources) CreateSource(ctx context.Context, src *godwit.Source) error {
	doc, err := documents(src.Settings, src.Credentials, src.EventType, src.Keep)
	if err != nil {
		return err
	}
	return s.writeShared(ctx, "create source", func(c *conn) error {
		_, err := c.exec(`INSERT INTO sources (id, tenant_id, name, description, scheme, settings, sealed, credentials, adopt, mode,
			event_type, keep, status, created_at, updated_at, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			src.ID[:], src.TenantID[:], src.Name, src.Description, src.Scheme, doc[0], src.Sealed, doc[1], flag(src.Adopt), string(src.Mode),
			doc[2], doc[3], string(src.Status), micros(src.CreatedAt), micros(src.UpdatedAt), src.Version)
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
}

// ReceivedAt notes when a source received a request.
func (s *sources) ReceivedAt(ctx context.Context, id godwit.SourceID, at time.Time) error {
	return s.writeShared(ctx, "note receipt", func(c *conn) error {
		_, err := c.exec(`INSERT INTO source_receipts (source_id, received_at) SELECT id, ? FROM sources WHERE id = ? AND status <> 'deleted'
			ON CONFLICT (source_id) DO UPDATE SET received_at = max(received_at, excluded.received_at)`, micros(at), id[:])
		return err
	})
}

// UpdateSource stores the next version of a source.
func (s *sources) UpdateSource(ctx context.Context, src *godwit.Source) error {
	doc, err := documents(src.Settings, src.Credentials, src.EventType, src.Keep)
	if err != nil {
		return err
	}
	return s.writeShared(ctx, "update source", func(c *conn) error {
		n, err := c.exec(`UPDATE sources SET name = ?, description = ?, settings = ?, sealed = ?, credentials = ?, adopt = ?, mode = ?,
			event_type = ?, keep = ?, status = ?, updated_at = ?, version = ?
			WHERE id = ? AND tenant_id = ? AND status <> 'deleted' AND version = ?`,
			src.Name, src.Description, doc[0], src.Sealed, doc[1], flag(src.Adopt), string(src.Mode), doc[2], doc[3], string(src.Status),
			micros(src.UpdatedAt), src.Version, src.ID[:], src.TenantID[:], src.Version-1)
		if taken(err) {
			return store.ErrConflict
		}
		if err != nil || n == 1 {
			return err
		}
		err = c.first(ctx, "SELECT 1 FROM sources WHERE id = ? AND tenant_id = ? AND status <> 'deleted'", ids(src.ID[:], src.TenantID[:]),
			func(*rows) error { return nil })
		if err != nil {
			return err
		}
		return store.ErrConflict
	})
}

// Source returns a source of a tenant.
func (s *sources) Source(ctx context.Context, tenant godwit.TenantID, id godwit.SourceID) (*godwit.Source, error) {
	return s.oneSource(ctx, "s WHERE s.id = ? AND s.tenant_id = ? AND s.status <> 'deleted'", id[:], tenant[:])
}

// SourceAt finds a source by its id alone.
func (s *sources) SourceAt(ctx context.Context, id godwit.SourceID) (*godwit.Source, error) {
	return s.oneSource(ctx, "s JOIN tenants t ON t.id = s.tenant_id AND t.deleted_at = 0 WHERE s.id = ? AND s.status <> 'deleted'", id[:])
}

// SourceNamed finds a source by its tenant's code and its name.
func (s *sources) SourceNamed(ctx context.Context, account, name string) (*godwit.Source, error) {
	return s.oneSource(ctx, `s JOIN tenants t ON t.id = s.tenant_id AND t.deleted_at = 0
		WHERE t.code = ? AND t.code <> '' AND s.name = ? AND s.status <> 'deleted'`, account, name)
}

func (s *sources) oneSource(ctx context.Context, from string, args ...driver.Value) (*godwit.Source, error) {
	var src godwit.Source
	err := s.read(ctx, "read source", func(c *conn) error {
		return c.first(ctx, "SELECT "+sourceColumns+" FROM sources "+from, args, func(r *rows) (err error) { src, err = scanSource(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &src, nil
}

// ListSources lists the sources of a tenant or environment, newest first.
func (s *sources) ListSources(ctx context.Context, f store.SourceFilter, p store.Page) ([]godwit.Source, error) {
	var q *listing
	if f.Environment.IsZero() {
		q = newest("SELECT "+sourceColumns+" FROM sources s", "s.id", p)
		q.where("s.tenant_id = ? AND s.status <> 'deleted'", f.TenantID[:])
	} else {
		q = ofEnvironment("SELECT "+sourceColumns+" FROM sources s", "s", f.Environment, p)
	}
	var list []godwit.Source
	err := s.read(ctx, "list sources", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			src, err := scanSource(r)
			list = append(list, src)
			return err
		})
	})
	return list, err
}

// CountSources counts a tenant's sources.
func (s *sources) CountSources(ctx context.Context, tenant godwit.TenantID) (n int, err error) {
	err = s.read(ctx, "count sources", func(c *conn) error {
		return c.first(ctx, "SELECT count(*) FROM sources WHERE tenant_id = ? AND status <> 'deleted'", ids(tenant[:]),
			func(r *rows) error { n = int(r.int(0)); return nil })
	})
	return n, err
}

// AddAcknowledgment stores that an upstream agreed to a description.
func (s *sources) AddAcknowledgment(ctx context.Context, a *godwit.Acknowledgment) error {
	return s.write(ctx, "add acknowledgment", func(c *conn) error {
		_, err := c.exec("INSERT INTO acknowledgments (id, tenant_id, source_id, version, terms, by, actor, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			a.ID[:], a.TenantID[:], a.SourceID[:], a.Version, a.Terms, a.By, a.Actor, micros(a.At))
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
}

// ListAcknowledgments lists a source's acknowledgments, newest first.
func (s *sources) ListAcknowledgments(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p store.Page) ([]godwit.Acknowledgment, error) {
	q := newest("SELECT id, tenant_id, source_id, version, terms, by, actor, at FROM acknowledgments INDEXED BY acknowledgments_source", "id", p)
	q.where("source_id = ? AND tenant_id = ?", source[:], tenant[:])
	var list []godwit.Acknowledgment
	err := s.read(ctx, "list acknowledgments", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			list = append(list, godwit.Acknowledgment{
				ID: r.id(0), TenantID: r.id(1), SourceID: r.id(2), Version: r.text(3), Terms: r.blob(4), By: r.text(5), Actor: r.text(6), At: r.time(7),
			})
			return nil
		})
	})
	return list, err
}

// AddRejection stores a rejected request and removes the oldest ones.
func (s *sources) AddRejection(ctx context.Context, j *godwit.Rejection, keep int) error {
	headers, err := document(j.Headers)
	if err != nil {
		return err
	}
	return s.write(ctx, "add rejection", func(c *conn) error {
		_, err := c.exec(`INSERT INTO rejections (id, tenant_id, source_id, status, code, reason, detail, remote_addr, method, size, headers, at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			j.ID[:], j.TenantID[:], j.SourceID[:], int64(j.Status), j.Code, j.Reason, j.Detail, j.RemoteAddr, j.Method, j.Size, headers, micros(j.At))
		if err != nil {
			return err
		}
		_, err = c.exec(`DELETE FROM rejections WHERE id IN (SELECT id FROM rejections INDEXED BY rejections_source
			WHERE source_id = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`, j.SourceID[:], int64(max(keep, 0)))
		return err
	})
}

// ListRejections lists a source's rejected requests, newest first.
func (s *sources) ListRejections(ctx context.Context, tenant godwit.TenantID, source godwit.SourceID, p store.Page) ([]godwit.Rejection, error) {
	q := newest(`SELECT id, tenant_id, source_id, status, code, reason, detail, remote_addr, method, size, headers, at
		FROM rejections INDEXED BY rejections_source`, "id", p)
	q.where("source_id = ? AND tenant_id = ?", source[:], tenant[:])
	var list []godwit.Rejection
	err := s.read(ctx, "list rejections", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			j := godwit.Rejection{
				ID: r.id(0), TenantID: r.id(1), SourceID: r.id(2), Status: int(r.int(3)), Code: r.text(4), Reason: r.text(5), Detail: r.text(6),
				RemoteAddr: r.text(7), Method: r.text(8), Size: r.int(9), At: r.time(11),
			}
			err := r.parse(10, &j.Headers)
			list = append(list, j)
			return err
		})
	})
	return list, err
}
