package command_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/command/sqlstore"
)

// placing places an order and adds the bank's task to the outbox: two rows, in the transaction of the outcome.
func placing(_ context.Context, c *command.Call) (*command.Outcome, error) {
	return &command.Outcome{
		Summary: c.Intent.Target + " was placed",
		Effects: []command.Effect{
			sqlstore.Exec("INSERT INTO orders (id) VALUES (?)", c.Intent.Target),
			sqlstore.Exec("INSERT INTO outbox (id, sent) VALUES (?, 0)", c.Intent.Target),
		},
	}, nil
}

// sending sends one row of the outbox, through the ledger, and marks it.
type sending struct{ reconciling }

func (h sending) Execute(ctx context.Context, c *command.Call) (*command.Outcome, error) {
	o, err := h.reconciling.Execute(ctx, c)
	if err == nil {
		o.Effects = []command.Effect{sqlstore.Exec("UPDATE outbox SET sent = 1 WHERE id = ?", c.Intent.Target)}
	}
	return o, err
}

// dispatch is the only dispatcher. A row is a command, so a row that it finds again after a crash is the same command.
func dispatch(ctx context.Context, shop *shop, x *command.Executor, db *sql.DB) (last *command.Answer) {
	var ids []string
	rows, err := db.Query("SELECT id FROM outbox WHERE sent = 0 ORDER BY rowid")
	check(err)
	for rows.Next() {
		var id string
		check(rows.Scan(&id))
		ids = append(ids, id)
	}
	check(rows.Err())
	for _, id := range ids {
		last = shop.Submit(ctx, x, "outbox", "send", id, `{}`)
	}
	return last
}

// S2: the messages to send are stored with the state change in one transaction, and a dispatcher sends them afterwards.
// Here the outbox is a table of the application, and the ledger protects the dispatcher's own calls (S3). In Godwit the
// outbox is the tenant's event bus (command event.publish) and the dispatcher is its delivery.
func Example_s2Outbox() {
	bank := openBank()
	defer bank.Close()
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	check(err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY); CREATE TABLE outbox (id TEXT PRIMARY KEY, sent INTEGER NOT NULL)")
	check(err)
	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
	check(err)
	check(store.Migrate(context.Background()))
	shop := newShop(store)
	check(shop.Registry.Register(command.Declaration{
		Entity: "order", Action: "place", Description: "Places an order, which the bank then charges.", TargetRequired: true,
		Class: command.I3, Shielding: []command.Strategy{command.S2}, Justification: "The charge happens at the bank, later.",
	}, command.HandlerFunc(placing)))
	check(shop.Registry.Register(command.Declaration{
		Entity: "outbox", Action: "send", Description: "Sends a row of the outbox to the bank.", TargetRequired: true,
		Class: command.I3, Shielding: []command.Strategy{command.S3}, Justification: "The charge happens at the bank, which knows no keys.",
	}, sending{reconciling{charging{bank}}}))

	first, crashed, stop := shop.Start("called")
	defer stop()
	for range 2 { // the customer submits the order twice
		a := shop.Submit(crashed, first, "order", "place", "O-17", `{}`)
		fmt.Println("order:   ", a.Status, a.Outcome.Summary, "·", bank.books())
	}
	sent := dispatch(crashed, shop, first, db)
	fmt.Println("crash:   ", sent.Status, "·", bank.books())

	shop.Pass(61 * time.Second) // the lease of the first process is over
	second, _, stop := shop.Start("")
	defer stop()
	dispatch(context.Background(), shop, second, db) // finds the row again, because it is not marked
	sent = shop.Ended(second, sent.CommandID)
	fmt.Println("recovery:", sent.Status, sent.Outcome.Summary, "·", bank.books())
	fmt.Println("left to send:", dispatch(context.Background(), shop, second, db) != nil)
	// Output:
	// order:    executed O-17 was placed · the bank was asked 0×, has 0 charge(s), took back 0
	// order:    executed O-17 was placed · the bank was asked 0×, has 0 charge(s), took back 0
	// crash:    in_progress · the bank was asked 1×, has 1 charge(s), took back 0
	// recovery: executed O-17 is charge ch_1 · the bank was asked 1×, has 1 charge(s), took back 0
	// left to send: false
}
