// Package dispatch decides when which delivery is sent, and keeps account of the endpoints it sends to.
//
//	Reserve ─► (commit) ─► Committed ─┐
//	                                  ▼
//	store ─► backlog: ClaimDue ─► window ─► pump: status, lease, hold, circuit, rate, account, slot ─► attempt
//	  ▲                                                                                                 │
//	  └────────── commit.Record ◄── Observer.Judged ◄── health ◄── Maker.Judge ◄── Maker.Send ◄──────────┘
//
// A Lane is the part of an endpoint that lives in memory. It has a bounded window of claimed deliveries; the others stay in
// the store and cost no memory. A lane never blocks another: all share a number of slots for requests in flight, which are
// handed round in turn. What an endpoint is sent within a second or a minute is bounded by exact logs of starts, its own and
// its account's; over the bound, deliveries wait in line.
//
// An endpoint that fails too often is disabled, and enabled again after a time. The node that holds the lease of an
// endpoint's shard runs its lane; other nodes know the lane only to match events.
package dispatch
