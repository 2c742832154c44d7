package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// sessions keeps sign-in sessions and their links.
type sessions struct{ *database }

const (
	sessionFields = `id, kind, hash, tenant_id, key_id, link_id, created_at, last_used_at, idle_until, expires_at, detail`
	linkFields    = `id, kind, hash, tenant_id, key_id, created_at, expires_at, used_at, session_id, detail`
)

func scanSession(r pgx.CollectableRow) (*godwit.Session, error) {
	s := &godwit.Session{}
	var hash, detail []byte
	err := r.Scan(scanID(&s.ID), &s.Kind, &hash, scanID(&s.TenantID), scanID(&s.KeyID), scanID(&s.LinkID), scanTime(&s.CreatedAt),
		scanTime(&s.LastUsedAt), scanTime(&s.IdleUntil), scanTime(&s.ExpiresAt), &detail)
	if err != nil {
		return nil, err
	}
	copy(s.Hash[:], hash)
	var d store.SessionDetail
	err = json.Unmarshal(detail, &d)
	d.Fill(s)
	return s, err
}

func scanLink(r pgx.CollectableRow) (*godwit.SignInLink, error) {
	l := &godwit.SignInLink{}
	var hash, detail []byte
	err := r.Scan(scanID(&l.ID), &l.Kind, &hash, scanID(&l.TenantID), scanID(&l.KeyID), scanTime(&l.CreatedAt), scanTime(&l.ExpiresAt),
		scanTime(&l.UsedAt), scanID(&l.SessionID), &detail)
	if err != nil {
		return nil, err
	}
	copy(l.Hash[:], hash)
	var d store.LinkDetail
	err = json.Unmarshal(detail, &d)
	d.Fill(l)
	return l, err
}

func insertSession(ctx context.Context, q session, s *godwit.Session) error {
	d := store.DetailOfSession(s)
	d.Name, d.User, d.UserAgent = clean(d.Name), clean(d.User), clean(d.UserAgent)
	detail, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `INSERT INTO sessions (`+sessionFields+`, admin) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		[16]byte(s.ID), string(s.Kind), s.Hash[:], [16]byte(s.TenantID), optionalID(s.KeyID), optionalID(s.LinkID), s.CreatedAt, s.LastUsedAt,
		s.IdleUntil, s.ExpiresAt, detail, slices.Contains(s.Scopes, godwit.ScopeAdmin))
	return err
}

// CreateSession stores a session.
func (s *sessions) CreateSession(ctx context.Context, n *godwit.Session) error {
	return failed("create session", insertSession(ctx, s.pool, n))
}

// SessionByHash returns the session, live or not.
func (s *sessions) SessionByHash(ctx context.Context, hash [32]byte) (*godwit.Session, error) {
	return s.readSession(ctx, ` WHERE hash = $1`, hash[:])
}

// Session returns a tenant's session.
func (s *sessions) Session(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) (*godwit.Session, error) {
	return s.readSession(ctx, ` WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
}

func (s *sessions) readSession(ctx context.Context, where string, args ...any) (*godwit.Session, error) {
	r, err := s.pool.Query(ctx, `SELECT `+sessionFields+` FROM sessions`+where, args...)
	if err != nil {
		return nil, failed("read session", err)
	}
	n, err := pgx.CollectExactlyOneRow(r, scanSession)
	return n, failed("read session", err)
}

// ListSessions lists a tenant's sessions, newest first.
func (s *sessions) ListSessions(ctx context.Context, f store.SessionFilter, p store.Page) ([]godwit.Session, error) {
	var w where
	w.add("tenant_id = ?", [16]byte(f.TenantID))
	w.add("idle_until > ?", f.Now)
	if f.Kind != "" {
		w.add("kind = ?", string(f.Kind))
	}
	w.page(p)
	r, err := s.pool.Query(ctx, `SELECT `+sessionFields+` FROM sessions`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list sessions", err)
	}
	list, err := pgx.CollectRows(r, scanSession)
	return values(list), failed("list sessions", err)
}

// UseSession stores the time of the last use.
func (s *sessions) UseSession(ctx context.Context, id godwit.SessionID, at, idleUntil time.Time) error {
	_, err := s.pool.Exec(ctx, `UPDATE sessions SET last_used_at = $2, idle_until = least($3::timestamptz, expires_at) WHERE id = $1 AND last_used_at < $2`,
		[16]byte(id), at, idleUntil)
	return failed("use session", err)
}

