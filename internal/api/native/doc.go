// Package native is the API under /v1.
//
//	request ─► request id ─► route ─► authenticate ─► scope ─┬─ ingest: raw handlers ─► engine.Submit ─► 202
//	                                                        └─ management: Idempotency-Key ─► huma ─► registry, store, engine
//
// Ingest is the hot path: it reads the body once into a buffer of the right size, decodes nothing when the type comes with
// the URL, and builds its answer by appending. Management routes are typed operations; the OpenAPI document at
// /openapi.json is generated from them, and raw routes are written into the same document by hand.
//
// Failures are problem details that name the field. Unknown members are refused. Secrets are shown once, by the answer that
// issues them, and by no GET.
//
// The package keeps no state of its own and makes no decision about delivery.
package native
