package command

import (
	"context"
	"encoding/json"
)

// A Call is one try at executing a command.
type Call struct {
	CommandID string
	Tenant    string
	Actor     string
	Principal string // the actor, or the one acted for
	Intent    Intent
	Args      json.RawMessage // normalised
	Options   json.RawMessage
	// Key is the command's. A provider gets ProviderKey.
	Key string
	Try int // from 1

	ledger ledger
}

// ledger writes calls down; the executor is one.
type ledger interface {
	begin(ctx context.Context, name string) (LedgerEntry, bool, error)
	done(ctx context.Context, name string, result []byte) error
	broken(ctx context.Context, name string, cause error) error
	open() []string
}

// Open names the calls of the command whose results are not known. A Reconciler whose handler makes several calls is asked about these,
// and not about those before them.
func (c *Call) Open() []string {
	if c.ledger == nil {
		return nil
	}
	return c.ledger.open()
}

// A Reconciler is a Handler that can ask the provider what became of a call. It is required of S3 and S4.
type Reconciler interface {
	Handler
	// Reconcile finds out what the provider has for this command, of the call that is open: see Call.Open.
	Reconcile(ctx context.Context, c *Call) (Found, error)
}

// Found is what a provider has for a command.
type Found struct {
	// Effects is one entry for each time the provider did it.
	Effects []ProviderEffect
	// Uncertain: a request may still be on its way; ask again later.
	Uncertain bool
}

// A ProviderEffect is one thing that a provider did.
type ProviderEffect struct {
	ID     string          // the provider's
	Result json.RawMessage // what its answer would have been
}

// A Compensator is a Reconciler that can take an effect back. It is required of S4.
type Compensator interface {
	Reconciler
	Compensate(ctx context.Context, c *Call, e ProviderEffect) error
}
