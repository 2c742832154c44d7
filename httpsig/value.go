package httpsig

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
)

// appendLines appends a signature base line for each component (RFC 9421, section
// 2.5): the identifier, a colon, a space, the value and a newline.
func (m *message) appendLines(dst []byte, components []component) ([]byte, error) {
	for i := range components {
		c := &components[i]
		dst = append(append(dst, c.id...), ": "...)
		start := len(dst)
		var err error
		if dst, err = m.appendValue(dst, c); err != nil {
			return nil, err
		}
		if !validValue(dst[start:], c.field == "") {
			return nil, malformed(c.id, "value has characters that cannot be signed")
		}
		dst = append(dst, '\n')
	}
	return dst, nil
}

// validValue reports whether a value may appear in a base. Line breaks, other control characters and bytes outside ASCII are
// rejected: with them a sender could forge lines.
func validValue(value []byte, isDerived bool) bool {
	for _, b := range value {
		if b >= 0x7f || b < ' ' && (isDerived || b != '\t') {
			return false
		}
	}
	return !isDerived || len(value) == 0 || value[0] != ' ' && value[len(value)-1] != ' '
}

func (m *message) appendValue(dst []byte, c *component) ([]byte, error) {
	if c.req {
		if m.request == nil {
			return nil, malformed(c.id, "parameter req belongs to responses")
		}
		m = m.request
	}
	if c.field != "" {
		return m.appendField(dst, c)
	}
	return m.appendDerived(dst, c)
}

func (m *message) appendDerived(dst []byte, c *component) ([]byte, error) {
	if (c.name == "@status") != (m.status != 0) {
		return nil, malformed(c.id, "component does not belong to this kind of message")
	}
	switch c.name {
	case "@status":
		return strconv.AppendInt(dst, int64(m.status), 10), nil
	case "@method":
		return append(dst, m.method...), nil
	case "@scheme":
		return append(dst, m.uri.scheme...), nil
	case "@request-target":
		if m.requestTarget != "" {
			return append(dst, m.requestTarget...), nil
		}
		return m.uri.appendPathAndQuery(dst), nil
	}
	if m.uri.host == "" || m.uri.path == "" && c.name != "@authority" {
		return nil, missingComponent(c.id, "request has no such target")
	}
	switch c.name {
	case "@authority":
		return m.uri.appendAuthority(dst), nil
	case "@target-uri":
		return m.uri.append(dst), nil
	case "@path":
		return append(dst, m.uri.path...), nil
	case "@query":
		return append(append(dst, '?'), m.uri.query...), nil
	}
	return m.uri.appendQueryParam(dst, c)
}

func (m *message) appendField(dst []byte, c *component) ([]byte, error) {
	values := m.fieldValues(c)
	switch {
	case len(values) == 0:
		return nil, missingComponent(c.id, "not in the message")
	case c.bs:
		for i, value := range values {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(dst, ':')
			dst = base64.StdEncoding.AppendEncode(dst, []byte(trim(value)))
			dst = append(dst, ':')
		}
		return dst, nil
	case c.hasKey, c.sf:
		text, err := structured(c, values)
		return append(dst, text...), err
	}
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, trim(value)...)
	}
	return dst, nil
}

func trim(value string) string { return strings.Trim(value, " \t") }

// structuredTypes lists the structured fields whose type this package knows. The parameter "sf" on any other field is an
// error (RFC 9421, section 2.1.1).
var structuredTypes = map[string]func([]string) (httpsfv.StructuredFieldValue, error){
	"content-digest":  dictionary,
	"repr-digest":     dictionary,
	"signature":       dictionary,
	"signature-input": dictionary,
	"idempotency-key": item,
}

func dictionary(values []string) (httpsfv.StructuredFieldValue, error) {
	return httpsfv.UnmarshalDictionary(values)
}

func item(values []string) (httpsfv.StructuredFieldValue, error) {
	return httpsfv.UnmarshalItem(values)
}

// structured serialises a whole structured field, or one member of a dictionary.
func structured(c *component, values []string) (string, error) {
	parse := structuredTypes[c.name]
	if c.hasKey {
		parse = dictionary // a "key" parameter implies that the field is a dictionary
	}
	if parse == nil {
		return "", malformed(c.id, "type of the structured field is not known")
	}
	value, err := parse(values)
	if err != nil {
		return "", &Error{Reason: ReasonMalformed, Component: c.id, cause: err}
	}
	if c.hasKey {
		member, ok := value.(*httpsfv.Dictionary).Get(c.value)
		if !ok {
			return "", missingComponent(c.id, "not in the field")
		}
		value = member
	}
	text, err := httpsfv.Marshal(value)
	if err != nil {
		return "", &Error{Reason: ReasonMalformed, Component: c.id, cause: err}
	}
	return text, nil
}
