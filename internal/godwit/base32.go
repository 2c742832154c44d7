package godwit

import (
	"fmt"
	"strings"
)

// crockford is the alphabet of ULIDs.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Base32 is the 26-character form of an id without prefix: ULID text, which sorts as the id does (decision 6).
func (id ID[K]) Base32() string {
	var b [26]byte
	// The text has 130 bits for 128, so the first character carries three.
	var acc uint32
	bits, at := 2, 0 // two zero bits in front
	for _, octet := range id {
		acc = acc<<8 | uint32(octet)
		bits += 8
		for bits >= 5 {
			bits -= 5
			b[at] = crockford[acc>>bits&31]
			at++
		}
		acc &= 1<<bits - 1
	}
	return string(b[:])
}

// ParseBase32ID parses the form that Base32 returns, in either case.
func ParseBase32ID[K Kind](text string) (ID[K], error) {
	var id ID[K]
	if len(text) != 26 || text[0] > '7' {
		return id, fmt.Errorf("%w: want 26 characters of base32", ErrBadID)
	}
	var acc uint32
	bits, at := -2, 0
	for _, c := range []byte(text) {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		v := strings.IndexByte(crockford, c)
		if v < 0 {
			return ID[K]{}, fmt.Errorf("%w: want 26 characters of base32", ErrBadID)
		}
		acc = acc<<5 | uint32(v)
		bits += 5
		if bits >= 8 {
			bits -= 8
			id[at] = byte(acc >> bits)
			at++
			acc &= 1<<bits - 1
		}
	}
	if id.IsZero() {
		return id, fmt.Errorf("%w: nothing has the id zero", ErrBadID)
	}
	return id, nil
}

// ParseEventBase32 reads an event's id in the 26-character form.
func ParseEventBase32(text string) (EventID, error) { return ParseBase32ID[eventKind](text) }
