package command_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/godwit-hq/godwit/command"
)

// compensating charges at a bank that may charge more than once, and undoes the extra charges (S4).
type compensating struct{ reconciling }

func (h compensating) Compensate(ctx context.Context, _ *command.Call, e command.ProviderEffect) error {
	return h.bank.request(ctx, http.MethodDelete, "/charges/"+e.ID, "", nil, new(charge))
}

// S4: a proxy between the shop and the bank sends every request two times, and the process dies after its call. Another
// process asks the bank, finds two charges, and undoes all but the first. The command ends as compensated, also for its
// repeats.
func Example_s4Compensation() {
	bank := openBank()
	defer bank.Close()
	bank.twice = true
	shop := newShop(command.NewMemoryStore())
	check(shop.Registry.Register(command.Declaration{
		Entity: "order", Action: "charge", Description: "Charges an order at the bank.", TargetRequired: true,
		Class: command.I3, Shielding: []command.Strategy{command.S4}, Justification: "The charge happens at the bank, perhaps more than once.",
	}, compensating{reconciling{charging{bank}}}))

	first, crashed, stop := shop.Start("called")
	defer stop()
	a := shop.Submit(crashed, first, "order", "charge", "O-17", `{"amount":500}`)
	fmt.Println("crash:   ", a.Status, "·", bank.books())

	shop.Pass(61 * time.Second) // the lease of the first process is over
	second, _, stop := shop.Start("")
	defer stop()
	a = shop.Ended(second, a.CommandID)
	fmt.Println("recovery:", a.Status, "·", bank.books())

	a = shop.Submit(context.Background(), second, "order", "charge", "O-17", `{"amount":500}`)
	fmt.Println("repeat:  ", a.Status, "·", bank.books())
	// Output:
	// crash:    in_progress · the bank was asked 1×, has 2 charge(s), took back 0
	// recovery: compensated · the bank was asked 1×, has 1 charge(s), took back 1
	// repeat:   compensated · the bank was asked 1×, has 1 charge(s), took back 1
}
