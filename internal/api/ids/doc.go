// Package ids serves /ids/v1: commands, their confirmation and status, the evidence of decisions, and the registry of
// commands (RFC-WF-0010).
//
//	POST /ids/v1/commands ─► authenticate ─► envelope ─► executor ─► 200 | 202 | 409 | 422 | 429
//
// The package translates between HTTP and the executor and makes no decisions. It ignores the Idempotency-Key header: the
// executor derives the key of a command from the command.
package ids
