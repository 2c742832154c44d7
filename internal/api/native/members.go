package native

import (
	"bytes"
	"encoding/json"

	"github.com/godwit-hq/godwit/internal/problem"
)

// eachMember walks over the members of a JSON object. Values are handed on as they were written, byte for byte; they share
// the memory of raw.
//
// The syntax is checked first, in one fast pass; after that, finding where members end takes no more than skipping strings
// and counting brackets. A decoder that goes token by token costs three times as much, on the path that every enveloped
// event takes.
func eachMember(prefix string, raw []byte, f func(name string, value json.RawMessage) error) error {
	where := "body"
	if prefix != "" {
		where = prefix[:len(prefix)-1] // without the dot
	}
	if !json.Valid(raw) {
		return problem.MalformedJSON.In(where, "is not valid JSON")
	}
	rest := skipSpace(raw)
	if rest[0] != '{' {
		return problem.InvalidRequest.In(where, "must be a JSON object")
	}
	rest = skipSpace(rest[1:])
	for rest[0] != '}' {
		n := valueEnd(rest)
		name, plain := plainString(rest[:n])
		if !plain {
			if err := json.Unmarshal(rest[:n], &name); err != nil {
				return problem.MalformedJSON.In(where, "has a member without a name")
			}
		}
		rest = skipSpace(rest[n:])
		rest = skipSpace(rest[1:]) // the colon
		n = valueEnd(rest)
		if err := f(name, json.RawMessage(rest[:n:n])); err != nil {
			return err
		}
		if rest = skipSpace(rest[n:]); rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	return nil
}

// skipSpace passes over insignificant white space. There is always something after it in valid JSON.
func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// valueEnd is the length of the value that valid JSON begins with.
func valueEnd(b []byte) int {
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		depth := 0
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				i += stringEnd(b[i:]) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	if n := bytes.IndexAny(b, ",}] \t\r\n"); n >= 0 {
		return n
	}
	return len(b)
}

// stringEnd is the length of the string that b begins with.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// plainString decodes a JSON string that holds nothing but itself: no escapes, ASCII alone.
func plainString(b []byte) (string, bool) {
	if len(b) < 2 || b[0] != '"' {
		return "", false
	}
	for _, c := range b[1 : len(b)-1] {
		if c == '\\' || c >= 0x80 {
			return "", false
		}
	}
	return string(b[1 : len(b)-1]), true
}
