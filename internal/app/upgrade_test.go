package app_test

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
)

// The databases in testdata/schema11 were written by a server of the release before environments, and dumped. Their rings, keys and secrets are
// of no other use.
const schema11Ring = "k1:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// A formerDatabase is one of these.
type formerDatabase struct {
	open       func(t *testing.T, o *apptest.Options)
	acme, beta string // tokens of keys
	event      string // acme's event under the key first-event-of-acme
}

var formerDatabases = map[string]formerDatabase{
	"sqlite": {openFormerSQLite, "gdw_ZHaGwuD6dnFv_VxbyPe4VIQ3hFhLMkm5d7YccKz7AVA", "gdw_W4UPIPZ3R-uFuyOaFpIeH68OSSO_itnyayrANPupATI",
		"evt_01a1e339-d496-7fbf-a567-4f9ef42217b5"},
	"postgres": {openFormerPostgres, "gdw_-WtFM_f_NLXyddufLuwiussfsaMRWDggeis8N3hqqEU", "gdw_rX2e3C-USutdyXQMkt62tBBzLCn-vtqQH-y_u9Eem_8",
		"evt_01a1e339-e83e-7124-bc8a-269dd949c545"},
}

func formerFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "schema11", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func openFormerSQLite(t *testing.T, o *apptest.Options) {
	db, err := sql.Open("sqlite", filepath.Join(o.Data, "godwit.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), formerFile(t, "sqlite.sql")); err != nil {
		t.Fatal(err)
	}
}

func openFormerPostgres(t *testing.T, o *apptest.Options) {
	o.Store = postgrestest.URL(t)
	conn, err := pgx.Connect(t.Context(), o.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.PgConn().Exec(t.Context(), formerFile(t, "postgres.sql")).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeToEnvironments starts this release on databases that the release before environments has written. Everything is there, and works
// without a word about environments.
func TestUpgradeToEnvironments(t *testing.T) {
	for name, former := range formerDatabases {
		t.Run(name, func(t *testing.T) { testUpgrade(t, former) })
	}
}

func testUpgrade(t *testing.T, former formerDatabase) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "evidence.key"), []byte(formerFile(t, "evidence.key")), 0o600); err != nil {
		t.Fatal(err)
	}
	o := apptest.Options{
		Data: dir, Clock: clock.NewManual(time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)), // within the retention of what is stored
		Configure: func(c *config.Config) { c.Keyring = schema11Ring },
	}
	former.open(t, &o)
	s := apptest.Start(t, o)
	acme := func(c apptest.Call, into any) { t.Helper(); c.Key = former.acme; s.Must(c, into) }

	var environments, tenants struct {
		Items []struct {
			ID, UID, Name         string
			Live                  bool
			EnvironmentID         string `json:"environment_id"`
			Inherits              []string
			RequireIdempotencyKey bool     `json:"require_idempotency_key"`
			AlertEmails           []string `json:"alert_emails"`
			EventValidation       string   `json:"event_validation"`
		}
	}
	acme(apptest.Call{Path: "/v1/environments"}, &environments)
	if len(environments.Items) != 1 || environments.Items[0].UID != "default" || !environments.Items[0].Live {
		t.Errorf("environments are %+v", environments.Items)
	}
	acme(apptest.Call{Path: "/v1/tenants"}, &tenants)
	found := 0
	for _, n := range tenants.Items {
		if n.EnvironmentID != godwit.DefaultEnvironment.String() || n.UID != "" {
			t.Errorf("tenant is %+v", n)
		}
		switch n.Name {
		case "acme":
			found++
			if !n.RequireIdempotencyKey || !slices.Equal(n.AlertEmails, []string{"ops@example.com"}) || n.EventValidation != "strict" || len(n.Inherits) != 0 {
				t.Errorf("acme is %+v", n)
			}
		case "beta":
			found++
			if n.RequireIdempotencyKey || len(n.AlertEmails) != 0 || n.EventValidation != "" || len(n.Inherits) != 0 {
				t.Errorf("beta is %+v", n)
			}
		}
	}
	if found != 2 || len(tenants.Items) != 3 { // and the tenant of the test
		t.Errorf("tenants are %+v", tenants.Items)
	}

	// A repeat is still one, the tenant's own schema judges, and the endpoint from before signs and gets events.
	post := func(path, key, body string, header map[string]string) (int, string) {
		r := s.Call(apptest.Call{Path: path, Key: key, Body: body, Header: header})
		return r.Status, string(r.Body)
	}
	repeat := map[string]string{"Idempotency-Key": `"first-event-of-acme"`}
	if status, text := post("/v1/events?type=order.paid", former.acme, `{"total":1}`, repeat); status != 202 && status != 200 || !strings.Contains(text, former.event) {
		t.Errorf("the repeat got %d %s", status, text)
	}
	fresh := map[string]string{"Idempotency-Key": `"another-event-of-acme"`}
	if status, text := post("/v1/events?type=order.paid", former.acme, `{}`, fresh); status != 422 {
		t.Errorf("an event that does not fit got %d %s", status, text)
	}
	if status, text := post("/v1/events?type=order.lost", former.acme, `{}`, fresh); status != 422 {
		t.Errorf("an event of an unknown type got %d %s", status, text)
	}
	sink := apptest.NewSink(t)
	var endpoints struct {
		Items []struct{ ID, Profile string }
	}
	acme(apptest.Call{Path: "/v1/endpoints"}, &endpoints)
	if len(endpoints.Items) != 2 {
		t.Fatalf("endpoints are %+v", endpoints.Items)
	}
	for _, e := range endpoints.Items {
		acme(apptest.Call{Method: http.MethodPatch, Path: "/v1/endpoints/" + e.ID, Body: apptest.Fields{"url": sink.URL("/" + e.Profile)}}, nil)
	}
	if status, text := post("/v1/events?type=order.paid", former.acme, `{"total":2}`, fresh); status != 202 {
		t.Fatalf("a new event got %d %s", status, text)
	}
	got := sink.WaitFor("/eds", "the new event", func(seen []apptest.Request) bool {
		return slices.ContainsFunc(seen, func(r apptest.Request) bool { return r.Key() == `"another-event-of-acme"` })
	})
	if got[0].Header.Get("Signature") == "" {
		t.Errorf("the request is not signed: %v", got[0].Header)
	}
	if status, text := post("/v1/events?type=anything", former.beta, `{}`, nil); status != 202 {
		t.Errorf("beta's event got %d %s", status, text)
	}
}
