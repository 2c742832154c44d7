// Package stats is the history behind the charts: counts, latencies and causes of failures, for each endpoint and minute, hour and day.
//
//	commit ── its counts as one log row, in its own transaction
//	   ▼
//	fold ── log rows are merged, and added to the pages of their minute, hour and day; both in one transaction
//	   ▼
//	read ── pages, and the log rows that are not folded yet, in one snapshot
//
// So the history is exact: a crash loses nothing that was committed and counts nothing twice, with any number of nodes. A commit pays for
// one small row, however many endpoints it concerns.
//
// A page holds the slots of one endpoint for one chunk of time: 60 minutes, 24 hours or 32 days. Tenants, environments and the whole server have
// pages of their own, so that a question about all endpoints reads few rows.
//
// The package encodes, merges and evaluates. It stores nothing: package store declares what a backend must do.
package stats
