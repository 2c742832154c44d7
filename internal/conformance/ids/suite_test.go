package ids

import (
	"bytes"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestSuite runs the document's minimal suite, under its names, on every store.
func TestSuite(t *testing.T) {
	stores := map[string]apptest.Options{
		"memory":   {TuneCommands: func(c *command.Config) { c.Store = command.NewMemoryStore() }},
		"sqlite":   {},
		"postgres": {Postgres: true},
	}
	passed := map[string]bool{}
	for name, o := range stores {
		passed[name] = t.Run(name, func(t *testing.T) {
			r := newRig(t, o)
			for _, test := range []struct {
				name, row string
				run       func(testing.TB, *caller)
			}{
				{"ids_duplicate_no_effect", "IDS-TST-1", duplicateNoEffect},
				{"ids_concurrent_one_execution", "IDS-TST-2", concurrentOneExecution},
				{"ids_replay_after_success", "IDS-TST-3", replayAfterSuccess},
				{"ids_in_progress", "IDS-TST-4", inProgress},
				{"ids_collision", "IDS-TST-5", collision},
				{"ids_confirmation", "IDS-TST-6", confirmation},
			} {
				t.Run(test.name, func(t *testing.T) {
					trace.Covers(t, test.row)
					test.run(t, r.tenant(t))
				})
			}
		})
	}
	t.Run("every store", func(t *testing.T) {
		trace.Covers(t, "IDS-DLV-7")
		for name := range stores {
			equal(t, name+" passes", passed[name], true)
		}
	})
}

func duplicateNoEffect(t testing.TB, c *caller) {
	for range 10 {
		c.must(200, "effect.count", object{"id": "a"})
	}
	c.once("a")
}

func concurrentOneExecution(t testing.TB, c *caller) {
	settled(t, c, c.many(200, "effect.count", object{"id": "a"}))
	c.once("a")
	equal(t, "handlers at the same time", c.probe.most, 1)
}

func replayAfterSuccess(t testing.TB, c *caller) {
	first := c.must(200, "effect.count", object{"id": "a"})
	repeat := c.must(200, "effect.count", object{"id": "a"})
	same(t, first, repeat)
	equal(t, "executed first", first.Executed, true)
	equal(t, "executed again", repeat.Executed, false)
	c.once("a")
}

func inProgress(t testing.TB, c *caller) {
	g := c.gate("a")
	e := c.envelope("effect.count", object{"id": "a"})
	answered := c.behind(g, e)
	a := c.must(202, "effect.count", object{"id": "a"})
	if a.Status != "processing" || a.CommandID != e["command_id"] || len(a.Key) != 64 || a.StatusURL == "" {
		t.Errorf("answered %s", a.Raw)
	}
	equal(t, "status", c.send("GET", a.StatusURL, nil).Status, "in_progress")
	g.release()
	first := <-answered
	c.expect(first, 200)
	if s := c.send("GET", a.StatusURL, nil); s.Status != "executed" || !bytes.Equal(s.Outcome, first.Outcome) {
		t.Errorf("status after: %s", s.Raw)
	}
	c.once("a")
}

func collision(t testing.TB, c *caller) {
	first := c.must(200, "effect.count", object{"id": "a"})
	a := c.must(409, "effect.count", object{"id": "a"}, object{"options": object{"notify": true}})
	if a.Status != "rejected" || a.Type != "execution.rejected" || a.Reason != "idempotency_conflict" {
		t.Errorf("refused as %s", a.Raw)
	}
	c.once("a")
	for _, it := range c.evidence("idempotency_key=" + first.Key) {
		if it.Decision == "conflict_rejected" && it.Stored == first.Fingerprint && it.Fingerprint != it.Stored && strings.HasPrefix(it.Fingerprint, "sha256:") {
			return
		}
	}
	t.Error("no evidence with both fingerprints")
}

func confirmation(t testing.TB, c *caller) {
	x, y := c.awaiting("effect.remove", object{"id": "x"}), c.awaiting("effect.remove", object{"id": "y"})
	for range 3 { // neither bypassed nor asked for again
		a := c.must(202, "effect.remove", object{"id": "x"})
		if a.Substatus != "awaiting_confirmation" || a.Token != "" {
			t.Errorf("repeat: %s", a.Raw)
		}
	}
	equal(t, "prompts", c.prompts.of(x.CommandID), 1)
	equal(t, "another's token", c.confirm(y.CommandID, x.Token).Code, 403)
	equal(t, "another id under the same key", c.confirm(c.envelope("effect.remove", nil)["command_id"].(string), x.Token).Code, 403)
	equal(t, "runs unconfirmed", c.runs("x")+c.runs("y"), 0)
	done := c.confirm(x.CommandID, x.Token)
	c.expect(done, 200)
	same(t, done, c.confirm(x.CommandID, x.Token))
	repeat := c.must(200, "effect.remove", object{"id": "x"})
	same(t, done, repeat)
	equal(t, "token for a repeat", repeat.Token, "")
	c.once("x")
	equal(t, "runs of the other", c.runs("y"), 0)
}
