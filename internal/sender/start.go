package sender

import "bytes"

// A start holds the first bytes of a response.
type start struct {
	head  [16]byte
	n     int
	lined bool // a complete first line was seen
}

func (s *start) add(p []byte) {
	if s.lined {
		return
	}
	s.n += copy(s.head[s.n:], p)
	s.lined = bytes.IndexByte(p, '\n') >= 0
}

// A lineState says how much of a status line has arrived.
type lineState int

const (
	lineNone    lineState = iota // no byte arrived
	linePartial                  // a part arrived
	lineWhole                    // all of it arrived
	lineForeign                  // the bytes are not HTTP
)

// line returns how much of the first status line has arrived, and its code if it is whole.
func (s *start) line() (lineState, int) {
	const form = "HTTP/1.x "
	head := s.head[:s.n]
	for i := range min(len(head), len(form)) {
		if head[i] != form[i] && form[i] != 'x' {
			return lineForeign, 0
		}
	}
	switch {
	case len(head) == 0:
		return lineNone, 0
	case !s.lined:
		return linePartial, 0
	case len(head) < len(form)+3:
		return lineForeign, 0
	}
	status := 0
	for _, c := range head[len(form) : len(form)+3] {
		if c < '0' || c > '9' {
			return lineForeign, 0
		}
		status = status*10 + int(c-'0')
	}
	return lineWhole, status
}

// seen is what is known of an HTTP/1 connection whose request got no response.
type seen struct {
	sent   bool // a byte of the request may have left
	cut    bool // the connection ended or failed
	line   lineState
	status int
}
