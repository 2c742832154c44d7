package profile

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"unicode/utf8"
)

// maxDepth limits nesting in JSON bodies. Common receivers have about the same limit; deeper bodies are sent as opaque bytes.
const maxDepth = 500

// A member is a requested member of an object: value is its JSON, nil if it is missing. If a name occurs twice, the last
// counts.
type member struct {
	name  string
	value []byte
}

// readJSON finds the one JSON value in b, without surrounding space; nil if b is not JSON in valid UTF-8. If it is an object,
// the requested members are filled in. It passes over the bytes once and decodes nothing: it runs for every attempt, and the
// envelope keeps the producer's own spelling of numbers and texts.
func readJSON(b []byte, want ...*member) []byte {
	if !utf8.Valid(b) {
		return nil
	}
	start := skipSpace(b, 0)
	var end int
	if start < len(b) && b[start] == '{' {
		end = skipObject(b, start, 1, want)
	} else {
		end = skipValue(b, start, 1)
	}
	if end < 0 || skipSpace(b, end) != len(b) {
		return nil
	}
	return b[start:end]
}

// isObject reports whether a JSON value is an object.
func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// isText reports whether a JSON value is a string that is not empty.
func isText(value []byte) bool { return len(value) > 2 && value[0] == '"' }

// The skip functions return the index behind the element in their name, or -1 if there is none at i.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func skipValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return skipObject(b, i, depth, nil)
	case c == '[':
		return skipArray(b, i, depth)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipObject(b []byte, i, depth int, want []*member) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		end := skipString(b, i)
		if end < 0 {
			return -1
		}
		name := b[i:end]
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		if end = skipValue(b, i, depth+1); end < 0 {
			return -1
		}
		for _, m := range want {
			if named(name, m.name) {
				m.value = b[i:end]
			}
		}
		i = skipSpace(b, end)
		if i >= len(b) {
			return -1
		}
		if b[i] == '}' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func skipArray(b []byte, i, depth int) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = skipValue(b, i, depth+1); i < 0 {
			return -1
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func skipString(b []byte, i int) int {
	i++
	for {
		i = skipPlain(b, i)
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			if i = skipEscape(b, i); i < 0 {
				return -1
			}
		default:
			return -1 // a control character
		}
	}
}

// skipPlain skips the characters of a JSON string that stand for themselves: all but quotes, backslashes and control
// characters. It checks eight bytes at a time, since most of a body is text: a byte's top bit is set in found if it is one of
// these. Bytes behind the first such one may be marked wrongly; only the first is used.
func skipPlain(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^ones*'"', x^ones*'\\'
		found := ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
		i += 8
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

func skipEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return -1
		}
		for _, c := range b[i+2 : i+6] {
			if !(isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = skipDigits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = skipDigits(b, i)
	}
	return i
}

// skipDigits requires at least one.
func skipDigits(b []byte, i int) int {
	start := i
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func skipLiteral(b []byte, i int, text string) int {
	if end := i + len(text); end <= len(b) && string(b[i:end]) == text {
		return end
	}
	return -1
}

// named compares a member's name, as spelt, with the requested one, which is plain ASCII.
func named(spelt []byte, name string) bool {
	inner := spelt[1 : len(spelt)-1]
	if len(inner) < len(name) {
		return false
	}
	if string(inner) == name {
		return true
	}
	if len(inner) == len(name) {
		return false // an escape makes it longer
	}
	for _, c := range inner {
		if c == '\\' {
			var text string
			return json.Unmarshal(spelt, &text) == nil && text == name
		}
	}
	return false
}
