// Package dispatch decides when to send each delivery, and keeps the health of the endpoints.
//
//	Reserve ─► (commit) ─► Committed ──┐
//	                                   ▼
//	store ─► claimer ─► backlog ─► window ─► pump: status, lease, hold, circuit, rate, account, slot ─► attempt
//	  ▲                                                                                                  │
//	  └────────── commit.Record ◄── Observer.Judged ◄── health ◄── Maker.Judge ◄── Maker.Send ◄───────────┘
//
// A Lane is the in-memory part of an endpoint. It has a bounded window of claimed deliveries; the others stay in the store and
// use no memory. Lanes do not block each other: they share a number of slots for requests in flight and take turns. Exact logs
// of starts, one per endpoint and one per account, bound the requests per second and minute; above the bound, deliveries wait
// in line.
//
// An endpoint that fails too often is disabled, and enabled again after some time. The node that holds the lease of an
// endpoint's shard runs its lane; other nodes use the lane only to match events.
package dispatch
