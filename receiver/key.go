package receiver

import (
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// A KeyPolicy is the published format of Idempotency-Key (IKH-SEC-4).
type KeyPolicy struct {
	// Min is the shortest key, in characters after decoding. Defaults to 16.
	Min int
	// Max is the longest. Defaults to 255.
	Max int
	// Lenient also accepts a key without quotes; it equals the quoted key (EDS T-1). Defaults to false.
	Lenient bool
}

func (p KeyPolicy) withDefaults() KeyPolicy {
	if p.Min == 0 {
		p.Min = 16
	}
	if p.Max == 0 {
		p.Max = 255
	}
	return p
}

// ParseKey reads the lines of an Idempotency-Key field: one line with one structured-field String (RFC 9651), printable
// ASCII in double quotes. Parameters are ignored (IKH K-2). The error is a [*DeliveryError].
func ParseKey(lines []string, p KeyPolicy) (string, error) {
	p = p.withDefaults()
	switch len(lines) {
	case 0:
		return "", &DeliveryError{CodeKeyMissing, "Idempotency-Key is required"}
	case 1:
	default:
		return "", &DeliveryError{CodeKeyMalformed, "Idempotency-Key must occur once"}
	}
	key, ok := readKey(lines[0], p.Lenient)
	if !ok {
		return "", &DeliveryError{CodeKeyMalformed, "Idempotency-Key must be one string in double quotes"}
	}
	if len(key) < p.Min || len(key) > p.Max {
		return "", &DeliveryError{CodeKeyLength, fmt.Sprintf("Idempotency-Key must have %d to %d characters", p.Min, p.Max)}
	}
	return key, nil
}

func readKey(line string, lenient bool) (string, bool) {
	if key, ok := plainString(line); ok {
		return key, true
	}
	if lenient && bare(line) {
		return line, true
	}
	item, err := httpsfv.UnmarshalItem([]string{line})
	if err != nil {
		return "", false
	}
	key, ok := item.Value.(string)
	return key, ok
}

// plainString reads the common case: nothing escaped, no parameters.
func plainString(line string) (string, bool) {
	if len(line) < 2 || line[0] != '"' || line[len(line)-1] != '"' {
		return "", false
	}
	inner := line[1 : len(line)-1]
	for i := range len(inner) {
		if c := inner[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return "", false
		}
	}
	return inner, true
}

// bare reports whether a line looks like a key without quotes: the characters of tokens, with / : = and @.
func bare(line string) bool {
	const others = "!#$%&'*+-.^_`|~:/=@"
	for i := range len(line) {
		c := line[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return line != ""
}
