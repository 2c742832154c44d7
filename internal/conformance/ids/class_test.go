package ids

import (
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/trace"
)

// classRows: how repeats are treated by class.
func classRows(t *testing.T, r *rig) {
	t.Run("registry", func(t *testing.T) {
		trace.Covers(t, "IDS-CLS-1", "IDS-CLS-8", "IDS-SHD-2")
		var got struct {
			Commands []struct {
				Entity, Action, Class string
				Shielding             []string
			} `json:"commands"`
		}
		r.tenant(t).get("/ids/v1/registry", &got)
		seen := map[string]string{}
		for _, d := range got.Commands {
			name := d.Entity + "." + d.Action
			seen[name] = d.Class
			if !slices.Contains([]string{"I0", "I1", "I2", "I3"}, d.Class) {
				t.Errorf("%s is of class %q", name, d.Class)
			}
			if d.Class == "I3" && len(d.Shielding) == 0 {
				t.Errorf("%s does not say how it is shielded", name)
			}
		}
		for name, class := range map[string]string{
			"effect.count": "I1", "effect.read": "I0", "effect.window": "I2", "charge.ledgered": "I3", "event.publish": "I3",
			"endpoint.delete": "I1", "endpoint.rotate_secret": "I1", "endpoint.revoke_secret": "I1", "dead_letters.replay": "I1",
			"dead_letters.purge": "I1", "tenant.delete": "I1",
		} {
			equal(t, name, seen[name], class)
		}
	})
	t.Run("I0", func(t *testing.T) {
		trace.Covers(t, "IDS-CLS-2", "IDS-CLS-3")
		c := r.tenant(t)
		first, second := c.must(200, "effect.read", object{"id": "a"}), c.must(200, "effect.read", object{"id": "a"})
		equal(t, "runs", c.runs("a"), 2)
		equal(t, "records", r.records(t, c.tenant), 0)
		if first.result()["value"] == second.result()["value"] {
			t.Error("the second call was answered with the first's outcome")
		}
		for _, a := range []*answer{first, second} {
			if !r.Log.Has("read-only command", a.CommandID, "effect.read") {
				t.Errorf("no line in the log about %s", a.CommandID)
			}
		}
	})
	t.Run("I1", func(t *testing.T) {
		trace.Covers(t, "IDS-CLS-5")
		c := r.tenant(t)
		first := c.must(200, "effect.count", object{"id": "a"})
		r.Advance(29 * 24 * time.Hour)
		repeat := c.must(200, "effect.count", object{"id": "a"})
		same(t, first, repeat)
		if v := first.result()["value"]; v == nil || v != repeat.result()["value"] {
			t.Errorf("random value %v, then %v", v, repeat.result()["value"])
		}
		c.once("a")
	})
	t.Run("I2", func(t *testing.T) {
		trace.Covers(t, "IDS-CLS-6")
		c := r.tenant(t)
		first := c.must(200, "effect.window", object{"id": "a"})
		r.Advance(10*time.Minute - time.Second)
		same(t, first, c.must(200, "effect.window", object{"id": "a"}))
		c.once("a")
		r.Advance(2 * time.Second)
		anew := c.must(200, "effect.window", object{"id": "a"})
		equal(t, "decision", anew.Decision, "first_seen")
		equal(t, "effects", c.effects("a"), 2)
	})
	t.Run("unknown", func(t *testing.T) {
		trace.Covers(t, "IDS-CLS-10")
		c := r.tenant(t)
		for _, name := range []string{"effect.unheard_of", "nothing.count"} {
			a := c.must(422, name, object{"id": "a"})
			equal(t, "reason", a.Reason, "unknown_command")
		}
		equal(t, "records", r.records(t, c.tenant), 0)
		equal(t, "runs", c.runs("a"), 0)
		items := c.evidence("")
		if len(items) != 2 || items[0].Type != "execution.rejected" || items[0].Reason != "unknown_command" || items[0].Executed {
			t.Errorf("evidence %+v", items)
		}
	})
}
