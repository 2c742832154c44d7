package storetest

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var secretCases = []testCase{
	{"keeps every member", secretMembers},
	{"rotation", secretRotation},
	{"rotation that keeps few", secretKeep},
	{"rotation at once", secretKeepAtOnce},
	{"an end before the start of the new one", secretEndBeforeStart},
	{"public keys", secretPublicKeys},
	{"belongs to its tenant", secretTenant},
}

func makeSecret(f *fixture, endpoint godwit.EndpointID) *godwit.Secret {
	return &godwit.Secret{
		ID: mint[godwit.SecretID](f.now), EndpointID: endpoint, TenantID: f.tenant, Algorithm: godwit.AlgorithmHMAC,
		Sealed: []byte("sealed \x00\xff"), CreatedAt: f.now, NotBefore: f.now,
		Hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Hint: "w7é/",
	}
}

func secretMembers(t *testing.T, f *fixture) {
	s := makeSecret(f, f.endpoint)
	s.Algorithm, s.PublicKey = godwit.AlgorithmEd25519, []byte{1, 2, 0, 255}
	s.NotBefore, s.ExpiresAt = f.now.Add(time.Minute), f.now.Add(time.Hour)
	f.must(IssueSecret(f.ctx, f.s, s, store.Expiry{}))
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{*s})
	f.is(IssueSecret(f.ctx, f.s, s, store.Expiry{}), store.ErrConflict)

	e := f.makeEndpoint()
	first := makeSecret(f, e.ID)
	f.must(f.s.CreateEndpoint(f.ctx, e, first))
	same(t, "first secret", got(f.s.Secrets(f.ctx, f.tenant, e.ID))(t), []godwit.Secret{*first})
}

func secretRotation(t *testing.T, f *fixture) {
	add := func(expires, oldExpire time.Time) godwit.Secret {
		s := makeSecret(f, f.endpoint)
		s.ID = mint[godwit.SecretID](f.tick(time.Second))
		s.ExpiresAt = expires
		f.must(IssueSecret(f.ctx, f.s, s, store.Expiry{At: oldExpire}))
		return *s
	}
	early := add(f.now.Add(time.Minute), time.Time{})
	forever := add(time.Time{}, time.Time{})
	late := add(f.now.Add(100*time.Hour), time.Time{})
	same(t, "a zero time leaves the old ones", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{late, forever, early})
	end := f.now.Add(24 * time.Hour)
	fresh := add(time.Time{}, end)
	forever.ExpiresAt, late.ExpiresAt = end, end
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{fresh, late, forever, early})
	if ss := got(f.s.LoadEndpoint(f.ctx, f.endpoint))(t).Secrets; len(ss) != 4 {
		t.Errorf("loaded %d secrets, want 4", len(ss))
	}

	other := f.newEndpoint()
	s := makeSecret(f, other)
	f.must(IssueSecret(f.ctx, f.s, s, store.Expiry{At: f.now}))
	if ss := got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t); !ss[0].ExpiresAt.IsZero() {
		t.Error("another endpoint's rotation ended this one's secret")
	}
}

// The end of older secrets when a new one is added and Keep of them stay.
func secretKeep(t *testing.T, f *fixture) {
	for name, c := range map[string]struct {
		keep int
		old  []time.Duration // oldest first: expiry relative to the start of the new one; 0: never
		want []time.Duration // the same afterwards
	}{
		"all":                     {0, []time.Duration{0, 0, 0}, []time.Duration{24, 24, 24}},
		"the newest":              {1, []time.Duration{0, 0, 0}, []time.Duration{-1, -1, 24}},
		"two":                     {2, []time.Duration{0, 100, 0}, []time.Duration{-1, 24, 24}},
		"more than there are":     {5, []time.Duration{0, 0}, []time.Duration{24, 24}},
		"none there":              {1, nil, nil},
		"an earlier end stays":    {2, []time.Duration{0, 3, 0}, []time.Duration{-1, 3, 24}},
		"what ended before":       {1, []time.Duration{0, 0, -7}, []time.Duration{-1, 24, -7}},
		"what ended is not moved": {1, []time.Duration{-7, 0}, []time.Duration{-7, 24}},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			e := f.newEndpoint()
			begin := f.now.Add(time.Hour)
			at := func(hours time.Duration) time.Time {
				switch hours {
				case 0:
					return time.Time{}
				case -1:
					return begin
				}
				return begin.Add(hours * time.Hour)
			}
			var want []godwit.Secret
			for i, expires := range c.old {
				s := makeSecret(f, e)
				s.ID = mint[godwit.SecretID](f.tick(time.Second))
				s.ExpiresAt = at(expires)
				f.must(IssueSecret(f.ctx, f.s, s, store.Expiry{}))
				s.ExpiresAt = at(c.want[i])
				want = append([]godwit.Secret{*s}, want...)
			}
			fresh := makeSecret(f, e)
			fresh.ID, fresh.NotBefore = mint[godwit.SecretID](f.tick(time.Second)), begin
			f.must(IssueSecret(f.ctx, f.s, fresh, store.Expiry{At: at(24), Keep: c.keep}))
			same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, e))(t), append([]godwit.Secret{*fresh}, want...))
		})
	}
}

