package builtincommand

import (
	"github.com/godwit-hq/godwit/evidence"
)

// Observed records evidence of an operation that is no command but changes many objects. The operation has its effect already: if the evidence cannot be stored, the
// request fails, and a repeat finds nothing left to change.
func (d *Runner) Observed(r Request, operation, what string) error {
	return d.Executor.Observe(r.Caller.Tenant.ID.String(), evidence.Entry{
		Type: evidence.Observation, At: d.Now(), Actor: r.Caller.Principal(), Session: r.Caller.SessionID(), User: r.Caller.User(), Command: operation, Channel: r.Channel, Reason: what,
	})
}
