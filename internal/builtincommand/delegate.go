package builtincommand

import (
	"context"
	"errors"

	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
	"github.com/godwit-hq/godwit/internal/problem"
	"github.com/godwit-hq/godwit/internal/store"
)

// SourceChannel is the channel of the commands that a source submits, and of the evidence of who permitted them.
func SourceChannel(id godwit.SourceID) string { return "in:" + id.String() }

// PermitCommands decides whether the caller may let a source submit commands in the name of an API key, and records
// evidence of a permission. Before is nil when the source is created. The upstream gets all scopes of the key, so the
// caller needs every one of them. The caller also needs them to change such a source: a new credential is as powerful as
// the key's token.
func (d *Runner) PermitCommands(ctx context.Context, caller *management.Caller, before, after *godwit.Source) error {
	entry := evidence.Entry{Type: evidence.Observation, At: d.Now(), Actor: caller.Principal(), Session: caller.SessionID(), User: caller.User(), Command: "source.commands_as",
		Channel: SourceChannel(after.ID)}
	as := after.Settings.CommandsAs
	if as == "" {
		entry.Reason = "commands_as is removed" // removing takes rights away, and requires none
		return d.Executor.Observe(caller.Tenant.ID.String(), entry)
	}
	if err := d.mayLend(ctx, caller, as); err != nil {
		return err
	}
	switch {
	case before == nil || before.Settings.CommandsAs != as:
		entry.Reason = "commands_as is set to " + as
	default:
		entry.Reason = "the source is changed, commands_as stays " + as
	}
	return d.Executor.Observe(caller.Tenant.ID.String(), entry)
}

// mayLend refuses a key that is not a live key of the caller's tenant, and a key with a scope that the caller lacks.
func (d *Runner) mayLend(ctx context.Context, caller *management.Caller, as string) error {
	const field = "settings.commands_as"
	id, err := godwit.ParseKeyID(as)
	if err != nil {
		return &godwit.FieldError{Field: field, Detail: "must be the id of an API key, as in key_…"}
	}
	key, err := d.Management.Keys.Get(ctx, caller.Tenant.ID, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return &godwit.FieldError{Field: field, Detail: "names no API key of this tenant"}
	case err != nil:
		return err
	case !key.LiveAt(d.Now()):
		return &godwit.FieldError{Field: field, Detail: "names an API key that is revoked or expired"}
	}
	for _, s := range key.Scopes {
		if !caller.Key.Has(s) {
			return problem.Forbidden.In(field, "the key has the scope %q, which your API key lacks; name a key whose scopes yours has, too", s)
		}
	}
	return nil
}
