// Package postgres stores everything in a PostgreSQL database, version 15 or newer.
//
//	Commit ─► one pipeline, one round trip, one transaction:
//	            hold the leases ─► records ─► events ─► pending ─► claims still held? ─► deliveries ─► attempts ─► health …
//	          a surprise (a repeated batch, a lost claim) rolls it back, and careful.go does it again row by row
//	Advance ─► one transaction; one round trip if the steps continue what this node stored last (recent.go):
//	            steps │ lock the heads of the tenants' chains, as remembered? ─► events ─► records, as remembered? ─► evidence
//	          two round trips otherwise:
//	            lock the heads ─► read records │ steps │ events ─► records ─► evidence ─► heads
//	          effects run in between, behind a savepoint for each step that has some (effect.go)
//
// Layout: unfinished deliveries are in pending_deliveries, a small table that is vacuumed often; finished ones are appended to
// deliveries. Lists merge both. Events, finished deliveries and attempts are partitioned by day over their time-ordered ids,
// so that retention drops tables instead of deleting rows (partition.go, sweep.go).
//
// Claims: a row's claim_epoch is 0 or the epoch of its shard's lease. A transaction that claims holds a shared lock until it
// ends; one that takes a lease locks exclusively, raises the epoch, and then releases the older claims. So the epoch in the
// row alone decides whether a result is accepted, and recording a result does not read the leases.
//
// For users who query the database directly there are read-only views with the schema of the CYBERCUBE standard
// (migrations/0003_views.sql): webhook_endpoints, webhook_events, webhook_deliveries, webhook_dlq.
//
// Evidence: a transaction locks the heads of the tenants' chains before anything else, always in the order of tenants. So the
// commands of a tenant take turns across all nodes. Items are never changed; a trigger enforces that.
//
// There are two pools. The hot one runs commits, claims and commands on statements prepared when it connects, with a planner
// that may neither scan nor hash. The cold one runs all other queries, with a plan for each query's own values.
//
// One connector makes all connections (connector.go): it chooses the host and backs off while the database is away. Sessions whose
// server became a standby are thrown away (session.go).
//
// The connections keep settings and prepared statements, so a connection pooler must use session mode, not transaction mode.
//
// The package deliberately does not listen for notifications, does not retry on its own, and reads no clock except the
// server's, to prepare partitions when it opens.
package postgres
