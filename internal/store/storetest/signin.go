package storetest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var sessionCases = []testCase{
	{"keeps every member", sessionMembers},
	{"belongs to its tenant", sessionTenant},
	{"use", sessionUse},
	{"ends with its key", sessionKeyRevoked},
	{"all of a tenant end", sessionsEnd},
	{"links", linkMembers},
	{"a link is used once", linkOnce},
	{"a revoked link", linkRevoked},
	{"sweep", sessionSweep},
}

func makeSession(f *fixture) *godwit.Session {
	return &godwit.Session{
		ID: mint[godwit.SessionID](f.now), Kind: godwit.DashboardSession, Hash: godwit.HashToken(godwit.MintSessionToken()), TenantID: f.tenant,
		KeyID: mint[godwit.KeyID](f.now), Name: "operator", Scopes: []godwit.Scope{godwit.ScopeRead},
		CreatedAt: f.now, LastUsedAt: f.now, IdleUntil: f.now.Add(time.Hour), ExpiresAt: f.now.Add(24 * time.Hour),
	}
}

func makeLink(f *fixture) *godwit.SignInLink {
	return &godwit.SignInLink{
		ID: mint[godwit.LinkID](f.now), Kind: godwit.PortalSession, Hash: godwit.HashToken(godwit.MintSignInCode()), TenantID: f.tenant,
		Capabilities: []godwit.Capability{godwit.ViewEndpoints}, SessionLife: time.Hour, CreatedAt: f.now, ExpiresAt: f.now.Add(time.Minute),
	}
}

func makePortalSession(f *fixture, l *godwit.SignInLink) *godwit.Session {
	s := makeSession(f)
	s.Kind, s.KeyID, s.Scopes, s.LinkID, s.Capabilities = godwit.PortalSession, godwit.KeyID{}, nil, l.ID, l.Capabilities
	return s
}

func sessionMembers(t *testing.T, f *fixture) {
	plain := makeSession(f)
	f.tick(time.Second)
	full := makeSession(f)
	full.LinkID, full.UserID, full.User, full.Subject, full.Address, full.UserAgent = mint[godwit.LinkID](f.now), mint[godwit.UserID](f.now), "a@example.com", "sub|1", "192.0.2.1", "Browser \"1\""
	full.Kind, full.Capabilities = godwit.PortalSession, godwit.AllCapabilities
	full.View = godwit.PortalView{Theme: "dark", ReturnURL: "https://example.com/", StartPage: "endpoints", HideNavigation: true}
	for _, s := range []*godwit.Session{plain, full} {
		f.must(f.s.CreateSession(f.ctx, s))
		same(t, "session", got(f.s.Session(f.ctx, f.tenant, s.ID))(t), s)
		same(t, "session by hash", got(f.s.SessionByHash(f.ctx, s.Hash))(t), s)
		f.is(f.s.CreateSession(f.ctx, s), store.ErrConflict)
	}
	twin := *plain
	twin.ID = mint[godwit.SessionID](f.now)
	f.is(f.s.CreateSession(f.ctx, &twin), store.ErrConflict)
	_, err := f.s.SessionByHash(f.ctx, godwit.HashToken("unknown"))
	f.is(err, store.ErrNotFound)
	list := func(filter store.SessionFilter) []godwit.Session {
		filter.TenantID, filter.Now = f.tenant, f.now
		return pages(t, func(s *godwit.Session) [16]byte { return s.ID }, func(p store.Page) ([]godwit.Session, error) { return f.s.ListSessions(f.ctx, filter, p) })
	}
	same(t, "sessions", list(store.SessionFilter{}), []godwit.Session{*full, *plain})
	same(t, "portal sessions", list(store.SessionFilter{Kind: godwit.PortalSession}), []godwit.Session{*full})
	f.tick(time.Hour - time.Second)
	same(t, "sessions that are not over", list(store.SessionFilter{}), []godwit.Session{*full})
}

func sessionTenant(t *testing.T, f *fixture) {
	s := makeSession(f)
	f.must(f.s.CreateSession(f.ctx, s))
	stranger := f.newTenant()
	_, err := f.s.Session(f.ctx, stranger, s.ID)
	f.is(err, store.ErrNotFound)
	f.is(f.s.EndSession(f.ctx, stranger, s.ID), store.ErrNotFound)
	if ended := got(f.s.EndSessions(f.ctx, store.SessionFilter{TenantID: stranger}))(t); len(ended) != 0 {
		t.Errorf("a stranger ended %v", ended)
	}
	f.must(f.s.EndSession(f.ctx, f.tenant, s.ID))
	_, err = f.s.SessionByHash(f.ctx, s.Hash)
	f.is(err, store.ErrNotFound)
	f.is(f.s.EndSession(f.ctx, f.tenant, s.ID), store.ErrNotFound)
}

