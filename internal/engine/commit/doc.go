// Package commit writes what many callers hand over in shared transactions, so that one fsync serves many.
//
//	Do(Request) ──► foreground ─┐
//	Do(Request) ──► background ─┼─► take, fair between tenants, bounded in rows ─► store.Commit ─► answers
//	Add(Record) ──► records ────┘                                                      │
//	                    ▲                                                              └─► Claim.Stored, Refused, Dropped
//	                    └───────── the store is away: written later ◄──────────────────────┘
//
// A Request has a caller that waits for its Answer: a submission, a part of a large fan-out, a change of an endpoint. A Record
// is the result of an attempt; its Claim is called back once it is stored.
//
// While one transaction is written, the next one fills. Under load the writer also waits up to Config.Linger for company, since
// the cost of an event falls with the size of its transaction; a lone request does not wait.
//
// One transaction carries a bounded number of rows, and tenants take turns by rows. A tenant with a large backlog therefore
// delays another tenant's request by one transaction at most.
//
// The package knows no endpoint, no lane and no HTTP. It reads no wall clock.
package commit
