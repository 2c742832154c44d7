package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// charging charges at a bank that recognises a repeat by its key (S1).
type charging struct{ bank *bank }

func (h charging) Execute(ctx context.Context, c *command.Call) (*command.Outcome, error) {
	var made charge
	text, err := c.Do(ctx, "charge", func(ctx context.Context, key string) (any, error) {
		return h.bank.post(ctx, key, charge{Reference: c.CommandID, Amount: 500})
	})
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		return nil, err
	}
	return &command.Outcome{Summary: c.Intent.Target + " is charge " + made.ID, Result: map[string]any{"charge": made.ID}}, nil
}

// S1: the provider gets a key, which is the same on every try. The process dies after the call, before it has recorded the
// answer. Another process calls the provider again with the same key, and gets the same answer.
func Example_s1KeyForTheProvider() {
	bank := openBank()
	defer bank.Close()
	bank.honoursKeys = true
	shop := newShop(command.NewMemoryStore())
	check(shop.Registry.Register(command.Declaration{
		Entity: "order", Action: "charge", Description: "Charges an order at the bank.", TargetRequired: true,
		Class: command.I3, Shielding: []command.Strategy{command.S1}, Justification: "The charge happens at the bank.",
	}, charging{bank}))

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
	// recovery: executed O-17 is charge ch_1 · the bank was asked 2×, has 1 charge(s), took back 0
	// repeat:   executed O-17 is charge ch_1 · the bank was asked 2×, has 1 charge(s), took back 0
}
