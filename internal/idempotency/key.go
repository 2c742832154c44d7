package idempotency

import (
	"net/http"

	"github.com/dunglas/httpsfv"

	"github.com/godwit-hq/godwit/internal/problem"
)

// Header is the only header field for keys; vendors' names for similar fields are not synonyms (IKH-REG-1).
const Header = "Idempotency-Key"

// ReplayedHeader marks a repeated response.
const ReplayedHeader = "Idempotency-Replayed"

// The published bounds of a key's length, in characters after decoding (IKH K-3).
const (
	DefaultMinLength = 16
	DefaultMaxLength = 255
)

// A Format is the required form of keys.
type Format struct {
	MinLength int
	MaxLength int
}

// Parse reads the key of a request. Its errors are problems: KeyMissing, KeyRepeated, KeyMalformed, KeyTooShort,
// KeyTooLong.
func (f Format) Parse(h http.Header) (string, error) {
	lines := h[Header] // canonical form; net/http has folded the case of the name
	switch len(lines) {
	case 0:
		return "", problem.KeyMissing.In(Header, "send \"<%d to %d characters, unique for this request>\"", f.MinLength, f.MaxLength)
	case 1:
		key, err := f.ParseValue(lines[0])
		if err != nil {
			return "", problem.InField(Header, err)
		}
		return key, nil
	}
	// Two lines are refused even when they are equal: joined they are a list, not an Item (IKH-SYN-5).
	return "", problem.KeyRepeated.In(Header, "the request has %d field lines of it", len(lines))
}

// ParseValue reads the value of the field. Parameters of the item are allowed and ignored (IKH K-2).
func (f Format) ParseValue(value string) (string, error) {
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", problem.KeyMalformed.With("want a structured-field string, in double quotes: \"8e03978e-40d5-43e8-bc93-6894a57f9324\"")
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", problem.KeyMalformed.With("want a structured-field string, in double quotes; the value is of another type")
	}
	return key, f.Check(key)
}

// Check returns an error if a decoded key is not acceptable.
func (f Format) Check(key string) error {
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return problem.KeyMalformed.With("may hold printable ASCII characters only")
		}
	}
	if len(key) < f.MinLength {
		return problem.KeyTooShort.With("has %d characters, needs at least %d", len(key), f.MinLength)
	}
	if len(key) > f.MaxLength {
		return problem.KeyTooLong.With("has %d characters, may have at most %d", len(key), f.MaxLength)
	}
	return nil
}

// Present reports whether the request has the field.
func Present(h http.Header) bool { return len(h[Header]) > 0 }
