package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var sealedCases = []testCase{
	{"pages through everything", sealedPages},
	{"replace", sealedReplace},
}

var upkeepCases = []testCase{
	{"ping and describe", upkeepDescribe},
	{"a context that ended", upkeepContext},
}

func sealedRows(f *fixture) map[string]store.SealedRow {
	f.t.Helper()
	rows := map[string]store.SealedRow{}
	after := ""
	for {
		page := got(f.s.SealedRows(f.ctx, after, 2))(f.t)
		for _, r := range page {
			if r.Ref <= after {
				f.t.Fatalf("%q follows %q", r.Ref, after)
			}
			after = r.Ref
			rows[r.Bound] = r
		}
		if len(page) < 2 {
			return rows
		}
	}
}

func sealedPages(t *testing.T, f *fixture) {
	want := map[string][]byte{}
	for i := range 3 {
		e := fullEndpoint(f)
		e.Sealed = []byte{byte(i), 0}
		s := makeSecret(f, e.ID)
		s.Sealed = []byte{byte(i), 1}
		f.must(f.s.CreateEndpoint(f.ctx, e, s))
		want[e.ID.String()], want[s.ID.String()] = e.Sealed, s.Sealed
	}
	found := map[string][]byte{}
	for bound, r := range sealedRows(f) {
		found[bound] = r.Sealed
	}
	same(t, "sealed values by what they are bound to", found, want) // the fixture's endpoint has no sealed value
}

func sealedReplace(t *testing.T, f *fixture) {
	e := fullEndpoint(f)
	s := makeSecret(f, e.ID)
	f.must(f.s.CreateEndpoint(f.ctx, e, s))
	rows := sealedRows(f)
	for _, bound := range []string{e.ID.String(), s.ID.String()} {
		f.must(f.s.ReplaceSealed(f.ctx, rows[bound], []byte("new")))
		f.is(f.s.ReplaceSealed(f.ctx, rows[bound], []byte("newer")), store.ErrConflict)
	}
	e.Sealed, s.Sealed = []byte("new"), []byte("new")
	stale := *e
	stale.Version++
	f.is(f.s.UpdateEndpoint(f.ctx, &stale), store.ErrConflict)
	e.Version++
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, e.ID))(t), e)
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, e.ID))(t), []godwit.Secret{*s})
	gone := rows[s.ID.String()]
	gone.Ref = "nonsense"
	f.is(f.s.ReplaceSealed(f.ctx, gone, []byte("new")), store.ErrNotFound)
}

func upkeepDescribe(t *testing.T, f *fixture) {
	f.must(f.s.Ping(f.ctx))
	d := got(f.s.Describe(f.ctx))(t)
	if d.Backend == "" || d.Version == "" || d.SchemaVersion < 1 || d.ProgramSchema != d.SchemaVersion || d.Location == "" || d.Durability == "" {
		t.Errorf("description is incomplete: %+v", d)
	}
}

func upkeepContext(t *testing.T, f *fixture) {
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	e := f.makeEvent()
	if _, err := f.s.Commit(ended, &store.Batch{Now: f.now, Accepts: []store.Accept{{Events: []store.NewEvent{f.fanOut(e)}}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit gave %v", err)
	}
	f.stored(e.ID, false)
	if _, err := f.s.ListEvents(ended, store.EventFilter{TenantID: f.tenant}, store.Page{Limit: 5}); !errors.Is(err, context.Canceled) {
		t.Errorf("list gave %v", err)
	}
	f.tick(time.Second)
	f.acceptOne() // the store still works
	f.must(f.s.Ping(f.ctx))
}
