package command_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/command/sqlstore"
	_ "modernc.org/sqlite"
)

// The simplest embedding: a command of class I1 in an application with its own database. The order is paid in the
// transaction of the outcome; the second submission gets that outcome.
func Example() {
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	check(err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, paid INTEGER NOT NULL); INSERT INTO orders VALUES ('O-17', 0)")
	check(err)
	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
	check(err)
	check(store.Migrate(context.Background()))

	registry := command.NewRegistry()
	check(registry.Register(command.Declaration{
		Entity: "order", Action: "pay", Description: "Marks an order as paid.", TargetRequired: true,
	}, command.HandlerFunc(func(ctx context.Context, c *command.Call) (*command.Outcome, error) {
		return &command.Outcome{
			Summary: "Order " + c.Intent.Target + " was paid.",
			Effects: []command.Effect{sqlstore.Exec("UPDATE orders SET paid = paid + 1 WHERE id = ?", c.Intent.Target)},
		}, nil
	})))
	sealer, err := command.NewSealer(make([]byte, 32)) // in production: 32 secret bytes that stay the same
	check(err)
	executor, err := command.New(command.Config{Store: store, Registry: registry, Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); executor.Run(ctx) }()
	defer func() { stop(); <-ended }()

	for range 2 {
		answer, err := executor.Submit(ctx, command.Caller{Tenant: "shop", Actor: "web"}, &command.Envelope{
			CommandID: command.NewID(time.Now()), TenantID: "shop", ActorID: "web", IssuedAt: time.Now(),
			Intent: command.Intent{Entity: "order", Action: "pay", Target: "O-17"}, Args: json.RawMessage(`{}`),
		})
		check(err)
		fmt.Println(answer.Decision, answer.Status, answer.Outcome.Summary)
	}
	var paid int
	check(db.QueryRow("SELECT paid FROM orders").Scan(&paid))
	fmt.Println("paid", paid)
	// Output:
	// first_seen executed Order O-17 was paid.
	// duplicate_replayed executed Order O-17 was paid.
	// paid 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
