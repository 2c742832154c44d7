package command

import (
	"context"
	"encoding/json"
)

// A Call is one attempt to execute a command.
type Call struct {
	CommandID string
	Tenant    string
	Actor     string
	Principal string // the actor, or the principal that the actor acts for
	Intent    Intent
	Args      json.RawMessage // normalised
	Options   json.RawMessage
	// Key is the command's own key. Send ProviderKey to a provider.
	Key string
	Try int // from 1

	ledger ledger
}

// ledger records calls to external systems. The execution implements it.
type ledger interface {
	begin(ctx context.Context, name string) (LedgerEntry, bool, error)
	done(ctx context.Context, name string, result []byte) error
	broken(ctx context.Context, name string, cause error) error
	open() []string
}

// Open names the calls of the command whose results are not known. In Reconcile it is the one call to ask the provider
// about.
func (c *Call) Open() []string {
	if c.ledger == nil {
		return nil
	}
	return c.ledger.open()
}

// A Reconciler is a Handler that can ask the provider for the result of a call. S3 and S4 require it.
type Reconciler interface {
	Handler
	// Reconcile asks the provider for its effects of one open call, which Call.Open names. If several calls of a command
	// are open, the executor calls Reconcile for each.
	Reconcile(ctx context.Context, c *Call) (Found, error)
}

// Found lists the effects that a provider reports for a command.
type Found struct {
	// Effects has one entry for each time the provider performed the call.
	Effects []ProviderEffect
	// Uncertain says that a request may still be in flight; the executor asks again later.
	Uncertain bool
}

// A ProviderEffect is one effect of a call at a provider.
type ProviderEffect struct {
	ID     string          // the provider's id of the effect
	Result json.RawMessage // the provider's answer to the call
}

// A Compensator is a Reconciler that can undo an effect. S4 requires it.
type Compensator interface {
	Reconciler
	Compensate(ctx context.Context, c *Call, e ProviderEffect) error
}
