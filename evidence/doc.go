// Package evidence is an append-only chain of decisions. Each item holds the hash of the one before it, so that a change, a
// removal and an insertion are all noticed. A chain belongs to one tenant; it is exported as lines of canonical JSON (RFC 8785)
// and verified offline with only the file and a public key.
//
//	Entry ── Link(head) ──► Item ── store ──► NewExporter ──► file ── Verify ──► Report, or the first broken link
//	                          ▲                                         │
//	   Sign(head) ── Checkpoint (an Entry, too)                       Summary: what each caller of a key got
//
// A chain alone proves nothing to a reader who has not seen an earlier hash of it. Checkpoints, which the server signs with Ed25519
// from time to time, prove it to the holder of the public key; so does the signed header of every export.
//
// The format, for authors of other verifiers. An item is one JSON object in canonical form; members that are empty
// are left out, except "executed". Its "hash" is "sha256:" and the lower-case hex SHA-256 of the canonical form of all its other
// members; its "prev_hash" is the "hash" of the item with the sequence number before, or Genesis for the first. "at" is
// RFC 3339 in UTC with six digits of the second. An exported file is a Header, then the items from_seq to to_seq, each on a line
// that ends with one newline; the header's "signature" is Ed25519 over the canonical form of its other members. What a
// checkpoint's signature is over is what SigningInput returns, with the "at" of the item that holds it.
//
// The package deliberately stores nothing, reads no clock, and does not decide which key to trust. An attacker with both the
// private key and the store can make another chain that verifies; only a hash known from an earlier export reveals it
// (Options.Known).
package evidence
