// Package sqlstore stores commands in the application's own database, through database/sql. A command's changes to that
// database, its outcome and its evidence share one transaction.
//
//	Advance ─ BEGIN ─ lock the tenants' heads ─ read the records ─ steps, by command.Advance ─ store records, evidence and heads ─ COMMIT
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
// The package opens no database, makes no backups, and supports no other kinds of databases. A change that an effect makes
// outside its transaction is not undone with it.
package sqlstore
