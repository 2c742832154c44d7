// Package postgresstore keeps a receiver's keys, nonces and inbox in PostgreSQL: for receivers on any number of machines.
//
//	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
//	store, err := postgresstore.New(ctx, pool, postgresstore.Options{})
//
// A handler's effect and the completion of its key can be one transaction:
//
//	receiver.Options{Store: store, Transactional: true, Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
//		_, err := postgresstore.Tx(ctx).Exec(ctx, "INSERT INTO payments …")
//		return receiver.Accepted{}, err
//	}}
//
// A holder's row is not locked while its handler runs, so that a repeat is answered at once; that the holder still has the
// key is made sure of when the transaction ends.
//
// It needs PostgreSQL 12 or newer. Receivers and workers purge it by themselves.
package postgresstore
