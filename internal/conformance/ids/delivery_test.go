package ids

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// deliveryRows: what may happen to a command on its way.
func deliveryRows(t *testing.T, r *rig) {
	t.Run("more than once", func(t *testing.T) {
		trace.Covers(t, "IDS-DLV-1")
		c := r.tenant(t)
		first := c.must(200, "effect.count", object{"id": "a"})
		for range 4 {
			same(t, first, c.must(200, "effect.count", object{"id": "a"}))
		}
		c.once("a")
	})
	t.Run("late", func(t *testing.T) {
		trace.Covers(t, "IDS-DLV-2")
		c := r.tenant(t)
		e := c.envelope("effect.day", object{"id": "a"})
		first := c.post(e)
		c.expect(first, 200)
		r.Advance(23 * time.Hour)
		same(t, first, c.post(e)) // issued a day ago
		c.once("a")
	})
	t.Run("in any order", func(t *testing.T) {
		trace.Covers(t, "IDS-DLV-3")
		run := func(order ...string) string {
			c := r.tenant(t)
			outcomes := map[string]string{}
			for _, x := range order {
				// Two flows, each with its own target; the second of each comes before or after the other flow's first.
				a := c.must(200, "effect.count "+x, object{"id": x, "value": "set by " + x})
				outcomes[x] = a.Status + " " + a.Summary
			}
			return fmt.Sprint(outcomes, c.stateOf("a"), c.stateOf("b"), c.effects("a"), c.effects("b"))
		}
		equal(t, "b before a", run("b", "a", "b"), run("a", "b", "a"))
	})
	t.Run("sent again", func(t *testing.T) {
		trace.Covers(t, "IDS-DLV-4")
		c := r.tenant(t)
		first := c.must(200, "effect.count", object{"id": "a"}, object{"message_id": "m1", "nonce": "n1", "channel": "web"})
		r.Advance(time.Second)
		r.http.CloseIdleConnections()
		same(t, first, c.must(200, "effect.count", object{"id": "a"}, object{"message_id": "m2", "nonce": "n2", "channel": "retry"}))
		c.once("a")
	})
}

// TestOnceAcrossARestart sends a hundred, in a row and at once, while the server that executes the first is replaced.
func TestOnceAcrossARestart(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		trace.Covers(t, "IDS-DLV-5", "IDS-STO-16")
		r := newRig(t, o)
		c := r.tenant(t)
		before := c.must(200, "effect.count", object{"id": "before"})
		g := c.gate("during")
		first := c.behind(g, c.envelope("effect.count", object{"id": "during"}))
		for _, a := range c.many(40, "effect.count", object{"id": "during"}) {
			c.expect(a, 202)
		}
		for range 10 {
			c.must(202, "effect.count", object{"id": "during"})
		}
		key := c.must(202, "effect.count", object{"id": "during"}).Key
		original := r.record(t, c.tenant, key)

		next := r.again() // its handler was inside and has had no effect
		if a := <-first; a.Code != 503 {
			t.Errorf("who waited was told %d\n%s", a.Code, a.Raw)
		}
		c = c.on(next)
		c.becomes(original.CommandID, "executed", "")
		var answers []*answer
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 12 {
					a := c.submit("effect.count", object{"id": "during"})
					mu.Lock()
					answers = append(answers, a)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for _, a := range answers {
			same(t, answers[0], a)
			equal(t, "command", a.CommandID, original.CommandID)
		}
		c.once("during")
		equal(t, "handlers begun", c.runs("during"), 2)
		decisions, executions := decided(c.evidence("idempotency_key=" + key))
		equal(t, "executions in evidence", executions, 1)
		equal(t, "repeats in evidence", decisions["duplicate_replayed"], 51+48)

		same(t, before, c.must(200, "effect.count", object{"id": "before"}))
		c.once("before")
	})
}
