package receiver

import (
	"encoding/json"
	"errors"
)

// members are the requested top-level members of a JSON object, by their exact names. If a name occurs twice, the last counts,
// as in JavaScript.
type members map[string]json.RawMessage

var errNoObject = errors.New("body is not a JSON object")

// parseMembers reads the requested members of a JSON object and skips the rest: parsing a whole payload would cost more than
// verifying it. It does not check what follows the object; use json.Valid for that.
func parseMembers(body []byte, names ...string) (members, error) {
	s := jsonScan{text: body}
	if !s.take('{') {
		return nil, errNoObject
	}
	var m members
	for first := true; ; first = false {
		if s.take('}') {
			return m, nil
		}
		if !first && !s.take(',') {
			return nil, errNoObject
		}
		name, ok := s.value()
		if !ok || name[0] != '"' || !s.take(':') {
			return nil, errNoObject
		}
		value, ok := s.value()
		if !ok {
			return nil, errNoObject
		}
		for _, wanted := range names {
			if sameText(name, wanted) {
				if m == nil {
					m = make(members, len(names))
				}
				m[wanted] = value
			}
		}
	}
}

// sameText compares a quoted name with a plain one. Names with escapes are rare and decoded.
func sameText(quoted []byte, plain string) bool {
	inner := quoted[1 : len(quoted)-1]
	for _, c := range inner {
		if c == '\\' {
			var text string
			return json.Unmarshal(quoted, &text) == nil && text == plain
		}
	}
	return string(inner) == plain
}

// text is a member that is a string; "" if it is another type or missing.
func (m members) text(name string) string {
	raw := m[name]
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c == '\\' || c < ' ' || c > '~' {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				return ""
			}
			return text
		}
	}
	return string(inner)
}

// requireMembers is for schemes whose key is in the body, which must then be valid JSON.
func requireMembers(body []byte, names ...string) (members, error) {
	m, err := parseMembers(body, names...)
	if err != nil || !json.Valid(body) {
		return nil, &DeliveryError{CodePayloadMalformed, "The body is not a JSON object"}
	}
	return m, nil
}

// jsonScan walks over JSON text.
type jsonScan struct {
	text []byte
	at   int
}

func (s *jsonScan) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// take skips a character if it is the next one.
func (s *jsonScan) take(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value skips a value of any kind: strings by their quotes, objects and arrays by their depth, the rest up to the next
// delimiter.
func (s *jsonScan) value() ([]byte, bool) {
	s.space()
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '"':
			if !s.stringEnd() {
				return nil, false
			}
			if depth == 0 {
				return s.text[start:s.at], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.text[start:s.at], s.at > start
			}
			if depth--; depth == 0 {
				s.at++
				return s.text[start:s.at], true
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.text[start:s.at], s.at > start
			}
		}
		s.at++
	}
	return nil, false
}

func (s *jsonScan) stringEnd() bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	return false
}
