package godwit

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// An IdempotencyRecord stores the answer to a request by its key, so that a repeat gets the same answer (IKH).
type IdempotencyRecord struct {
	ID          [32]byte // hash of principal, operation and key: see IdempotencyID
	TenantID    TenantID
	Fingerprint [32]byte // hash of the request's payload
	// EventID is the first event that was accepted under the key; zero for requests without events.
	EventID   EventID
	Response  *StoredResponse
	CreatedAt time.Time
	// ExpiresAt is the end of the window once there is a response. Before that it is the end of the holder's lease, after
	// which the key is free again (no eternal 409: EDS T-32).
	ExpiresAt time.Time
}

// InProgress reports whether the first request has not been answered yet.
func (r *IdempotencyRecord) InProgress() bool { return r.Response == nil }

// StoredResponse is the answer that a repeat gets. Transient answers are never stored (EDS T-3).
type StoredResponse struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Location    string `json:"location,omitempty"`
	Body        []byte `json:"body,omitempty"`
}

// IdempotencyID is the store's composite key. Only the server knows the principal, which is an API key's or a source.
// Every part is prefixed with its length, so that two different tuples never encode alike (IKH-SEC-6).
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
