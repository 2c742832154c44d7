// Package faults breaks a cluster of real godwit processes on real PostgreSQL servers, and checks that it kept its promises.
//
//	workload ──(half of the producers: balancer)──► nodes ──► cable ──► primary ──► synchronous standby
//	   │                                              │
//	   │                                              └──► receivers
//	   ▼                                                      │        nemeses: kill, freeze, cut, fail over, …
//	history ◄─────────────────────────────────────────────────┴────────────┘
//	   └──► checkers ──► report
//
// The workload posts events, changes endpoints and submits commands; each request and its answer go into the history, as does
// each request that a receiver gets and each fault. The checkers judge the history when all deliveries have ended. They are
// plain functions of it, so that their own tests show that each can fail.
//
// A run is bounded by the number of its faults. Its seed chooses faults, victims and moments; the machine's scheduling
// chooses the rest, so that the same seed gives a similar run and not the same one. scripts/faults runs it for any time.
//
// The package tests no power failure of SQLite; internal/store/sqlite does.
package faults
