// Package dialect is what the handler sets of foreign dialects have in common: who calls, what came in the body, which
// thing is meant by an id, and repeats under one key.
//
//	request ─► name it ─► authenticate ─► read body ─► Idempotency-Key? ─► the dialect's handler ─► its own JSON
//	                  └────────────── any error ──────────────► the dialect's own error body
//
// It writes no body of its own and knows no dialect: each has its own shapes, in its own package.
package dialect
