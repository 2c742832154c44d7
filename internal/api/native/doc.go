// Package native is the API under /v1.
//
//	request ─► request id ─► route ─► authenticate ─► scope ─┬─ ingest: raw handlers ─► engine.Submit ─► 202
//	                                                        └─ management: Idempotency-Key ─► huma ─► management, store, engine
//
// routes.go is the map of the API. Each noun has a file with its views, the descriptions of its operations and a type with
// their handlers; handlers.go gives these types the services that they use.
//
// Ingest is the hot path. It reads the body once into a buffer of the right size, decodes nothing if the URL names the type,
// and builds its response by appending. Management routes are typed operations; the OpenAPI document at /openapi.json is
// generated from them. Raw routes are added to that document by hand.
//
// Failures are problem details that name the field. Unknown members are rejected. Secrets are shown once, in the response
// that issues them, and in no GET.
//
// The package keeps no state and makes no decisions about delivery.
package native
