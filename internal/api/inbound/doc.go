// Package inbound takes deliveries from upstreams at /in/{source} and puts them on the tenant's bus: where Godwit is an
// Intermediary.
//
//	source ─► method ─► size ─► authenticate, freshness, nonce ─► key, circle ─► type ─► publish (deduplicated) ─┬─► 202  stored
//	 404       405       413             401                      400   422       400      422 other payload        │
//	                                                                                                             └─► wait for the
//	                                                                                     endpoints: 200, 422, 502, 504
//
// The body's bytes, its media type, the chosen header fields and the upstream's Idempotency-Key go on as they came
// (EDS-INT-1, EDS-INT-2). Keys are scoped by the upstream, never by what it says of itself.
//
// When the upstream is answered is the source's mode. Once the event is stored, where an acknowledgment of the service
// description holds; else only when every endpoint has accepted it (EDS-INT-8, EDS-INT-11). A repeat is the same event: what is
// left of it is tried at once. Status codes and Retry-After of endpoints are never passed up (EDS-INT-3, T-12).
//
// What is refused is recorded for the operator: why, from where, never the payload, a credential or a header's value.
package inbound
