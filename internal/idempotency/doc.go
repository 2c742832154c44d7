// Package idempotency ensures that a repeated request is carried out only once, by the Idempotency-Key header (IKH).
//
//	authenticated request ─► Key: one field line, a structured-field String, 16 to 255 characters
//	   ─► Reserve (one atomic step, with the fingerprint) ─┬─ new ──────────► handler ─► Complete ─► answer
//	                                                       ├─ answered before ─► the stored answer again
//	                                                       ├─ in progress ─────► 409
//	                                                       └─ other payload ───► 422
//
// Guard does this for management requests. Event ingest uses only Key, ID and Fingerprint: the transaction that stores the
// events also stores the record, so no reservation is needed.
//
// A record is identified by (principal, tenant, operation, key), never by the key alone. Responses that may differ next time
// (5xx, 409, 429 and refusals before the handler) are not stored (EDS T-3). Stored bodies are encrypted: some show a secret
// once, and a repeat must show the same.
//
// A request can be interrupted after its effect and before Complete. Its record then stays until the window ends, and a repeat
// runs under the reservation of the first. Once gives the repeat the object that the first created.
//
// The package does not authenticate callers, and does not interpret the requests.
package idempotency
