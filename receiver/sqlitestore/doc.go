// Package sqlitestore keeps a receiver's keys, nonces and inbox in a SQLite database: for receivers of one machine, in one
// process or several.
//
//	store, err := sqlitestore.Open(ctx, "webhooks.db", sqlitestore.Options{})
//
// A database of the application's own serves as well (New), and then a handler's effect and the completion of its key can
// be one transaction:
//
//	receiver.Options{Store: store, Transactional: true, Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
//		_, err := sqlitestore.Tx(ctx).ExecContext(ctx, "INSERT INTO payments …")
//		return receiver.Accepted{}, err
//	}}
//
// SQLite has one writer at a time, so handlers in transactions run one after the other, and what such a handler writes past
// its transaction waits for itself: keep them short. One that takes longer than it may is rolled back, for others to write.
//
// It needs SQLite 3.35 or newer. Receivers and workers purge it by themselves.
package sqlitestore