func sessionUse(t *testing.T, f *fixture) {
	s := makeSession(f)
	f.must(f.s.CreateSession(f.ctx, s))
	f.tick(time.Minute)
	late := f.now
	f.must(f.s.UseSession(f.ctx, s.ID, late, late.Add(time.Hour)))
	f.must(f.s.UseSession(f.ctx, s.ID, late.Add(-time.Second), late.Add(30*time.Minute))) // another node was slower
	s.LastUsedAt, s.IdleUntil = late, late.Add(time.Hour)
	same(t, "used", got(f.s.SessionByHash(f.ctx, s.Hash))(t), s)
	f.must(f.s.UseSession(f.ctx, s.ID, late.Add(time.Hour), late.Add(100*time.Hour)))
	s.LastUsedAt, s.IdleUntil = late.Add(time.Hour), s.ExpiresAt
	same(t, "used near its end", got(f.s.SessionByHash(f.ctx, s.Hash))(t), s)
	f.must(f.s.UseSession(f.ctx, mint[godwit.SessionID](f.now), f.now, f.now))
}

func sessionKeyRevoked(t *testing.T, f *fixture) {
	k := makeKey(f)
	f.must(f.s.CreateKey(f.ctx, k))
	own, other, link, used := makeSession(f), makeSession(f), makeLink(f), makeLink(f)
	own.KeyID, link.KeyID, used.KeyID = k.ID, k.ID, k.ID
	f.must(f.s.CreateSession(f.ctx, own))
	f.must(f.s.CreateSession(f.ctx, other))
	f.must(f.s.CreateLink(f.ctx, link))
	f.must(f.s.CreateLink(f.ctx, used))
	portal := makePortalSession(f, used)
	portal.KeyID = k.ID
	f.must(f.s.RedeemLink(f.ctx, used.ID, portal))
	f.must(f.s.RevokeKey(f.ctx, f.tenant, k.ID, f.now))
	_, err := f.s.SessionByHash(f.ctx, own.Hash)
	f.is(err, store.ErrNotFound)
	_, err = f.s.LinkByHash(f.ctx, link.Hash)
	f.is(err, store.ErrNotFound)
	same(t, "session of another key", got(f.s.SessionByHash(f.ctx, other.Hash))(t), other)
	same(t, "portal session", got(f.s.SessionByHash(f.ctx, portal.Hash))(t), portal)
}

func sessionsEnd(t *testing.T, f *fixture) {
	plain, admin := makeSession(f), makeSession(f)
	admin.Scopes = []godwit.Scope{godwit.ScopeAdmin}
	link, open := makeLink(f), makeLink(f)
	f.must(f.s.CreateSession(f.ctx, plain))
	f.must(f.s.CreateSession(f.ctx, admin))
	f.must(f.s.CreateLink(f.ctx, link))
	f.must(f.s.CreateLink(f.ctx, open))
	portal := makePortalSession(f, link)
	f.must(f.s.RedeemLink(f.ctx, link.ID, portal))
	for _, step := range []struct {
		filter store.SessionFilter
		want   []godwit.Session
	}{
		{store.SessionFilter{Kind: godwit.PortalSession}, []godwit.Session{*portal}},
		{store.SessionFilter{SpareAdmins: true}, []godwit.Session{*plain}},
		{store.SessionFilter{}, []godwit.Session{*admin}},
		{store.SessionFilter{}, nil},
	} {
		step.filter.TenantID = f.tenant
		ended := got(f.s.EndSessions(f.ctx, step.filter))(t)
		if len(ended) != len(step.want) || len(ended) > 0 && ended[0].ID != step.want[0].ID {
			t.Errorf("%+v ended %v, want %v", step.filter, ended, step.want)
		}
	}
	_, err := f.s.LinkByHash(f.ctx, open.Hash)
	f.is(err, store.ErrNotFound)
}

func linkMembers(t *testing.T, f *fixture) {
	l := makeLink(f)
	l.KeyID, l.Name, l.Capabilities = mint[godwit.KeyID](f.now), "for support", godwit.AllCapabilities
	l.View = godwit.PortalView{Theme: "dark", ReturnURL: "https://example.com/", StartPage: "endpoints", HideNavigation: true}
	f.must(f.s.CreateLink(f.ctx, l))
	same(t, "link", got(f.s.LinkByHash(f.ctx, l.Hash))(t), l)
	f.is(f.s.CreateLink(f.ctx, l), store.ErrConflict)
	sign := makeLink(f)
	sign.Kind = godwit.DashboardSession
	f.must(f.s.CreateLink(f.ctx, sign))
	same(t, "portal links", got(f.s.ListLinks(f.ctx, f.tenant, store.Page{Limit: 9}))(t), []godwit.SignInLink{*l})
	s := makePortalSession(f, l)
	f.must(f.s.RedeemLink(f.ctx, l.ID, s))
	l.UsedAt, l.SessionID = f.now, s.ID
	same(t, "used link", got(f.s.Link(f.ctx, f.tenant, l.ID))(t), l)
	_, err := f.s.Link(f.ctx, f.newTenant(), l.ID)
	f.is(err, store.ErrNotFound)
}

