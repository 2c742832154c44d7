package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// reconciling charges at a bank that does not recognise keys, but lists its charges (S3).
type reconciling struct{ charging }

// Reconcile asks by a reference that the call carried: without one, it could not distinguish this charge from another.
func (h reconciling) Reconcile(ctx context.Context, c *command.Call) (command.Found, error) {
	charges, err := h.bank.find(ctx, c.CommandID)
	if err != nil {
		return command.Found{}, err // the executor asks again later
	}
	var found command.Found
	for _, made := range charges {
		answer, err := json.Marshal(made)
		if err != nil {
			return command.Found{}, err
		}
		found.Effects = append(found.Effects, command.ProviderEffect{ID: made.ID, Result: answer})
	}
	return found, nil
}

// S3: the ledger stores a call before it is made. The process dies after the call, before it has recorded the answer.
// Another process finds a call without an answer. It does not repeat the call: it asks the bank for the result, and
// continues with that.
func Example_s3Ledger() {
	bank := openBank()
	defer bank.Close()
	shop := newShop(command.NewMemoryStore())
	check(shop.Registry.Register(command.Declaration{
		Entity: "order", Action: "charge", Description: "Charges an order at the bank.", TargetRequired: true,
		Class: command.I3, Shielding: []command.Strategy{command.S3}, Justification: "The charge happens at the bank, which knows no keys.",
	}, reconciling{charging{bank}}))

	first, crashed, stop := shop.Start("called")
	defer stop()
	a := shop.Submit(crashed, first, "order", "charge", "O-17", `{"amount":500}`)
	fmt.Println("crash:   ", a.Status, "·", bank.books())

	shop.Pass(61 * time.Second) // the lease of the first process is over
	second, _, stop := shop.Start("")
	defer stop()
	a = shop.Ended(second, a.CommandID)
	fmt.Println("recovery:", a.Status, a.Outcome.Summary, "·", bank.books())

	a = shop.Submit(context.Background(), second, "order", "charge", "O-17", `{"amount":500}`)
	fmt.Println("repeat:  ", a.Status, a.Outcome.Summary, "·", bank.books())
	// Output:
	// crash:    in_progress · the bank was asked 1×, has 1 charge(s), took back 0
	// recovery: executed O-17 is charge ch_1 · the bank was asked 1×, has 1 charge(s), took back 0
	// repeat:   executed O-17 is charge ch_1 · the bank was asked 1×, has 1 charge(s), took back 0
}
