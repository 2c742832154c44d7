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
// Engine, in engine.go, puts the parts together. The seams between them are small interfaces: commit.Claim is called back when a
// result is stored, dispatch.Observer is told what becomes of deliveries, shard.Owner takes over and gives up shards.
//
// A submission is answered after its commit; a result that cannot be written yet is kept and written later, and its delivery
// stays in its lane's window until then.
//
// The package knows no HTTP API, no SQL and no dialect.
package engine
