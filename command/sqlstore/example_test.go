package sqlstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/command/sqlstore"
)

var errNoneLeft = errors.New("none left")

// buy takes a piece out of stock for an order. The effect decides by the stock it reads in its own transaction. Refused
// turns its error into a rejection, which also undoes the other effect, the order.
func buy(_ context.Context, c *command.Call) (*command.Outcome, error) {
	take := func(ctx context.Context, tx *sql.Tx) (int, error) {
		var pieces int
		err := tx.QueryRowContext(ctx, "UPDATE stock SET pieces = pieces - 1 WHERE item = ? AND pieces > 0 RETURNING pieces", c.Intent.Target).Scan(&pieces)
		if errors.Is(err, sql.ErrNoRows) {
			err = errNoneLeft
		}
		return pieces, err
	}
	o := &command.Outcome{Refused: func(err error) error {
		if errors.Is(err, errNoneLeft) {
			return command.Reject("sold_out", "nothing is left of it")
		}
		return err
	}}
	command.Add(o, sqlstore.Exec("INSERT INTO orders (id) VALUES (?)", c.CommandID))
	left := command.Add(o, sqlstore.Effect(take))
	o.After = func(o *command.Outcome, results command.Results) error {
		o.Summary = fmt.Sprintf("Bought; %d left.", left.In(results))
		return nil
	}
	return o, nil
}

// Three customers want an article of which two are in stock.
func ExampleEffect() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	db, err := sql.Open("sqlite", ":memory:")
	must(err)
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would open its own database in memory
	_, err = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY); CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER); INSERT INTO stock VALUES ('lamp', 2)")
	must(err)
	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite, Prefix: "ids_"})
	must(err)
	must(store.Migrate(context.Background()))
	registry := command.NewRegistry()
	must(registry.Register(command.Declaration{Entity: "item", Action: "buy", Description: "Buys one.", TargetRequired: true}, command.HandlerFunc(buy)))
	sealer, err := command.NewSealer(make([]byte, 32))
	must(err)
	executor, err := command.New(command.Config{Store: store, Registry: registry, Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); executor.Run(ctx) }()
	defer func() { stop(); <-ended }()

	for _, customer := range []string{"ann", "bob", "cleo"} {
		answer, err := executor.Submit(ctx, command.Caller{Tenant: "shop", Actor: customer}, &command.Envelope{
			CommandID: command.NewID(time.Now()), TenantID: "shop", ActorID: customer, IssuedAt: time.Now(),
			Intent: command.Intent{Entity: "item", Action: "buy", Target: "lamp"}, Args: json.RawMessage(`{}`),
		})
		must(err)
		fmt.Println(customer, answer.Status, answer.Outcome.Summary)
	}
	var orders int
	must(db.QueryRow("SELECT count(*) FROM orders").Scan(&orders))
	fmt.Println(orders, "orders")
	// Output:
	// ann executed Bought; 1 left.
	// bob executed Bought; 0 left.
	// cleo rejected nothing is left of it
	// 2 orders
}
