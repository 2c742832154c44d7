package httpsig

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// canonical reads structured fields in the form that RFC 9651 serialises, which is the form that signers send. In that form
// the text of a member is the signed text itself, so one pass is enough. It reads only the parts that deliveries need: plain
// strings as component identifiers, the parameters of RFC 9421, section 2.3, and byte sequences as signatures.
//
// canonical never rejects a message. If the input is in any other form, canonical gives up, and the parser for all
// structured fields reads the message again and decides.
type canonical struct {
	text string
	at   int
}

// canonicalSignatures reads both signature fields if they are in canonical form. It reuses the components in known instead
// of parsing them again.
func canonicalSignatures(header http.Header, known []component) ([]received, bool) {
	inputs, values := header[inputField], header[signatureField]
	if len(inputs) != 1 || len(values) != 1 || len(inputs[0]) > maxFieldBytes || len(values[0]) > maxFieldBytes {
		return nil, false
	}
	signatures := make([]received, 0, 1)
	for c := (canonical{text: inputs[0]}); ; {
		if len(signatures) == maxSignatures {
			return nil, false
		}
		var s received
		if !c.signature(&s, known) || slices.ContainsFunc(signatures, func(other received) bool { return other.label == s.label }) {
			return nil, false
		}
		signatures = append(signatures, s)
		if c.at == len(c.text) {
			break
		}
		if !c.skip(", ") {
			return nil, false
		}
	}
	return signatures, canonicalValues(values[0], signatures)
}

// canonicalValues finds the bytes of every signature.
func canonicalValues(text string, signatures []received) bool {
	found := 0
	for c := (canonical{text: text}); ; {
		label, ok := c.key()
		if !ok || !c.skip("=:") {
			return false
		}
		end := strings.IndexByte(c.text[c.at:], ':')
		if end < 0 || strings.ContainsAny(c.text[c.at:c.at+end], "\r\n") { // the decoder would skip line breaks
			return false
		}
		value, err := base64.StdEncoding.DecodeString(c.text[c.at : c.at+end])
		if err != nil {
			return false
		}
		c.at += end + 1
		if i := slices.IndexFunc(signatures, func(s received) bool { return s.label == label }); i >= 0 {
			if signatures[i].signature != nil {
				return false
			}
			signatures[i].signature = value
			found++
		}
		if c.at == len(c.text) {
			return found == len(signatures)
		}
		if !c.skip(", ") {
			return false
		}
	}
}

// signature reads a member of Signature-Input.
func (c *canonical) signature(s *received, known []component) bool {
	var ok bool
	if s.label, ok = c.key(); !ok || !c.skip("=") {
		return false
	}
	start := c.at
	if s.components, ok = c.components(known); !ok {
		return false
	}
	for c.skip(";") {
		if !c.param(s) {
			return false
		}
	}
	s.params, s.parsed = c.text[start:c.at], true
	return true
}

// components reads a list of plain strings.
func (c *canonical) components(known []component) ([]component, bool) {
	if !c.skip("(") {
		return nil, false
	}
	list := make([]component, 0, len(known)+2)
	for !c.skip(")") {
		if len(list) == maxComponents || len(list) > 0 && !c.skip(" ") {
			return nil, false
		}
		start := c.at
		name, ok := c.string()
		if !ok {
			return nil, false
		}
		next, ok := plainComponent(name, c.text[start:c.at], known)
		if !ok {
			return nil, false
		}
		list = append(list, next)
	}
	return list, checkSet(list) == nil
}

func plainComponent(name, id string, known []component) (component, bool) {
	for i := range known {
		if known[i].id == id {
			return known[i], true
		}
	}
	made, err := newComponent(identity{name: name}, id)
	return made, err == nil
}

// param reads one parameter of a signature. It accepts only parameters that RFC 9421 defines, each at most once.
func (c *canonical) param(s *received) bool {
	name, ok := c.key()
	if !ok || !c.skip("=") {
		return false
	}
	switch name {
	case "created":
		ok = !s.hasCreated
		s.hasCreated = true
		return ok && c.time(&s.created)
	case "expires":
		ok = !s.hasExpires
		s.hasExpires = true
		return ok && c.time(&s.expires)
	case "alg":
		ok = !s.hasAlg
		s.hasAlg = true
		return ok && c.stringInto(&s.alg)
	case "keyid":
		return s.keyID == "" && c.stringInto(&s.keyID)
	case "nonce":
		return s.nonce == "" && c.stringInto(&s.nonce)
	case "tag":
		return s.tag == "" && c.stringInto(&s.tag)
	}
	return false
}

func (c *canonical) skip(text string) bool {
	if !strings.HasPrefix(c.text[c.at:], text) {
		return false
	}
	c.at += len(text)
	return true
}

// key reads a key of a dictionary or parameter.
func (c *canonical) key() (string, bool) {
	start := c.at
	for ; c.at < len(c.text); c.at++ {
		b := c.text[c.at]
		letter := 'a' <= b && b <= 'z' || b == '*'
		if !letter && (c.at == start || (b < '0' || b > '9') && b != '_' && b != '-' && b != '.') {
			break
		}
	}
	return c.text[start:c.at], c.at > start
}

// string reads a string in which nothing is escaped.
func (c *canonical) string() (string, bool) {
	if !c.skip(`"`) {
		return "", false
	}
	for start := c.at; c.at < len(c.text); c.at++ {
		switch b := c.text[c.at]; {
		case b == '"':
			c.at++
			return c.text[start : c.at-1], true
		case b < ' ' || b > '~' || b == '\\':
			return "", false
		}
	}
	return "", false
}

// stringInto reads a non-empty string. An empty string is rejected because the caller could not tell it from a missing one.
func (c *canonical) stringInto(into *string) (ok bool) {
	*into, ok = c.string()
	return ok && *into != ""
}

// time reads a positive integer without leading zeros.
func (c *canonical) time(into *time.Time) bool {
	start := c.at
	for c.at < len(c.text) && '0' <= c.text[c.at] && c.text[c.at] <= '9' {
		c.at++
	}
	digits := c.text[start:c.at]
	if digits == "" || len(digits) > 15 || digits[0] == '0' {
		return false
	}
	seconds, err := strconv.ParseInt(digits, 10, 64)
	*into = time.Unix(seconds, 0)
	return err == nil
}
