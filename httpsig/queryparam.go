package httpsig

import (
	"strings"
	"unicode/utf8"
)

// appendQueryParam appends the value of the named query parameter. It decodes the value and encodes it again, so that all
// spellings give one value (RFC 9421, section 2.2.8).
func (u *targetURI) appendQueryParam(dst []byte, c *component) ([]byte, error) {
	found := false
	for query := u.query; query != ""; {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if pair == "" || string(appendFormEncoded(nil, formDecode(name))) != c.value {
			continue
		}
		if found {
			return nil, malformed(c.id, "occurs more than once")
		}
		found = true
		decoded := formDecode(value)
		if !utf8.ValidString(decoded) {
			return nil, malformed(c.id, "value is not UTF-8")
		}
		dst = appendFormEncoded(dst, decoded)
	}
	if !found {
		return nil, missingComponent(c.id, "not in the query")
	}
	return dst, nil
}

// formDecode decodes a form value as the URL standard requires: a plus is a space, and a percent sign without two digits
// stands for itself. net/url rejects the latter.
func formDecode(s string) string {
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			decoded = append(decoded, ' ')
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			decoded = append(decoded, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			decoded = append(decoded, s[i])
		}
	}
	return string(decoded)
}

// appendFormEncoded percent-encodes all characters except those that the URL standard leaves unescaped in forms. A space
// becomes %20.
func appendFormEncoded(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		switch b := s[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("*-._", b) >= 0:
			dst = append(dst, b)
		default:
			dst = append(dst, '%', digits[b>>4], digits[b&15])
		}
	}
	return dst
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

func unhex(b byte) byte {
	if b <= '9' {
		return b - '0'
	}
	return b&^0x20 - 'A' + 10
}
