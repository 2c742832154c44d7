// Package idempotency keeps a request that is repeated from being done twice, by the Idempotency-Key header (IKH).
//
//	authenticated request ─► Key: one field line, a structured-field String, 16 to 255 characters
//	   ─► Reserve (one atomic step, with the fingerprint) ─┬─ new ──────────► handler ─► Complete ─► answer
//	                                                       ├─ answered before ─► the stored answer again
//	                                                       ├─ in progress ─────► 409
//	                                                       └─ other payload ───► 422
//
// Guard does this for management requests. Event ingest uses Key, ID and Fingerprint alone: its record is part of the
// transaction that stores the events, so it needs no reservation.
//
// A record is found by (principal, tenant, operation, key), never by the key alone. Answers that may differ next time
// (5xx, 409, 429 and refusals before the handler) are not kept (EDS T-3). Stored bodies are sealed: some show a secret
// once, and a repeat has to show the same.
//
// The package does not authenticate, and does not know what the requests are about.
package idempotency
