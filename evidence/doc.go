// Package evidence is an append-only chain of what was decided: each item holds the hash of the one before it, so that nothing
// can be changed, taken out or put in unseen. A chain belongs to one tenant; it is exported as lines of canonical JSON
// (RFC 8785) and verified offline with nothing but the file and a public key.
//
// A chain alone shows that it was not changed since its last hash was known to somebody. Checkpoints, signed with Ed25519 from
// time to time, make that somebody the holder of the public key.
package evidence
