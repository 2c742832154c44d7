package ids

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/trace"
)

// securityRows: which caller may see and change what.
func securityRows(t *testing.T, r *rig) {
	t.Run("tenants", func(t *testing.T) {
		trace.Covers(t, "IDS-SEC-1", "IDS-SEC-5")
		one, two := r.tenant(t), r.tenant(t)
		a, b := one.must(200, "effect.count", object{"id": "a"}), two.must(200, "effect.count", object{"id": "a"})
		if a.Key == b.Key || b.Decision != "first_seen" {
			t.Errorf("keys %s and %s, decision %s", a.Key, b.Key, b.Decision)
		}
		one.once("a")
		two.once("a")
		equal(t, "another tenant's command", two.status(a.CommandID).Code, 404)
		equal(t, "another tenant's key", two.must(422, "effect.count", object{"id": "a"}, object{"idempotency_key": a.Key}).Reason, "idempotency_key_mismatch")
		two.must(403, "effect.count", object{"id": "a"}, object{"tenant_id": one.tenant})
		for _, query := range []string{"command_id=" + a.CommandID, "idempotency_key=" + a.Key} {
			equal(t, "another tenant's evidence", len(two.evidence(query)), 0)
			if len(one.evidence(query)) == 0 {
				t.Error("one's own evidence is not shown")
			}
		}
		if strings.Contains(string(two.send("GET", "/ids/v1/evidence/export", nil).Raw), a.Key) {
			t.Error("another tenant's evidence is exported")
		}
		same(t, a, one.must(200, "effect.count", object{"id": "a"}))
		// A record that was moved to another tenant is rejected there.
		alter(t, r.database(t), fmt.Sprintf("DELETE FROM command_records WHERE tenant = '%s'", two.tenant),
			fmt.Sprintf("UPDATE command_records SET tenant = '%s', idempotency_key = '%s' WHERE tenant = '%s'", two.tenant, b.Key, one.tenant))
		equal(t, "another tenant's record", two.submit("effect.count", object{"id": "a"}).Reason, "store_integrity")
		two.once("a")
	})
	t.Run("privileges", func(t *testing.T) {
		trace.Covers(t, "IDS-SEC-5")
		c := r.tenant(t)
		a := c.must(200, "effect.managed", object{"id": "a"})
		reader := c.colleague(godwit.ScopeRead, godwit.ScopeIngest)
		for _, path := range []string{"/ids/v1/evidence", "/ids/v1/evidence?command_id=" + a.CommandID, "/ids/v1/evidence/export"} {
			equal(t, path+" without the scope audit", reader.send("GET", path, nil).Code, 403)
		}
		equal(t, "status without the command's scope", reader.status(a.CommandID).Code, 403)
		auditor := c.colleague(godwit.ScopeAudit)
		if len(auditor.evidence("command_id="+a.CommandID)) == 0 {
			t.Error("an auditor sees nothing")
		}
		equal(t, "an auditor submits", auditor.submit("effect.managed", object{"id": "a"}).Code, 403)
		stranger := &caller{rig: r, t: t, key: "gdw_nobody"}
		equal(t, "nobody's status", stranger.status(a.CommandID).Code, 401)
	})
	t.Run("tampering", func(t *testing.T) {
		trace.Covers(t, "IDS-SEC-2")
		db := r.database(t)
		for column, value := range map[string]string{"status": "'failed'", "outcome_ref": "'outcome:cmd_other'", "outcome": "mac", "fingerprint": "'sha256:00'"} {
			c := r.tenant(t)
			a := c.must(200, "effect.count", object{"id": "a"})
			alter(t, db, fmt.Sprintf("UPDATE command_records SET %s = %s WHERE tenant = '%s'", column, value, c.tenant))
			for _, bad := range []*answer{c.submit("effect.count", object{"id": "a"}), c.status(a.CommandID)} {
				if bad.Code != 500 || bad.Reason != "store_integrity" {
					t.Errorf("%s changed: %d %s", column, bad.Code, bad.Raw)
				}
			}
			c.once("a")
			equal(t, "runs", c.runs("a"), 1)
			if !r.Log.Has("level=ERROR", "changed in the store", a.CommandID) {
				t.Errorf("%s changed: nobody is told", column)
			}
		}
		// A record of one command is rejected as that of another.
		c := r.tenant(t)
		a, b := c.must(200, "effect.count", object{"id": "a"}), c.must(200, "effect.count", object{"id": "b"})
		alter(t, db, fmt.Sprintf("UPDATE command_records SET idempotency_key = 'x' WHERE tenant = '%s' AND idempotency_key = '%s'", c.tenant, a.Key),
			fmt.Sprintf("UPDATE command_records SET idempotency_key = '%s' WHERE tenant = '%s' AND idempotency_key = '%s'", a.Key, c.tenant, b.Key))
		equal(t, "another's record", c.submit("effect.count", object{"id": "a"}).Reason, "store_integrity")
		if !r.Config.Postgres() {
			info, err := os.Stat(app.DatabaseFile(&r.Config.Storage))
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("the database file is open to others: %v, %v", info.Mode(), err)
			}
		}
	})
	t.Run("what a caller may see now", func(t *testing.T) {
		trace.Covers(t, "IDS-SEC-4")
		c := r.tenant(t)
		first := c.must(200, "effect.managed", object{"id": "a"})
		if first.result()["balance"] == nil {
			t.Fatalf("first %s", first.Raw)
		}
		lesser := c.replaced(godwit.ScopeManage)
		equal(t, "actor", lesser.actor, c.actor)
		masked := lesser.must(200, "effect.managed", object{"id": "a"})
		if masked.result()["balance"] != nil || masked.result()["value"] != first.result()["value"] || !strings.Contains(string(masked.Outcome), `"masked":["balance"]`) {
			t.Errorf("masked %s", masked.Raw)
		}
		if s := lesser.status(first.CommandID); s.result()["balance"] != nil || s.Code != 200 {
			t.Errorf("status %s", s.Raw)
		}
		equal(t, "summary", masked.Summary, first.Summary)
		refused := c.replaced(godwit.ScopeIngest).must(403, "effect.managed", object{"id": "a"})
		if len(refused.Outcome) > 0 || strings.Contains(string(refused.Raw), fmt.Sprint(first.result()["value"])) {
			t.Errorf("refused with %s", refused.Raw)
		}
		same(t, first, c.must(200, "effect.managed", object{"id": "a"}))
		c.once("a")
	})
}

