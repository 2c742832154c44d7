package app_test

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
)

// refuses starts a server that must not start, and returns its error.
func refuses(t *testing.T, cfg config.Config) string {
	t.Helper()
	_, err := app.New(t.Context(), cfg, app.Dependencies{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal("the server starts")
	}
	return err.Error()
}

// A server does not start with a valid key ring or evidence key that is not the store's own.
func TestOtherKeysAreRefused(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		srv := apptest.Start(t, o)
		if err := srv.Stop(); err != nil {
			t.Fatal(err)
		}
		cfg := srv.Config
		cfg.Keyring = app.GenerateRing()
		if text := refuses(t, cfg); !strings.Contains(text, "not this store's own") || !strings.Contains(text, "start with the key ring") {
			t.Errorf("another ring: %s", text)
		}
		cfg.Keyring = srv.Config.Keyring
		other := t.TempDir()
		if err := app.EnsureEvidenceKey(other, ""); err != nil {
			t.Fatal(err)
		}
		cfg.Commands.EvidenceKey = other + "/evidence.key"
		if text := refuses(t, cfg); !strings.Contains(text, "evidence is signed with") || !strings.Contains(text, "adopt-evidence") {
			t.Errorf("another evidence key: %s", text)
		}

		// A new key in front of the ring is accepted, and so is an adopted evidence key.
		st, err := app.OpenStore(t.Context(), &cfg.Storage, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		key, err := app.EvidenceKey(&cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := app.AdoptEvidenceKey(t.Context(), st, key); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		rotated := cfg.Keyring
		o.Data, o.Store, o.Postgres = cfg.Data, cfg.Store, false
		o.Configure = func(c *config.Config) {
			c.Keyring, c.Commands.EvidenceKey = app.GenerateRing()+"\n"+rotated, cfg.Commands.EvidenceKey
		}
		apptest.Start(t, o)
	})
}

// A store of an earlier release has no check value. It accepts a ring that opens its sealed values, or any ring if it has
// none.
func TestStoreWithoutACheckValue(t *testing.T) {
	for _, backend := range []string{config.SQLite, "postgres"} {
		t.Run(backend, func(t *testing.T) {
			storage := &config.Storage{Data: t.TempDir(), Store: config.SQLite}
			if backend != config.SQLite {
				storage.Store = postgrestest.URL(t)
			}
			own, other := ringOf(t), ringOf(t)
			st, err := app.OpenStore(t.Context(), storage, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			m, err := management.New(management.Config{Store: st, Engine: nowhere{}, URLs: nowhere{}, Ring: own, Log: slog.New(slog.DiscardHandler), Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			tenant, err := m.Tenants.Create(t.Context(), godwit.DefaultEnvironment, management.TenantSpec{Name: "acme"})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = m.Endpoints.Create(t.Context(), tenant, management.NewEndpoint{EndpointSpec: management.EndpointSpec{URL: "https://example.com/"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := app.CheckRing(t.Context(), st, other); err == nil {
				t.Error("a ring that opens nothing was taken")
			}
			for range 2 {
				if err := app.CheckRing(t.Context(), st, own); err != nil {
					t.Errorf("the store's own ring: %v", err)
				}
			}
			if err := app.CheckRing(t.Context(), st, other); err == nil {
				t.Error("another ring was taken")
			}
		})
	}
}

// older is a store of an earlier release, which has no check values.
type older struct {
	store.Store
	value []byte
}

func (o *older) KeyCheck(context.Context, string) ([]byte, error) {
	if o.value == nil {
		return nil, store.ErrNotFound
	}
	return o.value, nil
}

func (o *older) SetKeyCheck(_ context.Context, _ string, _, value []byte) error {
	o.value = value
	return nil
}

// A store of an earlier release accepts only the key that signed its evidence. Without signed evidence it accepts any.
func TestEvidenceOfAnEarlierReleaseNamesItsKey(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	own, err := app.EvidenceKey(&srv.Config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := app.CheckEvidenceKey(t.Context(), &older{Store: srv.App.Store()}, other); err != nil {
		t.Errorf("without evidence: %v", err)
	}
	srv.Must(apptest.Call{Path: "/v1/endpoints", Body: `{"url":"http://127.0.0.1:1/"}`, Header: map[string]string{"Idempotency-Key": `"one endpoint 0001"`}}, nil)
	if n, err := srv.App.Executor().Checkpoint(t.Context(), own); err != nil || n == 0 {
		t.Fatalf("%d chains signed, %v", n, err)
	}
	err = app.CheckEvidenceKey(t.Context(), &older{Store: srv.App.Store()}, other)
	if err == nil || !strings.Contains(err.Error(), "adopt-evidence") || !strings.Contains(err.Error(), evidence.KeyID(own.Public().(ed25519.PublicKey))) {
		t.Errorf("another key: %v", err)
	}
	if err := app.CheckEvidenceKey(t.Context(), &older{Store: srv.App.Store()}, own); err != nil {
		t.Errorf("its own key: %v", err)
	}
}

// chains is a store of an earlier release with made-up chains of evidence: the keys of their checkpoints, by place.
type chains struct {
	older
	lengths map[string]int64
	signers map[string]map[int64]evidence.Item
}

func (c *chains) EvidenceHeads(_ context.Context, after string, _ int) (heads []evidence.Head, _ error) {
	for _, tenant := range slices.Sorted(maps.Keys(c.lengths)) {
		if tenant > after {
			heads = append(heads, evidence.Head{Tenant: tenant, Seq: c.lengths[tenant]})
		}
	}
	return heads, nil
}

func (c *chains) Evidence(_ context.Context, q command.EvidenceQuery) (items []evidence.Item, _ error) {
	for seq := q.After + 1; seq <= c.lengths[q.Tenant] && len(items) < q.Limit; seq++ {
		items = append(items, c.signers[q.Tenant][seq])
	}
	return items, nil
}

// The last checkpoint counts, however far it is from the end of its chain, and whichever chain it is in.
func TestLastCheckpointNamesTheKey(t *testing.T) {
	_, own, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(key string, at time.Time) evidence.Item {
		return evidence.Item{Entry: evidence.Entry{At: at, Checkpoint: &evidence.Checkpoint{KeyID: key}}}
	}
	id, early := evidence.KeyID(own.Public().(ed25519.PublicKey)), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &chains{
		lengths: map[string]int64{"a": 10, "b": 3500, "c": 1},
		signers: map[string]map[int64]evidence.Item{
			"a": {10: signed("ed25519:formerly", early)},
			"b": {3: signed("ed25519:formerly", early.Add(time.Hour)), 400: signed(id, early.Add(2*time.Hour))},
		},
	}
	if err := app.CheckEvidenceKey(t.Context(), s, own); err != nil {
		t.Errorf("the key of the last checkpoint: %v", err)
	}
	s.value, s.signers["c"] = nil, map[int64]evidence.Item{1: signed("ed25519:other", early.Add(3*time.Hour))}
	if err := app.CheckEvidenceKey(t.Context(), s, own); err == nil {
		t.Error("a key that did not sign the last checkpoint was taken")
	}
}

func ringOf(t *testing.T) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Parse(app.GenerateRing())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// nowhere stands in for an engine that does not exist.
type nowhere struct{}

func (nowhere) Changed(context.Context, godwit.EndpointID) error        { return nil }
func (nowhere) KeysChanged(context.Context, godwit.EnvironmentID) error { return nil }

func (nowhere) Announce(context.Context, profile.Announcement) error { return nil }
func (nowhere) CheckURL(string) error                                { return nil }
