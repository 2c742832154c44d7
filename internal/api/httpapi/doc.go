// Package httpapi holds what the handler sets of all APIs share: who calls, for which tenant, the request's body, ids in any
// form, repeats under an Idempotency-Key, and errors.
//
//	request ─► name it ─► authenticate ─► read body ─► Idempotency-Key? ─► the API's handler ─► its own JSON
//	                  └────────────── any error ──────────────► the API's own error body
//
// The package writes no body of its own and knows no API: each has its own shapes, in its own package. What makes an event
// acceptable is decided by package intake.
package httpapi
