// Package ids serves /ids/v1: commands, their confirmation and status, the evidence of what was decided, and the registry of what may
// be commanded (RFC-WF-0010).
//
//	POST /ids/v1/commands ─► authenticate ─► envelope ─► executor ─► 200 | 202 | 409 | 422 | 429
//
// It translates between HTTP and the executor and decides nothing itself. The Idempotency-Key header has no meaning here: the key of a
// command is derived from the command.
package ids
