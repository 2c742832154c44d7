package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Payload is what a fingerprint is made of. Nothing that changes from attempt to attempt — dates, signatures, trace ids —
// is in it (IKH-FPR-4).
type Payload struct {
	ContentType string
	Query       string // the part of the query that says what is to be done
	Body        []byte // as received
}

// A Fingerprint tells whether two requests with one key are the same request.
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

// NoFingerprint takes the key's word for it: a repeat gets the stored answer whatever its payload.
var NoFingerprint = Fingerprint{
	Doc: "none: a repeated key gets the stored answer whatever the payload",
	Sum: func(Payload) [32]byte { return [32]byte{} },
}
