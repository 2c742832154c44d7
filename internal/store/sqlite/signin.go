package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// sessions keeps sign-in sessions and their links.
type sessions struct{ *database }

const (
	sessionColumns = "id, kind, hash, tenant_id, key_id, link_id, created_at, last_used_at, idle_until, expires_at, detail"
	linkColumns    = "id, kind, hash, tenant_id, key_id, created_at, expires_at, used_at, session_id, detail"
)

func scanSession(r *rows) (godwit.Session, error) {
	s := godwit.Session{
		ID: r.id(0), Kind: godwit.SessionKind(r.text(1)), Hash: r.hash(2), TenantID: r.id(3), KeyID: r.id(4), LinkID: r.id(5),
		CreatedAt: r.time(6), LastUsedAt: r.time(7), IdleUntil: r.time(8), ExpiresAt: r.time(9),
	}
	var d store.SessionDetail
	err := r.parse(10, &d)
	d.Fill(&s)
	return s, err
}

func scanLink(r *rows) (godwit.SignInLink, error) {
	l := godwit.SignInLink{
		ID: r.id(0), Kind: godwit.SessionKind(r.text(1)), Hash: r.hash(2), TenantID: r.id(3), KeyID: r.id(4),
		CreatedAt: r.time(5), ExpiresAt: r.time(6), UsedAt: r.time(7), SessionID: r.id(8),
	}
	var d store.LinkDetail
	err := r.parse(9, &d)
	d.Fill(&l)
	return l, err
}

// optional returns the parameter for an id: NULL for the zero id.
func optional[I ~[16]byte](id I) driver.Value {
	if id == (I{}) {
		return nil
	}
	return id[:]
}

func insertSession(c *conn, s *godwit.Session) error {
	detail, err := json.Marshal(store.DetailOfSession(s))
	if err != nil {
		return err
	}
	_, err = c.exec("INSERT INTO sessions ("+sessionColumns+", admin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.ID[:], string(s.Kind), s.Hash[:], s.TenantID[:], optional(s.KeyID), optional(s.LinkID), micros(s.CreatedAt), micros(s.LastUsedAt),
		micros(s.IdleUntil), micros(s.ExpiresAt), string(detail), flag(slices.Contains(s.Scopes, godwit.ScopeAdmin)))
	if taken(err) {
		return store.ErrConflict
	}
	return err
}

// CreateSession stores a session.
func (s *sessions) CreateSession(ctx context.Context, n *godwit.Session) error {
	return s.write(ctx, "create session", func(c *conn) error { return insertSession(c, n) })
}

// SessionByHash returns the session with the hash of a token.
func (s *sessions) SessionByHash(ctx context.Context, hash [32]byte) (*godwit.Session, error) {
	return s.readSession(ctx, "hash = ?", ids(hash[:]))
}

// Session returns a tenant's session.
func (s *sessions) Session(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) (*godwit.Session, error) {
	return s.readSession(ctx, "id = ? AND tenant_id = ?", ids(id[:], tenant[:]))
}

