// Package sqlstore keeps commands in a database of the application's own, by database/sql: what a command changes there, its outcome and its
// evidence are one transaction.
//
//	Advance ─ BEGIN ─ lock the tenants' heads ─┬─ step: compare ─ SAVEPOINT ─ effects ─ settle ─ link evidence ─ store ─┐
//	                                           └──────────────────────── the next step ◄────────────────────────────────┘
//	          ─ move the heads ─ COMMIT
//
// An effect is a function of the transaction:
//
//	return &command.Outcome{
//		Summary: "Order 17 was paid.",
//		Effects: []command.Effect{sqlstore.Effect(func(ctx context.Context, tx *sql.Tx) (int, error) {
//			var stock int
//			err := tx.QueryRowContext(ctx, "UPDATE goods SET stock = stock - 1 WHERE id = 17 RETURNING stock").Scan(&stock)
//			return stock, err
//		})},
//	}, nil
//
// The application opens the database, with the driver of its choice, and may use it for its own purposes. SQLite should have
// journal_mode WAL, synchronous FULL and a busy_timeout. PostgreSQL needs 15 or later.
//
// What the package does not do: it opens nothing, makes no backups, and knows no other database. A change that an effect makes by another way
// than its transaction is not undone with it.
package sqlstore
