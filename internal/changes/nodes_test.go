package changes_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/catalogue"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/engine"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/keyring"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/postgres"
)

// must fails the test after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// elsewhere changes the configuration as another node does: it shares nothing with the server but the database.
type elsewhere struct {
	*management.Service
	store *postgres.Store
}

func another(t testing.TB, url string, now func() time.Time) *elsewhere {
	t.Helper()
	st, err := postgres.Open(t.Context(), url, postgres.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, st.Close()) })
	ring, err := keyring.Parse(keyring.Generate("k1"))
	must(t, err)
	m, err := management.New(management.Config{
		Store: st, Engine: noEngine{}, URLs: anyURL{}, Ring: ring, Log: slog.New(slog.DiscardHandler), Now: now, Limits: management.NoLimits,
	})
	must(t, err)
	return &elsewhere{m, st}
}

// noEngine is the engine of a process that delivers nothing.
type noEngine struct{}

func (noEngine) Changed(context.Context, godwit.EndpointID) error        { return nil }
func (noEngine) KeysChanged(context.Context, godwit.EnvironmentID) error { return nil }

func (noEngine) Announce(context.Context, profile.Announcement) error { return nil }

type anyURL struct{}

func (anyURL) CheckURL(string) error { return nil }

func (e *elsewhere) endpoint(t testing.TB, tenant godwit.TenantID, pattern string) godwit.EndpointID {
	t.Helper()
	made, _, err := e.Endpoints.Create(t.Context(), &godwit.Tenant{ID: tenant}, management.NewEndpoint{EndpointSpec: management.EndpointSpec{
		URL: "http://127.0.0.1:1/", Patterns: []string{pattern},
	}})
	must(t, err)
	return made.ID
}

func (e *elsewhere) delete(t testing.TB, tenant godwit.TenantID, id godwit.EndpointID) {
	t.Helper()
	gone, err := e.Endpoints.PlanDelete(t.Context(), tenant, id, godwit.Match{})
	must(t, err)
	must(t, e.store.UpdateEndpoint(t.Context(), gone))
}

// fanout posts an event to the server and returns how many endpoints it goes to.
func fanout(t testing.TB, s *apptest.Server, eventType string) int {
	t.Helper()
	receipts, err := s.App.Engine().Submit(t.Context(), engine.Submission{
		TenantID: s.Tenant, Events: []engine.Publication{{Type: eventType, ContentType: "application/json", Body: []byte("{}")}},
	})
	must(t, err)
	return receipts[0].Fanout[0]
}

