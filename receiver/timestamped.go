package receiver

import (
	"context"
	"strings"
	"time"
)

// timestamped is the part that [OJS] and [Cybercube] share: sha256=<hex> over <timestamp>.<raw body>, several separated by
// commas.
type timestamped struct {
	signature, timestamp string // header fields
	principal            string
	keys                 []macKey
	// strict requires that the first entry is a sha256= one (CCW-SIG-8); otherwise other entries are skipped (OJS-ROT-5).
	strict bool
}

const sha256Prefix = "sha256="

// authenticate checks in the order of CCW-SIG-14: format, time, tolerance, MAC.
func (s *timestamped) authenticate(_ context.Context, m *Message, c Check) (Proof, error) {
	timestamp := m.Field(s.timestamp)
	signed, err := verifyTimestamped(s.keys, s.strict, m.Body, m.Field(s.signature), timestamp, c)
	if err != nil {
		return Proof{}, err
	}
	return Proof{Principal: s.principal, SignedAt: signed, Once: timestamp}, nil
}

func verifyTimestamped(keys []macKey, strict bool, body []byte, signature, timestamp string, c Check) (time.Time, error) {
	macs, known := hexMACs(signature, sha256Prefix)
	switch {
	case signature == "":
		return time.Time{}, &SignatureError{ReasonMissing, "Invalid signature format"}
	case !known, strict && !strings.HasPrefix(signature, sha256Prefix):
		return time.Time{}, errFormat
	}
	signed, err := unixSeconds(timestamp)
	if err != nil {
		return time.Time{}, err
	}
	if err := c.fresh(signed); err != nil {
		return time.Time{}, err
	}
	prefix := make([]byte, 0, 16)
	prefix = append(append(prefix, timestamp...), '.')
	if !anyMAC(keys, macs, prefix, body) {
		return time.Time{}, errMismatch
	}
	return signed, nil
}
