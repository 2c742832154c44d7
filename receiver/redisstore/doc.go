// Package redisstore keeps a receiver's keys and nonces in Redis, or what speaks its protocol: for receivers on any number
// of machines.
//
//	store := redisstore.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}), redisstore.Options{})
//
// Everything is one script on one key, and expires by itself. Redis forgets what it has not written to disk when it dies,
// what it evicts, and what a replica had not heard of yet when it took over: use appendonly yes, appendfsync always and
// maxmemory-policy noeviction, or duplicates slip through.
//
// A handler's effect and the completion of its key can be one step if the effect is in the same Redis:
//
//	receiver.Options{Store: store, Transactional: true, Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) {
//		redisstore.Queue(ctx, "INCRBY", "balance", amount)
//		return receiver.Accepted{}, nil
//	}}
//
// Redis undoes nothing: a queued command that fails, as on a key of another type, leaves those before it done and the key
// open, and a retry does them again. Queue one command, or only such as cannot fail. In a cluster the keys of
// queued commands have to be in the slot of the store's own, by a hash tag in [Options.Prefix].
//
// There is no inbox in Redis: take one in a database, or a queue of your own.
package redisstore