// EndSession removes a session.
func (s *sessions) EndSession(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) error {
	tag, err := s.pool.Exec(ctx, `DELETE FROM sessions WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
	return changed("end session", tag, err)
}

// EndSessions removes the sessions that the filter selects, and links that were not used.
func (s *sessions) EndSessions(ctx context.Context, f store.SessionFilter) (ended []godwit.Session, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if f.Kind != godwit.DashboardSession {
			if _, err := tx.Exec(ctx, `DELETE FROM sign_in_links WHERE tenant_id = $1 AND kind = 'portal' AND used_at IS NULL`, [16]byte(f.TenantID)); err != nil {
				return err
			}
		}
		r, err := tx.Query(ctx, `DELETE FROM sessions WHERE tenant_id = $1 AND ($2 = '' OR kind = $2) AND NOT (admin AND $3) RETURNING `+sessionFields,
			[16]byte(f.TenantID), string(f.Kind), f.SpareAdmins)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(r, scanSession)
		ended = values(list)
		return err
	})
	return ended, failed("end sessions", err)
}

// CreateLink stores a link.
func (s *sessions) CreateLink(ctx context.Context, l *godwit.SignInLink) error {
	d := store.DetailOfLink(l)
	d.Name = clean(d.Name)
	detail, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `INSERT INTO sign_in_links (`+linkFields+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		[16]byte(l.ID), string(l.Kind), l.Hash[:], [16]byte(l.TenantID), optionalID(l.KeyID), l.CreatedAt, l.ExpiresAt, optionalTime(l.UsedAt),
		optionalID(l.SessionID), detail)
	return failed("create sign-in link", err)
}

// LinkByHash returns the link, usable or not.
func (s *sessions) LinkByHash(ctx context.Context, hash [32]byte) (*godwit.SignInLink, error) {
	return s.readLink(ctx, ` WHERE hash = $1`, hash[:])
}

// Link returns a tenant's link.
func (s *sessions) Link(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (*godwit.SignInLink, error) {
	return s.readLink(ctx, ` WHERE tenant_id = $1 AND id = $2`, [16]byte(tenant), [16]byte(id))
}

func (s *sessions) readLink(ctx context.Context, where string, args ...any) (*godwit.SignInLink, error) {
	r, err := s.pool.Query(ctx, `SELECT `+linkFields+` FROM sign_in_links`+where, args...)
	if err != nil {
		return nil, failed("read sign-in link", err)
	}
	l, err := pgx.CollectExactlyOneRow(r, scanLink)
	return l, failed("read sign-in link", err)
}

// ListLinks lists a tenant's portal links, newest first.
func (s *sessions) ListLinks(ctx context.Context, tenant godwit.TenantID, p store.Page) ([]godwit.SignInLink, error) {
	var w where
	w.add("tenant_id = ? AND kind = 'portal'", [16]byte(tenant))
	w.page(p)
	r, err := s.pool.Query(ctx, `SELECT `+linkFields+` FROM sign_in_links`+w.sql()+w.newestFirst(p.Limit), w.args...)
	if err != nil {
		return nil, failed("list sign-in links", err)
	}
	list, err := pgx.CollectRows(r, scanLink)
	return values(list), failed("list sign-in links", err)
}

// RedeemLink marks a link as used and stores its session.
func (s *sessions) RedeemLink(ctx context.Context, id godwit.LinkID, n *godwit.Session) error {
	return failed("redeem sign-in link", pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE sign_in_links SET used_at = $2, session_id = $3 WHERE id = $1 AND used_at IS NULL AND expires_at > $2`,
			[16]byte(id), n.CreatedAt, [16]byte(n.ID))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			var there bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM sign_in_links WHERE id = $1)`, [16]byte(id)).Scan(&there); err != nil {
				return err
			}
			if !there {
				return store.ErrNotFound
			}
			return store.ErrConflict
		}
		return insertSession(ctx, tx, n)
	}))
}

// RevokeLink removes a portal link and its session.
func (s *sessions) RevokeLink(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (ended *godwit.Session, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM sign_in_links WHERE id = $1 AND tenant_id = $2 AND kind = 'portal'`, [16]byte(id), [16]byte(tenant))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return store.ErrNotFound
		}
		r, err := tx.Query(ctx, `DELETE FROM sessions WHERE link_id = $1 RETURNING `+sessionFields, [16]byte(id))
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(r, scanSession)
		if len(list) > 0 {
			ended = list[0]
		}
		return err
	})
	if err != nil {
		return nil, failed("revoke sign-in link", err)
	}
	return ended, nil
}

// endSessionsOfTenant ends the sessions of a deleted tenant.
func endSessionsOfTenant(ctx context.Context, q session, id godwit.TenantID) error {
	for _, query := range []string{`DELETE FROM sessions WHERE tenant_id = $1`, `DELETE FROM sign_in_links WHERE tenant_id = $1`} {
		if _, err := q.Exec(ctx, query, [16]byte(id)); err != nil {
			return err
		}
	}
	return nil
}

// sessions removes sessions that are over and links that are long expired. The link of a session that lives stays, so that it can be revoked.
func (w *sweep) sessions(ctx context.Context) error {
	err := w.remove(ctx, &w.swept.Sessions, `DELETE FROM sessions WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM sessions WHERE idle_until <= $1 ORDER BY idle_until LIMIT $2 FOR UPDATE SKIP LOCKED))`, w.Now, w.limit)
	if err != nil {
		return err
	}
	return w.remove(ctx, &w.swept.Sessions, `DELETE FROM sign_in_links WHERE ctid = ANY (ARRAY(
		SELECT l.ctid FROM sign_in_links AS l WHERE l.expires_at <= $1 AND NOT EXISTS (SELECT FROM sessions AS s WHERE s.link_id = l.id)
		ORDER BY l.expires_at LIMIT $2 FOR UPDATE OF l SKIP LOCKED))`, w.Now.Add(-store.KeepLinks), w.limit)
}
