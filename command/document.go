package command

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// maxNesting limits how deep objects and lists may be nested.
const maxNesting = 32

// A fault is an error in a JSON text, and its place. It does not repeat values, because they may be secrets.
type fault struct {
	pointer string // RFC 6901; empty: the text as a whole
	detail  string
}

func (f *fault) Error() string {
	if f.pointer == "" {
		return f.detail
	}
	return f.pointer + " " + f.detail
}

// document reads JSON that has only one reading: valid UTF-8, no duplicate member, no unpaired surrogate, no number that
// would be rounded. It returns strings and names in normalisation form C and numbers in the form of RFC 8785. Two texts
// yield equal documents exactly if they have the same canonical form (IDS-KEY-4).
//
// The error is a *fault.
func document(text []byte) (any, error) {
	v, _, err := documentParts(text)
	return v, err
}

// documentParts also returns the text of each member of the outermost object.
func documentParts(text []byte) (any, map[string]json.RawMessage, error) {
	switch {
	case !utf8.Valid(text):
		return nil, nil, &fault{detail: "is not UTF-8"}
	case !json.Valid(text):
		return nil, nil, &fault{detail: "is not valid JSON"}
	}
	d := decoder{text: text, parts: map[string]json.RawMessage{}}
	v, err := d.value()
	if err != nil {
		return nil, nil, err
	}
	return v, d.parts, nil
}

// A decoder reads a text that is known to be valid JSON.
type decoder struct {
	text  []byte
	at    int
	path  []string // current place, for faults
	parts map[string]json.RawMessage
}

func (d *decoder) fault(detail string) error {
	return &fault{pointer: jsonschema.Pointer(d.path...), detail: detail}
}

func (d *decoder) value() (any, error) {
	switch d.next() {
	case '{':
		return d.object()
	case '[':
		return d.list()
	case '"':
		return d.string()
	case 't':
		d.at += len("true")
		return true, nil
	case 'f':
		d.at += len("false")
		return false, nil
	case 'n':
		d.at += len("null")
		return nil, nil
	}
	return d.number()
}

// next skips white space and returns the byte at the new position.
func (d *decoder) next() byte {
	for {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\r', '\n':
			d.at++
		default:
			return c
		}
	}
}

func (d *decoder) object() (any, error) {
	if len(d.path) == maxNesting {
		return nil, d.fault("is nested deeper than " + strconv.Itoa(maxNesting) + " levels")
	}
	object := map[string]any{}
	d.at++ // {
	for d.next() != '}' {
		if d.text[d.at] == ',' {
			d.at++
			d.next()
		}
		d.path = append(d.path, "")
		name, err := d.string()
		if err != nil {
			return nil, err
		}
		d.path[len(d.path)-1] = name
		if _, twice := object[name]; twice {
			return nil, d.fault("is given twice (names are compared in Unicode normalisation form C)")
		}
		d.next()
		d.at++ // :
		d.next()
		begin := d.at
		if object[name], err = d.value(); err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		if len(d.path) == 0 {
			d.parts[name] = d.text[begin:d.at:d.at]
		}
	}
	d.at++
	return object, nil
}

func (d *decoder) list() (any, error) {
	if len(d.path) == maxNesting {
		return nil, d.fault("is nested deeper than " + strconv.Itoa(maxNesting) + " levels")
	}
	list := []any{}
	d.at++ // [
	for d.next() != ']' {
		if d.text[d.at] == ',' {
			d.at++
		}
		d.path = append(d.path, strconv.Itoa(len(list)))
		item, err := d.value()
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		list = append(list, item)
	}
	d.at++
	return list, nil
}

func (d *decoder) string() (string, error) {
	begin := d.at
	escaped := false
	for d.at++; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			escaped = true
			d.at++
		}
	}
	d.at++
	raw := d.text[begin:d.at]
	text := string(raw[1 : len(raw)-1])
	if escaped {
		if halfCharacter(raw) {
			return "", d.fault("holds half a character: a surrogate that is not one of a pair")
		}
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", d.fault("is not valid JSON")
		}
	}
	return norm.NFC.String(text), nil
}

// halfCharacter reports whether a string holds an escaped surrogate without its other half. Decoders replace it with
// U+FFFD, so that different strings would become equal.
func halfCharacter(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		switch unit := codeUnit(raw[i+1:]); {
		case unit < 0xD800 || unit > 0xDFFF:
		case unit > 0xDBFF || i+10 >= len(raw) || raw[i+5] != '\\' || raw[i+6] != 'u':
			return true
		default:
			if low := codeUnit(raw[i+7:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

// codeUnit reads the four digits of an escape.
func codeUnit(raw []byte) uint64 {
	n, err := strconv.ParseUint(string(raw[:4]), 16, 16)
	if err != nil {
		return 0 // not in valid JSON
	}
	return n
}

func (d *decoder) number() (any, error) {
	begin := d.at
	for d.at < len(d.text) && strings.IndexByte("+-.0123456789eE", d.text[d.at]) >= 0 {
		d.at++
	}
	n, exact := exactNumber(string(d.text[begin:d.at]))
	if !exact {
		return nil, d.fault("is a number that would be rounded or is out of range (RFC 8785 numbers are IEEE 754 doubles): send it as a string")
	}
	return n, nil
}

// documentOf converts a Go value to the document that its JSON encoding would give. The error is a *fault.
func documentOf(v any, path ...string) (any, error) {
	wrong := func(detail string) error { return &fault{pointer: jsonschema.Pointer(path...), detail: detail} }
	if len(path) > maxNesting {
		return nil, wrong("is nested deeper than " + strconv.Itoa(maxNesting) + " levels")
	}
	var number string
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, wrong("is not UTF-8")
		}
		return norm.NFC.String(v), nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			d, err := documentOf(member, append(path[:len(path):len(path)], name)...)
			if err != nil {
				return nil, err
			}
			normal := norm.NFC.String(name)
			if _, twice := object[normal]; twice || !utf8.ValidString(name) {
				return nil, wrong("has a member twice, or one whose name is not UTF-8")
			}
			object[normal] = d
		}
		return object, nil
	case []any:
		return documentList(v, path)
	case []string:
		return documentList(v, path)
	case int:
		number = strconv.Itoa(v)
	case int64:
		number = strconv.FormatInt(v, 10)
	case float64:
		number = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return nil, wrong("has a type that is not one of JSON")
	}
	n, exact := exactNumber(number)
	if !exact {
		return nil, wrong("is a number that would be rounded or is out of range")
	}
	return n, nil
}

func documentList[T any](items []T, path []string) (any, error) {
	list := make([]any, len(items))
	for i, item := range items {
		d, err := documentOf(item, append(path[:len(path):len(path)], strconv.Itoa(i))...)
		if err != nil {
			return nil, err
		}
		list[i] = d
	}
	return list, nil
}
