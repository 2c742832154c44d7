package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Payload is the input of a fingerprint. It holds nothing that changes between attempts, such as dates, signatures and
// trace ids (IKH-FPR-4).
type Payload struct {
	ContentType string
	Query       string // the part of the query that determines the operation
	Body        []byte // as received
}

// A Fingerprint decides whether two requests with the same key are the same request.
type Fingerprint struct {
	Doc string // one sentence for the published specification
	Sum func(Payload) [32]byte
}

// WholePayload compares every byte of the payload. It is the default.
var WholePayload = Fingerprint{
	Doc: "SHA-256 of the media type, the query where it says what is to be done, and the body as received, byte for byte",
	Sum: func(p Payload) [32]byte {
		h := sha256.New()
		for _, part := range []string{p.ContentType, p.Query} {
			var n [4]byte
			binary.BigEndian.PutUint32(n[:], uint32(len(part)))
			h.Write(n[:])
			h.Write([]byte(part))
		}
		h.Write(p.Body)
		var sum [32]byte
		h.Sum(sum[:0])
		return sum
	},
}

// NoFingerprint compares only the key: a repeat gets the stored response whatever its payload.
var NoFingerprint = Fingerprint{
	Doc: "none: a repeated key gets the stored answer whatever the payload",
	Sum: func(Payload) [32]byte { return [32]byte{} },
}
