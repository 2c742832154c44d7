package ids

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/trace"
)

// keyRows: how the key of a command is derived.
func keyRows(t *testing.T, r *rig) {
	t.Run("derived", func(t *testing.T) {
		trace.Covers(t, "IDS-KEY-1", "IDS-KEY-6")
		c := r.tenant(t)
		args := object{"id": "a", "amount": 1.50, "note": "not in the key"}
		e := c.envelope("effect.count INV-1", args)
		// Computed by the document's rule without our code: members sorted, no white space, defaults filled in.
		canonical := fmt.Sprintf(`{"actor_id":%q,"args":{"amount":1.5,"end":"execute","id":"a"},"command_kind":"I1",`+
			`"intent":{"action":"count","entity":"effect","target":"INV-1"},"tenant_id":%q}`, c.actor, c.tenant)
		sum := sha256.Sum256([]byte(canonical))
		want := hex.EncodeToString(sum[:])

		e["idempotency_key"] = strings.Repeat("0", 64)
		wrong := c.post(e)
		c.expect(wrong, 422)
		equal(t, "reason", wrong.Reason, "idempotency_key_mismatch")
		equal(t, "runs", c.runs("a"), 0)
		equal(t, "records", r.records(t, c.tenant), 0)

		e["idempotency_key"] = want
		right := c.post(e)
		c.expect(right, 200)
		equal(t, "key", right.Key, want)
		delete(e, "idempotency_key")
		same(t, right, c.post(e))
		for _, name := range []string{"effect.window", "effect.remove", "charge.keyed", "probe.touch"} {
			args := object{"id": "x"}
			if name == "probe.touch" {
				args = object{"run": "x"}
			}
			if key := c.submit(name, args).Key; !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(key) {
				t.Errorf("%s has the key %q", name, key)
			}
		}
	})
	t.Run("binding principal", func(t *testing.T) {
		trace.Covers(t, "IDS-KEY-9", "IDS-STO-15")
		user := r.tenant(t, godwit.ScopeIngest)
		system := user.colleague(godwit.ScopeIngest, godwit.ScopeAdmin, godwit.ScopeAudit)
		first := user.must(200, "effect.shared", object{"id": "a"})
		retry := system.must(200, "effect.shared", object{"id": "a"}, object{"effective_actor_id": user.actor})
		equal(t, "key", retry.Key, first.Key)
		same(t, first, retry)
		user.once("a")
		rec := r.record(t, user.tenant, first.Key)
		if rec.Fingerprint != first.Fingerprint || !strings.HasPrefix(rec.Fingerprint, "sha256:") {
			t.Errorf("fingerprint %q is kept of %q", rec.Fingerprint, first.Fingerprint)
		}
		if _, executions := decided(system.evidence("idempotency_key=" + first.Key)); executions != 1 {
			t.Errorf("%d executions", executions)
		}
	})
	t.Run("two actors", func(t *testing.T) {
		trace.Covers(t, "IDS-KEY-10")
		one := r.tenant(t)
		two := one.colleague(godwit.AllScopes...)
		a, b := one.must(200, "effect.count", object{"id": "a"}), two.must(200, "effect.count", object{"id": "a"})
		if a.Key == b.Key || b.Decision != "first_seen" {
			t.Errorf("keys %s and %s, decision %s", a.Key, b.Key, b.Decision)
		}
		equal(t, "effects", one.effects("a"), 2)
		// Nor where both act for the same one, unless declared.
		c := two.must(200, "effect.count", object{"id": "b"}, object{"effective_actor_id": one.actor})
		d := one.must(200, "effect.count", object{"id": "b"})
		if c.Key == d.Key {
			t.Error("one key")
		}
	})
	t.Run("acting for others", func(t *testing.T) {
		trace.Covers(t, "IDS-KEY-11")
		user := r.tenant(t, godwit.ScopeIngest)
		other := user.colleague(godwit.ScopeIngest, godwit.ScopeManage, godwit.ScopeRead, godwit.ScopeAudit)
		for _, name := range []string{"effect.shared", "effect.count"} {
			a := other.must(403, name, object{"id": "a"}, object{"effective_actor_id": user.actor})
			equal(t, "reason", a.Reason, "forbidden")
		}
		// Nor under another identity.
		other.must(403, "effect.count", object{"id": "a"}, object{"actor_id": user.actor})
		equal(t, "runs", user.runs("a"), 0)
		equal(t, "records", r.records(t, user.tenant), 0)
		other.must(200, "effect.count", object{"id": "b"}, object{"effective_actor_id": other.actor}) // every caller may act for itself
	})
	t.Run("missing inputs", func(t *testing.T) {
		trace.Covers(t, "IDS-KEY-12")
		c := r.tenant(t)
		for _, missing := range []object{
			{"tenant_id": nil}, {"actor_id": nil}, {"intent": nil}, {"intent": object{"action": "count"}}, {"intent": object{"entity": "effect"}},
			{"tenant_id": ""}, {"actor_id": ""}, {"intent": object{"entity": "", "action": "count"}},
		} {
			if a := c.submit("effect.count", object{"id": "a"}, missing); a.Code != 422 {
				t.Errorf("without %v: %d\n%s", missing, a.Code, a.Raw)
			}
		}
		equal(t, "records", r.records(t, c.tenant), 0)
		equal(t, "runs", c.runs("a"), 0)
		absent := c.must(202, "probe.delete", object{"run": "r"})
		equal(t, "target null", c.must(202, "probe.delete", object{"run": "r"}, object{"intent": object{"entity": "probe", "action": "delete", "target": nil}}).Key, absent.Key)
		echo := c.must(200, "probe.echo", nil)
		equal(t, "args {}", c.must(200, "probe.echo", object{}).Key, echo.Key)
		canonical := fmt.Sprintf(`{"actor_id":%q,"args":{},"command_kind":"I0","intent":{"action":"echo","entity":"probe","target":null},"tenant_id":%q}`, c.actor, c.tenant)
		sum := sha256.Sum256([]byte(canonical))
		equal(t, "key of nothing more", echo.Key, hex.EncodeToString(sum[:]))
	})
	t.Run("version", func(t *testing.T) {
		trace.Covers(t, "IDS-KEY-13")
		c := r.tenant(t)
		a := c.must(200, "effect.count", object{"id": "a"})
		equal(t, "key_version answered", a.KeyVersion, 1)
		equal(t, "key_version of the status", c.status(a.CommandID).KeyVersion, 1)
		equal(t, "key_version stored", r.record(t, c.tenant, a.Key).KeyVersion, 1)
	})
}
