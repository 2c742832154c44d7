// Package httpapi holds the parts that the handler sets of all APIs share: authentication, the tenant, the request body, ids
// in any form, repeats under an Idempotency-Key, and errors.
//
//	request ─► name it ─► authenticate ─► read body ─► Idempotency-Key? ─► the API's handler ─► its own JSON
//	                  └────────────── any error ──────────────► the API's own error body
//
// The package defines no response bodies: each API has its own, in its own package. Package intake decides which events are
// acceptable.
package httpapi
