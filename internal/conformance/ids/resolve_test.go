package ids

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// TestOperatorResolves: the provider does not report the result of a call; an operator checks it and ends the command.
func TestOperatorResolves(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		r := newRig(t, o)
		c := r.tenant(t)
		r.provider.set(func(p *provider) { p.silent = true })
		id := c.dies("called", c.envelope("charge.ledgered", object{"id": "a"}))
		x := r.successor(t)
		r.takeOver(t, x)
		c.becomes(id, "in_progress", "needs_reconciliation")

		verdict := object{"verdict": "executed", "note": "on the statement of 3 March"}
		c.colleague(godwit.ScopeManage).must(403, "command.resolve "+id, verdict)
		asked := c.must(202, "command.resolve "+id, verdict)
		equal(t, "before the confirmation", c.status(id).Substatus, "needs_reconciliation")
		c.expect(c.confirm(asked.CommandID, asked.Token), 200)

		done := c.becomes(id, "executed", "")
		repeat := c.must(200, "charge.ledgered", object{"id": "a"})
		same(t, &answer{Code: 200, Outcome: done.Outcome, OutcomeRef: done.OutcomeRef}, repeat)
		if !strings.Contains(string(repeat.Raw), "on the statement of 3 March") {
			t.Errorf("the repeat's caller is not told: %s", repeat.Raw)
		}
		if calls, _ := r.provider.calls(id); calls != 1 {
			t.Errorf("%d calls", calls)
		}
		ends := 0
		for _, it := range c.evidence("command_id=" + id) {
			if it.Type == evidence.ExecutedOK {
				ends++
				equal(t, "reason", it.Reason, "resolved_by_operator")
			}
		}
		equal(t, "ends", ends, 1)
	})
}
