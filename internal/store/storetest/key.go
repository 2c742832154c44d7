package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var keyCases = []testCase{
	{"keeps every member", keyMembers},
	{"revoke", keyRevoke},
	{"belongs to its tenant", keyTenant},
}

func makeKey(f *fixture) *godwit.APIKey {
	token := godwit.MintToken()
	id := mint[godwit.KeyID](f.now)
	return &godwit.APIKey{
		ID: id, TenantID: f.tenant, Principal: id, Name: "producer", Hint: godwit.TokenHint(token),
		Hash: godwit.HashToken(token), Scopes: []godwit.Scope{godwit.ScopeIngest, godwit.ScopeRead}, CreatedAt: f.now,
	}
}

func keyMembers(t *testing.T, f *fixture) {
	var want []godwit.APIKey
	for i := range 5 {
		f.tick(time.Second)
		k := makeKey(f)
		k.Principal = mint[godwit.KeyID](f.now)
		if i%2 == 0 {
			k.ExpiresAt = f.now.Add(time.Hour)
		}
		for range i {
			k.Makers = append(k.Makers, mint[godwit.KeyID](f.now))
		}
		f.must(f.s.CreateKey(f.ctx, k))
		same(t, "key", got(f.s.Key(f.ctx, f.tenant, k.ID))(t), k)
		same(t, "key by hash", got(f.s.KeyByHash(f.ctx, k.Hash))(t), k)
		want = append([]godwit.APIKey{*k}, want...)
	}
	same(t, "keys", pages(t, func(k *godwit.APIKey) [16]byte { return k.ID }, func(p store.Page) ([]godwit.APIKey, error) {
		return f.s.ListKeys(f.ctx, f.tenant, p)
	}), want)
	f.is(f.s.CreateKey(f.ctx, &want[0]), store.ErrConflict)
	twin := want[0]
	twin.ID = mint[godwit.KeyID](f.now)
	f.is(f.s.CreateKey(f.ctx, &twin), store.ErrConflict)
	_, err := f.s.KeyByHash(f.ctx, godwit.HashToken("unknown"))
	f.is(err, store.ErrNotFound)

	none := makeKey(f)
	none.Scopes = []godwit.Scope{}
	f.must(f.s.CreateKey(f.ctx, none))
	if k := got(f.s.Key(f.ctx, f.tenant, none.ID))(t); len(k.Scopes) != 0 {
		t.Errorf("scopes are %v", k.Scopes)
	}
}

func keyRevoke(t *testing.T, f *fixture) {
	k := makeKey(f)
	f.must(f.s.CreateKey(f.ctx, k))
	revoked := f.tick(time.Minute)
	f.must(f.s.RevokeKey(f.ctx, f.tenant, k.ID, revoked))
	f.must(f.s.RevokeKey(f.ctx, f.tenant, k.ID, f.tick(time.Minute)))
	if k := got(f.s.KeyByHash(f.ctx, k.Hash))(t); !k.RevokedAt.Equal(revoked) || k.LiveAt(f.now) {
		t.Errorf("key is %+v", k)
	}
	f.is(f.s.RevokeKey(f.ctx, f.tenant, mint[godwit.KeyID](f.now), f.now), store.ErrNotFound)
}

func keyTenant(t *testing.T, f *fixture) {
	k := makeKey(f)
	f.must(f.s.CreateKey(f.ctx, k))
	stranger := f.newTenant()
	_, err := f.s.Key(f.ctx, stranger, k.ID)
	f.is(err, store.ErrNotFound)
	f.is(f.s.RevokeKey(f.ctx, stranger, k.ID, f.now), store.ErrNotFound)
	if ks := got(f.s.ListKeys(f.ctx, stranger, store.Page{Limit: 5}))(t); len(ks) != 0 {
		t.Errorf("a stranger lists %v", ks)
	}
	if k := got(f.s.Key(f.ctx, f.tenant, k.ID))(t); !k.RevokedAt.IsZero() {
		t.Error("a stranger revoked the key")
	}
}
