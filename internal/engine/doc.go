// Package engine carries events from acceptance to a recorded outcome. Data flows one way through its parts:
//
//	accept ──► commit ──► dispatch ──► attempt ──► commit ──► report
//	Submit     events,    lanes: when  send,       attempt,   server events, feed,
//	           deliveries which one    classify,   new state, outcomes, metrics, log
//	                                   decide      health
//
//	engine/attempt   one request for a delivery, and what its answer means
//	engine/commit    group commit: shared transactions, fair between tenants
//	engine/dispatch  lanes, slots, limits, health of endpoints
//	engine/fanout    deliveries that are too many for one transaction
//	engine/shard     which shards this node delivers for
//	engine/follow    callers that watch attempts, wait for outcomes or read events in order
//
// Engine, in engine.go, connects the parts. The interfaces between them are small: the committer calls commit.Claim when a
// result is stored, the dispatcher reports to dispatch.Observer, and the keeper tells shard.Owner which shards it gained or
// lost.
//
// A submission is answered after its commit. If a result cannot be written yet, the committer keeps it and writes it later;
// its delivery stays in its lane's window until then.
//
// The package knows no HTTP API, no SQL and no dialect.
package engine
