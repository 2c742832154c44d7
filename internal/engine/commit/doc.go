// Package commit writes the requests and records of many callers in shared transactions, so that one fsync serves many.
//
//	Do(Request) ──► foreground ─┐
//	Do(Request) ──► background ─┼─► take, fair between tenants, bounded in rows ─► store.Commit ─► answers
//	Add(Record) ──► records ────┘                                                      │
//	                    ▲                                                              └─► Claim.Stored, Refused, Dropped
//	                    └───────── the store is away: written later ◄──────────────────────┘
//
// A Request has a caller that waits for its Answer: a submission, a part of a large fan-out, a change of an endpoint. A Record
// is the result of an attempt; the group calls its Claim once it is stored.
//
// While one transaction is written, the next one fills. Under load the writer also waits up to Config.Linger for further
// operations, since larger transactions cost less per event; a lone request does not wait.
//
// One transaction carries a bounded number of rows, and tenants take turns by rows. A tenant with a large backlog therefore
// delays another tenant's request by one transaction at most.
//
// The package knows no endpoint, no lane and no HTTP. It reads no wall clock.
package commit
