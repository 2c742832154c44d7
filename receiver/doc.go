// Package receiver is the consumer's side of webhooks. It verifies an HTTP request, runs a handler once per event, and answers
// so that the sender knows whether to send the event again.
//
//	r, err := receiver.New(receiver.Options{
//		Scheme:  receiver.StandardWebhooks{Keys: []string{os.Getenv("WEBHOOK_SECRET")}},
//		Store:   store,
//		Handler: func(ctx context.Context, d *receiver.Delivery) (receiver.Result, error) { … },
//	})
//	http.Handle("/hooks", r)
//
// The order of steps is fixed:
//
//	method, size ─► authenticate ─► freshness ─► key syntax ─► reserve key ─► handler ─► keep result ─► answer
//	 405, 413         401            401            400          │ 503/409, 422            │
//	                                                             └ seen before: the kept answer again
//
// Nothing is parsed before it is authenticated, nothing is remembered before the key is good, the handler does not run
// before the key is reserved, and nothing is answered before the result is kept.
//
// A [Scheme] is one sender's dialect: [EDS], [OJS], [Cybercube], [StandardWebhooks], [GitHub], [Stripe], [Shopify],
// [Slack], [Twilio], [PayPal], and plain [Bearer], [Basic] and [MTLS]. A [Store] remembers keys: [NewMemory] and the
// packages sqlitestore, postgresstore and redisstore. A [Worker] processes the deliveries of an [Inbox] after the
// sender was answered.
//
// # How often a handler's effect happens
//
// While a handler holds a key, no other handler runs for it, and none runs after one has succeeded. But if the process is killed
// after the handler's effect and before its result is kept, the effect has happened and no record says so. When the lease ends,
// the event is handled again. So an effect outside of the store may happen more than once, and a handler must allow for it.
//
// The effect happens exactly once if it is written in the transaction that also completes the key: set
// [Options.Transactional] and write with sqlitestore.Tx, postgresstore.Tx or redisstore.Queue. Then both are stored
// or neither is, whenever the process dies.
//
// The package deliberately does not register endpoints, fetch keys or certificates, verify responses, or relay.
package receiver
