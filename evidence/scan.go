package evidence

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// scanner reads an object whose members have a fixed order, as in canonical JSON. It accepts no white space and no member out
// of order. Other deviations show when the result is written again.
type scanner struct {
	line []byte
	at   int
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("at byte %d: %s", s.at+1, fmt.Sprintf(format, args...))
	}
}

func (s *scanner) has(text string) bool {
	return len(s.line)-s.at >= len(text) && string(s.line[s.at:s.at+len(text)]) == text
}

func (s *scanner) expect(c byte, what string) {
	if s.err != nil {
		return
	}
	if s.at >= len(s.line) || s.line[s.at] != c {
		s.fail("%s", what)
		return
	}
	s.at++
}

func (s *scanner) open() { s.expect('{', "an object has to begin here") }

func (s *scanner) close() {
	s.expect('}', "a member that is unknown, repeated or out of order, or no member at all")
}

// end checks that nothing follows.
func (s *scanner) end() error {
	if s.err == nil && s.at != len(s.line) {
		s.fail("there is more than one object")
	}
	return s.err
}

// member reports whether the next member has the name, and moves to its value.
func (s *scanner) member(name string) bool {
	if s.err != nil {
		return false
	}
	start := s.at
	if s.has(",") && s.line[s.at-1] != '{' {
		s.at++
	}
	if s.has(`"`) {
		s.at++
		if s.has(name) {
			s.at += len(name)
			if s.has(`":`) {
				s.at += 2
				return true
			}
		}
	}
	s.at = start
	return false
}

// text reads a member that is a string; "" if it is missing.
func (s *scanner) text(name string) string {
	if !s.member(name) {
		return ""
	}
	return s.string()
}

func (s *scanner) string() string {
	s.expect('"', "a string has to begin here")
	start := s.at
	for ; s.err == nil && s.at < len(s.line); s.at++ {
		switch c := s.line[s.at]; {
		case c == '"':
			s.at++
			return string(s.line[start : s.at-1])
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			s.fail("a control character")
		}
	}
	s.fail("the string does not end")
	return ""
}

// escaped continues a string at its first escape.
func (s *scanner) escaped(start int) string {
	b := append([]byte(nil), s.line[start:s.at]...)
	for s.err == nil && s.at < len(s.line) {
		c := s.line[s.at]
		s.at++
		switch {
		case c == '"':
			return string(b)
		case c == '\\':
			b = s.escape(b)
		default:
			b = append(b, c)
		}
	}
	s.fail("the string does not end")
	return ""
}

// escape reads an escape sequence. Those that RFC 8785 does not write are accepted here and found when written again.
func (s *scanner) escape(b []byte) []byte {
	if s.has("u") && len(s.line)-s.at >= 5 {
		n, err := strconv.ParseUint(string(s.line[s.at+1:s.at+5]), 16, 16)
		if err == nil {
			s.at += 5
			return utf8.AppendRune(b, rune(n))
		}
	}
	if s.at < len(s.line) {
		const letters, meaning = `"\/btnfr`, "\"\\/\b\t\n\f\r"
		for i := range letters {
			if s.line[s.at] == letters[i] {
				s.at++
				return append(b, meaning[i])
			}
		}
	}
	s.fail("an escape that is not one")
	return b
}

// int reads a member that is an integer; 0 if it is missing.
func (s *scanner) int(name string) int64 {
	if !s.member(name) {
		return 0
	}
	start := s.at
	for s.at < len(s.line) && (s.line[s.at] == '-' || (s.line[s.at] >= '0' && s.line[s.at] <= '9')) {
		s.at++
	}
	n, err := strconv.ParseInt(string(s.line[start:s.at]), 10, 64)
	if err != nil {
		s.fail("%s is not a whole number", name)
	}
	return n
}

func (s *scanner) bool(name string) bool {
	if !s.member(name) {
		return false
	}
	switch {
	case s.has("true"):
		s.at += 4
		return true
	case s.has("false"):
		s.at += 5
	default:
		s.fail("%s is neither true nor false", name)
	}
	return false
}

func (s *scanner) time(name string) time.Time {
	text := s.text(name)
	t, err := time.Parse(timeForm, text)
	if err != nil {
		s.fail("%s %q is not a time in UTC with microseconds", name, text)
	}
	return t
}
