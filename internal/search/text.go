package search

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A needle finds a text in bytes, whatever the case of ASCII letters.
type needle struct {
	text   []byte // in lower case
	anchor int    // index of its rarest byte
	upper  byte   // upper case of that byte; the same byte if it is no letter
}

// newNeedle prepares a text, which must not be empty.
func newNeedle(text string) *needle {
	n := &needle{text: lowerASCII(text)}
	for i, c := range n.text {
		if rank(c) < rank(n.text[n.anchor]) {
			n.anchor = i
		}
	}
	n.upper = n.text[n.anchor]
	if n.upper >= 'a' && n.upper <= 'z' {
		n.upper -= 'a' - 'A'
	}
	return n
}

// common are bytes that payloads have many of, the most frequent last.
const common = `bgpfwymcu0123456789dlhrsni:,oat e"`

// rank is higher for bytes that are more frequent.
func rank(c byte) int { return strings.IndexByte(common, c) }

// index returns where the text begins in b, or -1. It looks for one byte of the text, which the machine does fast, and compares the rest there.
func (n *needle) index(b []byte) int {
	lower := n.text[n.anchor]
	end := len(b) - (len(n.text) - n.anchor) // last place of the anchor
	nextLower, nextUpper := -1, -1
	for at := n.anchor; at <= end; {
		if nextLower < at {
			nextLower = next(b, at, lower)
		}
		if n.upper == lower {
			nextUpper = nextLower
		} else if nextUpper < at {
			nextUpper = next(b, at, n.upper)
		}
		at = min(nextLower, nextUpper)
		if at > end {
			return -1
		}
		if n.equal(b[at-n.anchor:]) {
			return at - n.anchor
		}
		at++
	}
	return -1
}

// next returns the first place of c from at on; beyond the end if there is none.
func next(b []byte, at int, c byte) int {
	if i := bytes.IndexByte(b[at:], c); i >= 0 {
		return at + i
	}
	return len(b)
}

func (n *needle) equal(b []byte) bool {
	for i, c := range n.text {
		d := b[i]
		if d >= 'A' && d <= 'Z' {
			d += 'a' - 'A'
		}
		if c != d {
			return false
		}
	}
	return true
}

// lowerASCII returns the bytes of a text with ASCII letters in lower case; it may not be valid UTF-8.
func lowerASCII(text string) []byte {
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

// around is how many bytes a snippet shows on each side of the text.
const around = 48

// snippet returns the surroundings of a match in one line of valid text.
func snippet(b []byte, at, size int) string {
	start, end := max(0, at-around), min(len(b), at+size+around)
	for start > 0 && start < at && !utf8.RuneStart(b[start]) {
		start++
	}
	for end < len(b) && end > at+size && !utf8.RuneStart(b[end]) {
		end--
	}
	text := strings.ToValidUTF8(string(b[start:end]), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if start > 0 {
		text = "…" + text
	}
	if end < len(b) {
		text += "…"
	}
	return text
}