// replaced returns a key that replaces the caller's, with these scopes and the same actor.
func (c *caller) replaced(scopes ...godwit.Scope) *caller {
	c.t.Helper()
	id, err := godwit.ParseKeyID(c.actor)
	if err != nil {
		c.t.Fatal(err)
	}
	tenant, err := godwit.ParseTenantID(c.tenant)
	if err != nil {
		c.t.Fatal(err)
	}
	_, token, err := c.App.Management().Keys.Create(context.Background(), nil, tenant, management.KeySpec{Name: "test", Scopes: scopes, Replaces: id})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.rig.caller(c.t, token)
}

// TestRepeatsAreLimited uses the server's default limits.
func TestRepeatsAreLimited(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		limits := config.Default().Commands
		o.KeepLimits = true
		o.Configure = func(c *config.Config) {
			c.Commands.RepeatsPerKey, c.Commands.RepeatsPerActor = limits.RepeatsPerKey, limits.RepeatsPerActor
		}
		r := newRig(t, o)
		count := func(series string) int { return metric(t, r, series) }
		const (
			firsts    = `ids_dedup_decisions_total{decision="first_seen"}`
			repeats   = `ids_dedup_decisions_total{decision="duplicate_replayed"}`
			conflicts = `ids_dedup_decisions_total{decision="conflict_rejected"}`
			limited   = `ids_duplicate_rate_limited_total`
		)
		t.Run("per key", func(t *testing.T) {
			trace.Covers(t, "IDS-SEC-3", "IDS-SEC-6")
			c := r.tenant(t)
			f, d, l := count(firsts), count(repeats), count(limited)
			first := c.must(200, "effect.count", object{"id": "a"})
			for range 30 {
				same(t, first, c.must(200, "effect.count", object{"id": "a"}))
			}
			too := c.must(429, "effect.count", object{"id": "a"})
			seconds, err := strconv.Atoi(too.Header.Get("Retry-After"))
			if err != nil || seconds < 1 || seconds > 60 || len(too.Outcome) > 0 {
				t.Errorf("Retry-After %q, %s", too.Header.Get("Retry-After"), too.Raw)
			}
			c.must(200, "effect.count", object{"id": "b"}) // another key is not concerned
			c.once("a")
			equal(t, "runs", c.runs("a"), 1)
			r.Advance(time.Duration(seconds) * time.Second)
			same(t, first, c.must(200, "effect.count", object{"id": "a"}))
			c.once("a")
			equal(t, "first_seen counted", count(firsts)-f, 2)
			equal(t, "duplicate_replayed counted", count(repeats)-d, 31)
			equal(t, "refusals counted", count(limited)-l, 1)
			n := count(conflicts)
			c.must(409, "effect.count", object{"id": "b"}, object{"options": object{"x": 1}})
			equal(t, "conflict_rejected counted", count(conflicts)-n, 1)
		})
		t.Run("per actor", func(t *testing.T) {
			trace.Covers(t, "IDS-SEC-3")
			c := r.tenant(t)
			colleague := c.colleague(godwit.AllScopes...)
			for k := range 11 {
				id := fmt.Sprint("k", k)
				c.must(200, "effect.count", object{"id": id}) // a first one is never limited
				for range 30 {
					if k < 10 {
						c.must(200, "effect.count", object{"id": id})
					}
				}
			}
			c.must(429, "effect.count", object{"id": "k10"})
			c.must(429, "effect.unheard_of", nil)
			c.must(200, "effect.count", object{"id": "fresh"})
			colleague.must(200, "effect.count", object{"id": "k10"})
			colleague.must(200, "effect.count", object{"id": "k10"})
			r.Advance(time.Minute)
			c.must(200, "effect.count", object{"id": "k10"})
			equal(t, "effects", c.effects("k10"), 2) // one by each actor
			equal(t, "effects of k0", c.effects("k0"), 1)
		})
	})
}

// metric reads one value of GET /metrics; 0 when it is not there yet.
func metric(t testing.TB, r *rig, series string) int {
	t.Helper()
	for line := range strings.Lines(string(r.Call(apptest.Call{Path: "/metrics"}).Body)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}