// A new secret without NotBefore begins when it is created, and ends the older secrets then that are not kept.
func secretKeepAtOnce(t *testing.T, f *fixture) {
	oldest, old := addSecret(f, store.Expiry{}), addSecret(f, store.Expiry{})
	fresh := makeSecret(f, f.endpoint)
	fresh.ID = mint[godwit.SecretID](f.tick(time.Second))
	fresh.CreatedAt, fresh.NotBefore = f.now, time.Time{}
	oldest.ExpiresAt, old.ExpiresAt = f.now, f.now.Add(24*time.Hour)
	f.must(IssueSecret(f.ctx, f.s, fresh, store.Expiry{At: old.ExpiresAt, Keep: 1}))
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{*fresh, old, oldest})
}

// Older secrets end at the given time even if the new one begins later, and even those that would end in between.
func secretEndBeforeStart(t *testing.T, f *fixture) {
	for _, keep := range []int{0, 1} {
		f.endpoint = f.newEndpoint()
		oldest, old := addSecret(f, store.Expiry{}), addSecret(f, store.Expiry{})
		between := makeSecret(f, f.endpoint)
		between.ID, between.ExpiresAt = mint[godwit.SecretID](f.tick(time.Second)), f.now.Add(2*time.Hour)
		f.must(IssueSecret(f.ctx, f.s, between, store.Expiry{}))
		fresh := makeSecret(f, f.endpoint)
		fresh.ID, fresh.NotBefore = mint[godwit.SecretID](f.tick(time.Second)), f.now.Add(3*time.Hour)
		end := f.now.Add(time.Hour)
		f.must(IssueSecret(f.ctx, f.s, fresh, store.Expiry{At: end, Keep: keep}))
		oldest.ExpiresAt, old.ExpiresAt, between.ExpiresAt = end, end, end
		same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{*fresh, *between, old, oldest})
	}
}

// addSecret adds a secret without an end.
func addSecret(f *fixture, others store.Expiry) godwit.Secret {
	f.t.Helper()
	s := makeSecret(f, f.endpoint)
	s.ID = mint[godwit.SecretID](f.tick(time.Second))
	f.must(IssueSecret(f.ctx, f.s, s, others))
	return *s
}

func secretPublicKeys(t *testing.T, f *fixture) {
	var live, all []godwit.Secret
	for i := range 6 {
		f.tick(time.Second)
		s := makeSecret(f, f.endpoint)
		if i%3 != 0 {
			s.Algorithm, s.PublicKey = godwit.AlgorithmEd25519, []byte{byte(i)}
		}
		if i == 1 {
			s.ExpiresAt = f.now.Add(time.Minute)
		}
		f.must(IssueSecret(f.ctx, f.s, s, store.Expiry{}))
		shown := *s
		shown.Sealed = nil
		if s.PublicKey != nil && i != 1 {
			live = append(live, shown)
		}
		all = append(all, shown)
	}
	f.tick(time.Minute)
	var found []godwit.Secret
	var after godwit.SecretID
	for {
		page := got(f.s.PublicKeys(f.ctx, f.now, after, 2))(t)
		found = append(found, page...)
		if len(page) < 2 {
			break
		}
		after = page[1].ID
	}
	same(t, "live public keys", found, live)
	for _, s := range all {
		key, err := f.s.PublicKey(f.ctx, s.ID)
		if s.PublicKey == nil {
			f.is(err, store.ErrNotFound)
			continue
		}
		f.must(err)
		same(t, "public key, expired or not", key, &s)
	}
	_, err := f.s.PublicKey(f.ctx, mint[godwit.SecretID](f.now))
	f.is(err, store.ErrNotFound)
}

func secretTenant(t *testing.T, f *fixture) {
	f.must(IssueSecret(f.ctx, f.s, makeSecret(f, f.endpoint), store.Expiry{}))
	stranger := f.newTenant()
	_, err := f.s.Secrets(f.ctx, stranger, f.endpoint)
	f.is(err, store.ErrNotFound)
	s := makeSecret(f, f.endpoint)
	s.TenantID = stranger
	f.is(IssueSecret(f.ctx, f.s, s, store.Expiry{At: f.now}), store.ErrNotFound)
	ss := got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t)
	if len(ss) != 1 || !ss[0].ExpiresAt.IsZero() {
		t.Errorf("a stranger changed the secrets: %+v", ss)
	}
	f.is(IssueSecret(f.ctx, f.s, makeSecret(f, mint[godwit.EndpointID](f.now)), store.Expiry{At: f.now}), store.ErrNotFound)
}