func (s *sessions) readSession(ctx context.Context, where string, args []driver.Value) (*godwit.Session, error) {
	var n godwit.Session
	err := s.read(ctx, "read session", func(c *conn) error {
		return c.first(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE "+where, args,
			func(r *rows) (err error) { n, err = scanSession(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &n, nil
}

// ListSessions lists a tenant's sessions, newest first.
func (s *sessions) ListSessions(ctx context.Context, f store.SessionFilter, p store.Page) (list []godwit.Session, err error) {
	q := newest("SELECT "+sessionColumns+" FROM sessions", "id", p)
	q.where("tenant_id = ? AND idle_until > ?", f.TenantID[:], micros(f.Now))
	if f.Kind != "" {
		q.where("kind = ?", string(f.Kind))
	}
	err = s.read(ctx, "list sessions", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			n, err := scanSession(r)
			list = append(list, n)
			return err
		})
	})
	return list, err
}

// UseSession stores the time of the last use.
func (s *sessions) UseSession(ctx context.Context, id godwit.SessionID, at, idleUntil time.Time) error {
	return s.write(ctx, "use session", func(c *conn) error {
		_, err := c.exec("UPDATE sessions SET last_used_at = ?1, idle_until = min(?2, expires_at) WHERE id = ?3 AND last_used_at < ?1",
			micros(at), micros(idleUntil), id[:])
		return err
	})
}

// EndSession removes a session.
func (s *sessions) EndSession(ctx context.Context, tenant godwit.TenantID, id godwit.SessionID) error {
	return s.write(ctx, "end session", func(c *conn) error {
		n, err := c.exec("DELETE FROM sessions WHERE id = ? AND tenant_id = ?", id[:], tenant[:])
		if err == nil && n == 0 {
			return store.ErrNotFound
		}
		return err
	})
}

// EndSessions removes the sessions that the filter selects, and links that were not used.
func (s *sessions) EndSessions(ctx context.Context, f store.SessionFilter) (ended []godwit.Session, err error) {
	where, args := "tenant_id = ?", ids(f.TenantID[:])
	if f.Kind != "" {
		where, args = where+" AND kind = ?", append(args, string(f.Kind))
	}
	links, linkArgs := where, args
	if f.SpareAdmins {
		where += " AND admin = 0"
	}
	err = s.write(ctx, "end sessions", func(c *conn) error {
		ended = nil
		if f.Kind != godwit.DashboardSession {
			if _, err := c.exec("DELETE FROM sign_in_links WHERE kind = 'portal' AND used_at = 0 AND "+links, linkArgs...); err != nil {
				return err
			}
		}
		err := c.each(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE "+where, args, func(r *rows) error {
			n, err := scanSession(r)
			ended = append(ended, n)
			return err
		})
		if err != nil {
			return err
		}
		_, err = c.exec("DELETE FROM sessions WHERE "+where, args...)
		return err
	})
	return ended, err
}

// CreateLink stores a link.
func (s *sessions) CreateLink(ctx context.Context, l *godwit.SignInLink) error {
	detail, err := json.Marshal(store.DetailOfLink(l))
	if err != nil {
		return err
	}
	return s.write(ctx, "create sign-in link", func(c *conn) error {
		_, err := c.exec("INSERT INTO sign_in_links ("+linkColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			l.ID[:], string(l.Kind), l.Hash[:], l.TenantID[:], optional(l.KeyID), micros(l.CreatedAt), micros(l.ExpiresAt), micros(l.UsedAt),
			optional(l.SessionID), string(detail))
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
}

// LinkByHash returns the link with the hash of a code.
func (s *sessions) LinkByHash(ctx context.Context, hash [32]byte) (*godwit.SignInLink, error) {
	return s.readLink(ctx, "hash = ?", ids(hash[:]))
}

// Link returns a tenant's link.
func (s *sessions) Link(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (*godwit.SignInLink, error) {
	return s.readLink(ctx, "id = ? AND tenant_id = ?", ids(id[:], tenant[:]))
}

func (s *sessions) readLink(ctx context.Context, where string, args []driver.Value) (*godwit.SignInLink, error) {
	var l godwit.SignInLink
	err := s.read(ctx, "read sign-in link", func(c *conn) error {
		return c.first(ctx, "SELECT "+linkColumns+" FROM sign_in_links WHERE "+where, args,
			func(r *rows) (err error) { l, err = scanLink(r); return err })
	})
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// ListLinks lists a tenant's portal links, newest first.
func (s *sessions) ListLinks(ctx context.Context, tenant godwit.TenantID, p store.Page) (list []godwit.SignInLink, err error) {
	q := newest("SELECT "+linkColumns+" FROM sign_in_links", "id", p)
	q.where("tenant_id = ? AND kind = 'portal'", tenant[:])
	err = s.read(ctx, "list sign-in links", func(c *conn) error {
		return q.each(ctx, c, func(r *rows) error {
			l, err := scanLink(r)
			list = append(list, l)
			return err
		})
	})
	return list, err
}

// RedeemLink marks a link as used and stores its session.
func (s *sessions) RedeemLink(ctx context.Context, id godwit.LinkID, n *godwit.Session) error {
	return s.write(ctx, "redeem sign-in link", func(c *conn) error {
		at := micros(n.CreatedAt)
		used, err := c.exec("UPDATE sign_in_links SET used_at = ?1, session_id = ?2 WHERE id = ?3 AND used_at = 0 AND expires_at > ?1", at, n.ID[:], id[:])
		if err != nil {
			return err
		}
		if used == 0 {
			found, err := c.one(ctx, "SELECT 1 FROM sign_in_links WHERE id = ?", ids(id[:]), nil)
			if err == nil && !found {
				return store.ErrNotFound
			}
			if err == nil {
				return store.ErrConflict
			}
			return err
		}
		return insertSession(c, n)
	})
}

// RevokeLink removes a portal link and its session.
func (s *sessions) RevokeLink(ctx context.Context, tenant godwit.TenantID, id godwit.LinkID) (ended *godwit.Session, err error) {
	err = s.write(ctx, "revoke sign-in link", func(c *conn) error {
		ended = nil
		n, err := c.exec("DELETE FROM sign_in_links WHERE id = ? AND tenant_id = ? AND kind = 'portal'", id[:], tenant[:])
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrNotFound
		}
		err = c.each(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE link_id = ?", ids(id[:]), func(r *rows) error {
			n, err := scanSession(r)
			ended = &n
			return err
		})
		if err != nil {
			return err
		}
		_, err = c.exec("DELETE FROM sessions WHERE link_id = ?", id[:])
		return err
	})
	return ended, err
}

// endSessionsOfKey ends what a revoked key has made.
func endSessionsOfKey(c *conn, id godwit.KeyID) error {
	for _, query := range []string{
		"DELETE FROM sessions WHERE key_id = ? AND kind = 'dashboard'", "DELETE FROM sign_in_links WHERE key_id = ? AND used_at = 0",
	} {
		if _, err := c.exec(query, id[:]); err != nil {
			return err
		}
	}
	return nil
}

// endSessionsOfTenant ends the sessions of a deleted tenant.
func endSessionsOfTenant(c *conn, id godwit.TenantID) error {
	for _, query := range []string{"DELETE FROM sessions WHERE tenant_id = ?", "DELETE FROM sign_in_links WHERE tenant_id = ?"} {
		if _, err := c.exec(query, id[:]); err != nil {
			return err
		}
	}
	return nil
}

// sweepSessions removes sessions that are over and links that are long expired. The link of a session that lives stays, so that it can be revoked.
func sweepSessions(c *conn, now time.Time, limit int, out *store.Swept) (more bool, err error) {
	n, err := c.exec("DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE idle_until <= ? ORDER BY idle_until LIMIT ?)", micros(now), int64(limit))
	if err != nil {
		return false, err
	}
	links, err := c.exec("DELETE FROM sign_in_links WHERE id IN (SELECT l.id FROM sign_in_links AS l WHERE l.expires_at <= ? AND "+
		"NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.link_id = l.id) ORDER BY l.expires_at LIMIT ?)",
		micros(now.Add(-store.KeepLinks)), int64(limit))
	out.Sessions = n + links
	return n == int64(limit) || links == int64(limit), err
}