func linkOnce(t *testing.T, f *fixture) {
	l := makeLink(f)
	f.must(f.s.CreateLink(f.ctx, l))
	var won atomic.Int32
	together(t, 8, func(int) error {
		switch err := f.s.RedeemLink(f.ctx, l.ID, makePortalSession(f, l)); {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		return nil
	})
	if n := won.Load(); n != 1 {
		t.Errorf("the link was used %d times", n)
	}
	if list := got(f.s.ListSessions(f.ctx, store.SessionFilter{TenantID: f.tenant, Now: f.now}, store.Page{Limit: 9}))(t); len(list) != 1 {
		t.Errorf("it made %d sessions", len(list))
	}
	late := makeLink(f)
	f.must(f.s.CreateLink(f.ctx, late))
	f.tick(time.Minute)
	f.is(f.s.RedeemLink(f.ctx, late.ID, makePortalSession(f, late)), store.ErrConflict)
	f.is(f.s.RedeemLink(f.ctx, mint[godwit.LinkID](f.now), makePortalSession(f, late)), store.ErrNotFound)
}

func linkRevoked(t *testing.T, f *fixture) {
	unused, used := makeLink(f), makeLink(f)
	f.must(f.s.CreateLink(f.ctx, unused))
	f.must(f.s.CreateLink(f.ctx, used))
	s := makePortalSession(f, used)
	f.must(f.s.RedeemLink(f.ctx, used.ID, s))
	_, err := f.s.RevokeLink(f.ctx, f.newTenant(), used.ID)
	f.is(err, store.ErrNotFound)
	if ended := got(f.s.RevokeLink(f.ctx, f.tenant, unused.ID))(t); ended != nil {
		t.Errorf("a link that was not used ended %v", ended)
	}
	if ended := got(f.s.RevokeLink(f.ctx, f.tenant, used.ID))(t); ended == nil || ended.ID != s.ID {
		t.Errorf("the used link ended %v", ended)
	}
	_, err = f.s.SessionByHash(f.ctx, s.Hash)
	f.is(err, store.ErrNotFound)
	_, err = f.s.RevokeLink(f.ctx, f.tenant, used.ID)
	f.is(err, store.ErrNotFound)
}

func sessionSweep(t *testing.T, f *fixture) {
	over, lives, link := makeSession(f), makeSession(f), makeLink(f)
	lives.IdleUntil = lives.ExpiresAt
	for range 3 {
		f.must(f.s.CreateSession(f.ctx, makeSession(f)))
	}
	f.must(f.s.CreateSession(f.ctx, over))
	f.must(f.s.CreateSession(f.ctx, lives))
	f.must(f.s.CreateLink(f.ctx, link))
	count := func(limit int) int64 {
		var n int64
		for {
			swept := got(f.s.Sweep(f.ctx, store.Sweep{Now: f.now, Limit: limit}))(t)
			if n += swept.Sessions; !swept.More {
				return n
			}
		}
	}
	f.tick(time.Hour)
	same(t, "sessions swept", count(2), int64(4))
	same(t, "session that lives", got(f.s.SessionByHash(f.ctx, lives.Hash))(t), lives)
	got(f.s.LinkByHash(f.ctx, link.Hash))(t)
	f.tick(store.KeepLinks)
	same(t, "sessions and links swept", count(100), int64(2))

	// A portal may be open for longer than its link is kept. The link can be revoked until then.
	long := makeLink(f)
	f.must(f.s.CreateLink(f.ctx, long))
	open := makePortalSession(f, long)
	open.ExpiresAt = f.now.Add(2 * store.KeepLinks)
	open.IdleUntil = open.ExpiresAt
	f.must(f.s.RedeemLink(f.ctx, long.ID, open))
	f.tick(store.KeepLinks + time.Hour)
	same(t, "links of open portals swept", count(100), int64(0))
	if ended := got(f.s.RevokeLink(f.ctx, f.tenant, long.ID))(t); ended == nil || ended.ID != open.ID {
		t.Errorf("the link of an open portal ended %v", ended)
	}
	again := makeLink(f)
	f.must(f.s.CreateLink(f.ctx, again))
	f.must(f.s.RedeemLink(f.ctx, again.ID, makePortalSession(f, again)))
	f.tick(store.KeepLinks + time.Hour)
	same(t, "sessions and their links swept", count(100), int64(2))
}
