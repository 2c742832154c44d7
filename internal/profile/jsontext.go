package profile

import (
	"time"
	"unicode/utf8"
)

// The envelopes are written by hand: their bytes are signed and sent again days later, perhaps by another version of this
// program, so they must not depend on a library. See also the golden files.

// appendMember adds a text member to an object; an empty text adds nothing.
func appendMember(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(appendName(b, name), text)
}

// appendRaw adds a member whose value is already JSON.
func appendRaw(b []byte, name string, value []byte) []byte {
	return append(appendName(b, name), value...)
}

// appendTime adds a time in UTC. Layouts hold nothing that needs escaping.
func appendTime(b []byte, name, layout string, t time.Time) []byte {
	b = append(appendName(b, name), '"')
	return append(t.UTC().AppendFormat(b, layout), '"')
}

// appendName begins a member. Names are plain ASCII.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

const hexDigits = "0123456789abcdef"

// appendText adds a JSON string. Invalid UTF-8 becomes the replacement character.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
