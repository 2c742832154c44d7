package keyring

import (
	"encoding/hex"
	"fmt"
)

// A sealed value is bound to a context and opens only in that context. All contexts are made here, because a value that
// was sealed under one spelling does not open under another.

// ForEndpoint is the context of an endpoint's header values and credentials.
func ForEndpoint(id fmt.Stringer) string { return "endpoint:" + id.String() }

// ForSecret is the context of a signing key.
func ForSecret(id fmt.Stringer) string { return "secret:" + id.String() }

// ForSource is the context of a source's credentials.
func ForSource(id fmt.Stringer) string { return "source:" + id.String() }

// ForIdempotencyRecord is the context of a stored answer.
func ForIdempotencyRecord(id [32]byte) string { return "idempotency:" + hex.EncodeToString(id[:]) }
