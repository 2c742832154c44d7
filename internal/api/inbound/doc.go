// Package inbound receives deliveries from upstreams at /in/{source} and publishes them to the tenant's endpoints. Godwit is
// then an Intermediary.
//
//	source ─► method ─► size ─► authenticate, freshness, nonce ─► key, circle ─► type ─► publish (deduplicated) ─┬─► 202  stored
//	 404       405       413             401                      400   422       400      422 other payload        │
//	                                                                                                             └─► wait for the
//	                                                                                     endpoints: 200, 422, 502, 504
//
// The body, its media type, the chosen header fields and the upstream's Idempotency-Key are forwarded unchanged (EDS-INT-1,
// EDS-INT-2). Keys are scoped by the authenticated upstream, not by names in the request.
//
// The source's mode decides when the upstream is answered. In store-and-forward, which needs a valid acknowledgment of the
// service description, the upstream is answered once the event is stored. In pass-through it is answered when every endpoint
// has accepted the event (EDS-INT-8, EDS-INT-11). A repeat refers to the same event, and its open deliveries are tried at
// once. Status codes and Retry-After of endpoints are never passed to the upstream (EDS-INT-3, T-12).
//
// Refused requests are recorded for the operator with reason and remote address, never with the payload, a credential or a
// header value.
package inbound
