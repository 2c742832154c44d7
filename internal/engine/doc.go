// Package engine carries events from acceptance to a recorded outcome.
//
//	Submit ─► match (index) ─► keep a place in each lane's window ─► committer ─► durable ─► lane
//	                                                                    ▲                     │ pump: status, lease, hold,
//	     store (what found no place, retries, replays)                  │                     ▼ circuit, rate, concurrency
//	        └──────────── ClaimDue when due or when the lane runs low ──┼──────────────────► attempt
//	                                                                    │       render, sign, send, classify, decide
//	                                                                    └───────────────────── result
//
// A lane is the part of an endpoint that lives in memory: a bounded window of claimed deliveries, its limits and its
// health. What does not fit stays in the store and costs no memory. A lane never blocks another: all share a number of
// slots for requests in flight, which are handed round in turn.
//
// The committer writes accepted events and finished attempts in shared transactions, so that one fsync serves many. A
// submission is answered after its commit; a result that cannot be written yet is kept and written later, and its
// delivery keeps its place until then.
//
// What became of a delivery can be news: webhook.* events and alerts, on the same bus. They are stored in the transaction of
// the result they tell of, and are delivered like any other event, but nothing is told about them.
//
// An endpoint that fails too often rests: it is disabled, and set free again after a time. What it is sent within a second
// or a minute is bounded by exact logs of starts, its own and its account's; over the bound, deliveries wait in line.
//
// Whoever holds the lease of an endpoint's shard runs its lane. Everything a node claims carries the lease's epoch; after
// a crash the next holder starts a new epoch and takes over what was claimed under the old one.
//
// The package knows no HTTP API, no SQL and no dialect.
package engine
