package native

import (
	"bytes"
	"encoding/json"

	"github.com/godwit-hq/godwit/internal/problem"
)

// eachMember calls f for each member of a JSON object. Values are passed byte for byte as written and share the memory of
// raw.
//
// It checks the syntax first, in one fast pass. Finding the end of a member then only needs skipping strings and counting
// brackets. A token-by-token decoder costs three times as much, and every event in an envelope takes this path.
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

// skipSpace skips insignificant white space. In valid JSON something always follows it here.
func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// valueEnd returns the length of the JSON value at the start of b, which must be valid JSON.
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

// stringEnd returns the length of the JSON string at the start of b.
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

// plainString decodes a JSON string without escapes, in ASCII only.
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