// rounds is how often the tests of this file repeat a change. GODWIT_CHANGES_ROUNDS sets another number.
func rounds(t testing.TB, usual int) int {
	t.Helper()
	text := os.Getenv("GODWIT_CHANGES_ROUNDS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// Every event that is accepted after another node answered a change is matched by the change.
func TestChangesOfAnotherNodeCountAtOnce(t *testing.T) {
	url := apptest.PostgresURL(t)
	srv := apptest.Start(t, apptest.Options{Store: url})
	other := another(t, url, time.Now)
	for n := range rounds(t, 50) {
		first, second := "first."+strconv.Itoa(n), "second."+strconv.Itoa(n)
		id := other.endpoint(t, srv.Tenant, first)
		if got := fanout(t, srv, first); got != 1 {
			t.Fatalf("round %d: after the creation an event goes to %d endpoints", n, got)
		}
		_, err := other.Endpoints.Update(t.Context(), srv.Tenant, id, godwit.Match{}, func(s *management.EndpointSpec) error {
			s.Patterns = []string{second}
			return nil
		})
		must(t, err)
		if before, after := fanout(t, srv, first), fanout(t, srv, second); before != 0 || after != 1 {
			t.Fatalf("round %d: after the change, events go to %d and %d endpoints", n, before, after)
		}
		other.delete(t, srv.Tenant, id)
		if got := fanout(t, srv, second); got != 0 {
			t.Fatalf("round %d: after the deletion an event goes to %d endpoints", n, got)
		}
	}
}

// The stored answer of a submission that was matched anew names the receivers that it really has.
func TestRepeatedAnswerNamesTheNewReceivers(t *testing.T) {
	url := apptest.PostgresURL(t)
	srv := apptest.Start(t, apptest.Options{Store: url})
	other := another(t, url, time.Now)
	other.endpoint(t, srv.Tenant, "order.*")
	var counted []int
	submit := func() []engine.Receipt {
		receipts, err := srv.App.Engine().Submit(t.Context(), engine.Submission{
			TenantID: srv.Tenant,
			Events: []engine.Publication{{Type: "order.paid", ContentType: "application/json", Body: []byte("{}")},
				{Type: "order.sent", ContentType: "application/json", Body: []byte("{}")}},
			Idempotency: &engine.Idempotency{ID: [32]byte{1}, Respond: func(_ []godwit.Event, fanout []int) *godwit.StoredResponse {
				counted = append(counted, fanout[0]+fanout[1])
				return &godwit.StoredResponse{Status: http.StatusAccepted, Body: []byte(strconv.Itoa(fanout[0] + fanout[1]))}
			}},
		})
		must(t, err)
		return receipts
	}
	if r := submit(); r[0].Fanout[0] != 1 || r[0].Fanout[1] != 1 {
		t.Errorf("receipt %v", r[0].Fanout)
	}
	if len(counted) != 2 || counted[0] != 0 || counted[1] != 2 {
		t.Errorf("answers were built for %v receivers, want first none, then two", counted)
	}
	if r := submit(); string(r[0].Replayed.Body) != "2" {
		t.Errorf("the repeat is answered %q", r[0].Replayed.Body)
	}
}

// A key that another node revokes, and the keys of a tenant that another process deletes, are refused although they are cached:
// by the server's clock, which stands still, the cache never expires.
func TestKeyRevokedElsewhereIsRefused(t *testing.T) {
	url := apptest.PostgresURL(t)
	hands := clock.NewManual(time.Now())
	srv := apptest.Start(t, apptest.Options{Store: url, Clock: hands})
	other := another(t, url, hands.Now)
	ask := func(token string) int { return srv.Call(apptest.Call{Path: "/v1/endpoints", Key: token}).Status }
	for what, end := range map[string]func(godwit.TenantID){
		"key": func(tenant godwit.TenantID) {
			list, err := other.Keys.List(t.Context(), tenant, store.Page{Limit: 10})
			must(t, err)
			must(t, other.Keys.Revoke(t.Context(), nil, tenant, list[0].ID))
		},
		"tenant": func(tenant godwit.TenantID) {
			conn, err := pgx.Connect(t.Context(), url)
			must(t, err)
			defer conn.Close(t.Context())
			_, err = conn.Exec(t.Context(), `UPDATE tenants SET deleted_at = now() WHERE id = $1`, [16]byte(tenant))
			must(t, err)
		},
	} {
		tenant, token := srv.NewTenant("doomed "+what, godwit.ScopeRead)
		if got := ask(token); got != http.StatusOK {
			t.Fatalf("%s: %d before", what, got)
		}
		end(tenant)
		for ask(token) != http.StatusUnauthorized {
		}
	}
}

// An event type that another node changes is checked by its new schema, although the old one is cached.
func TestEventTypeChangedElsewhereIsChecked(t *testing.T) {
	url := apptest.PostgresURL(t)
	hands := clock.NewManual(time.Now())
	srv := apptest.Start(t, apptest.Options{Store: url, Clock: hands})
	other := another(t, url, hands.Now)
	types, err := catalogue.New(catalogue.Config{Store: other.store, Now: hands.Now})
	must(t, err)
	_, err = srv.App.Management().Tenants.Update(t.Context(), srv.Tenant, godwit.Match{}, func(s *management.TenantSpec) error {
		s.Validation, s.Inherits = godwit.ValidateStrict, nil
		return nil
	})
	must(t, err)
	post := func() int {
		return srv.Call(apptest.Call{Path: "/v1/events", Body: `{}`, Header: map[string]string{"Godwit-Event-Type": "order.paid"}}).Status
	}
	unknown := post()
	_, _, err = types.Put(t.Context(), srv.Tenant, "order.paid", catalogue.Draft{}, godwit.Match{})
	must(t, err)
	for post() == unknown {
	}
	if got := post(); got != http.StatusAccepted {
		t.Errorf("an event of a listed type is answered %d, before it was listed %d", got, unknown)
	}
}

// Pages that another node no longer allows to frame a portal may not, although the environment is in memory.
func TestFramesForbiddenElsewhereAreForbidden(t *testing.T) {
	url := apptest.PostgresURL(t)
	hands := clock.NewManual(time.Now())
	srv := apptest.Start(t, apptest.Options{Store: url, Clock: hands})
	other := another(t, url, hands.Now)
	frames := func() int {
		list, err := srv.App.Management().Environments.FrameAncestors(t.Context(), godwit.DefaultEnvironment.String())
		must(t, err)
		return len(list)
	}
	for _, origins := range [][]string{{"https://app.example.com"}, nil} {
		if got := frames(); got == len(origins) {
			t.Fatalf("%d origins before", got)
		}
		_, err := other.Environments.Update(t.Context(), "default", godwit.Match{}, func(s *management.EnvironmentSpec) error {
			s.Portal.AllowedOrigins = origins
			return nil
		})
		must(t, err)
		for frames() != len(origins) {
		}
	}
}
