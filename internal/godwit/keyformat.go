package godwit

import "encoding/hex"

// A KeyFormat is the format of idempotency keys that a receiver has published (IKH-SEC-4). Keys that the server makes for
// the receiver's events follow it (IKH-RSP-1); a producer's own keys are not rewritten. The zero value is a receiver that
// accepts a UUID.
type KeyFormat struct {
	Min, Max int    // characters
	Alphabet string // one of the constants
}

// The alphabets, each a subset of the one before.
const (
	KeyPrintable    = "printable"    // printable ASCII
	KeyAlphanumeric = "alphanumeric" // letters and digits
	KeyHex          = "hex"          // digits and a to f
)

// The shortest keys with at least 128 random bits (EDS-KEY-4).
const (
	leastKey    = 22 // of letters and digits
	leastHexKey = 32
	uuidLength  = 36
	longestKey  = 255
)

// set applies an endpoint's overrides to the format.
func (f *KeyFormat) set(min, max *int, alphabet *string) *FieldError {
	if min == nil && max == nil && alphabet == nil {
		return nil
	}
	*f = KeyFormat{Min: 1, Max: longestKey, Alphabet: KeyPrintable}
	least := leastKey
	if alphabet != nil {
		switch f.Alphabet = *alphabet; f.Alphabet {
		case KeyHex:
			least = leastHexKey
		case KeyPrintable, KeyAlphanumeric:
		default:
			return fieldErr("policy.key_alphabet", "must be %q, %q or %q", KeyPrintable, KeyAlphanumeric, KeyHex)
		}
	}
	if err := setInt(&f.Max, max, "policy.key_max_length", least, longestKey); err != nil {
		return err
	}
	return setInt(&f.Min, min, "policy.key_min_length", 1, f.Max)
}

// takesUUID reports whether the receiver accepts the UUIDs that the server makes by default.
func (f *KeyFormat) takesUUID() bool {
	return *f == KeyFormat{} || f.Alphabet == KeyPrintable && f.Min <= uuidLength && f.Max >= uuidLength
}

// NewKey makes a random key for receivers with these formats: a UUID if all accept it, else letters and digits. If no key
// fits all formats, it is a UUID as well.
func NewKey(formats ...KeyFormat) string {
	lo, hi, digits, plain := 0, longestKey, KeyAlphanumeric, true
	for i := range formats {
		f := &formats[i]
		if *f == (KeyFormat{}) {
			continue
		}
		plain = plain && f.takesUUID()
		lo, hi = max(lo, f.Min), min(hi, f.Max)
		if f.Alphabet == KeyHex {
			digits = KeyHex
		}
	}
	least := leastKey
	if digits == KeyHex {
		least = leastHexKey
	}
	if n := min(max(lo, leastHexKey), hi); !plain && n >= max(lo, least) {
		return randomKey(n, digits)
	}
	return newUUID()
}

func newUUID() string {
	var b [16]byte
	Random(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var t [uuidLength]byte
	hex.Encode(t[:8], b[:4])
	hex.Encode(t[9:13], b[4:6])
	hex.Encode(t[14:18], b[6:8])
	hex.Encode(t[19:23], b[8:10])
	hex.Encode(t[24:], b[10:])
	t[8], t[13], t[18], t[23] = '-', '-', '-', '-'
	return string(t[:])
}

const alphanumerics = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// randomKey draws every character uniformly from the alphabet.
func randomKey(n int, alphabet string) string {
	letters := alphanumerics
	if alphabet == KeyHex {
		letters = letters[:16]
	}
	key := make([]byte, 0, n)
	var b [64]byte
	for len(key) < n {
		Random(b[:])
		for _, c := range b {
			if c &= 63; int(c) < len(letters) && len(key) < n {
				key = append(key, letters[c])
			}
		}
	}
	return string(key)
}
