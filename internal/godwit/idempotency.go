package godwit

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// An IdempotencyRecord remembers a request by its key, so that a repeat gets the first one's answer (IKH).
type IdempotencyRecord struct {
	ID          [32]byte // of principal, operation and key: see IdempotencyID
	TenantID    TenantID
	Fingerprint [32]byte // of the request's payload
	// EventID is the first event that was accepted under the key; zero for requests that bring no events.
	EventID   EventID
	Response  *StoredResponse
	CreatedAt time.Time
	// ExpiresAt is the end of the window once there is a response; before that, the end of the holder's lease, after
	// which the key is free again (no eternal 409: EDS T-32).
	ExpiresAt time.Time
}

// InProgress reports whether the first request has not been answered yet.
func (r *IdempotencyRecord) InProgress() bool { return r.Response == nil }

// StoredResponse is the answer that is replayed. Transient answers are never stored (EDS T-3).
type StoredResponse struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Location    string `json:"location,omitempty"`
	Body        []byte `json:"body,omitempty"`
}

// IdempotencyID is the composite key of the store: only the server knows the principal, an API key's or a source, and every
// part is prefixed with its length, so that no two tuples run together (IKH-SEC-6).
func IdempotencyID(principal [16]byte, operation, key string) [32]byte {
	h := sha256.New()
	for _, part := range [][]byte{principal[:], []byte(operation), []byte(key)} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	var id [32]byte
	h.Sum(id[:0])
	return id
}
