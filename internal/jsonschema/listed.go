package jsonschema

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// hasten replaces the keywords enum, const and uniqueItems by extensions that look values up. The validator compares a value
// with each listed one in turn, numbers as exact fractions, which takes microseconds each: a few thousand listed numbers and an
// event of a few kilobytes would take many seconds, however few rules the schema has.
func hasten(s *validator.Schema, seen map[*validator.Schema]bool) {
	if seen[s] {
		return
	}
	seen[s] = true
	if s.Enum != nil {
		values := s.Enum.Values
		s.Extensions = append(s.Extensions, newListed(values, func(got any) validator.ErrorKind { return &kind.Enum{Got: got, Want: values} }))
		s.Enum = nil
	}
	if s.Const != nil {
		value := *s.Const
		s.Extensions = append(s.Extensions, newListed([]any{value}, func(got any) validator.ErrorKind { return &kind.Const{Got: got, Want: value} }))
		s.Const = nil
	}
	if s.UniqueItems {
		s.Extensions, s.UniqueItems = append(s.Extensions, unique{}), false
	}
	for _, part := range Parts(s) {
		hasten(part, seen)
	}
}

// listed allows the values of an enum or a const.
type listed struct {
	values    []any
	known     map[string]bool
	composite bool // some are objects or lists
	fault     func(got any) validator.ErrorKind
}

func newListed(values []any, fault func(got any) validator.ErrorKind) *listed {
	l := &listed{values: values, known: make(map[string]bool, len(values)), fault: fault}
	for _, v := range values {
		l.known[identity(v)] = true
		l.composite = l.composite || isComposite(v)
	}
	return l
}

// Validate implements validator.SchemaExt.
func (l *listed) Validate(c *validator.ValidatorContext, v any) {
	if isComposite(v) && !l.composite || !l.known[identity(v)] {
		c.AddError(l.fault(v))
	}
}

// Allowed lists the values that the keywords enum and const of a compiled schema name.
func Allowed(s *validator.Schema) (values []any) {
	for _, ext := range s.Extensions {
		if l, ok := ext.(*listed); ok {
			values = append(values, l.values...)
		}
	}
	return values
}

// unique refuses lists that hold an item twice.
type unique struct{}

// Validate implements validator.SchemaExt.
func (unique) Validate(c *validator.ValidatorContext, v any) {
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		return
	}
	places := make(map[string]int, len(list))
	for i, item := range list {
		id := identity(item)
		if before, twice := places[id]; twice {
			c.AddError(&kind.UniqueItems{Duplicates: [2]int{before, i}})
			return
		}
		places[id] = i
	}
}

func isComposite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// identity is a text that two JSON values share exactly if they are equal: numbers by their value, objects in any order.
func identity(v any) string {
	if text, ok := v.(string); ok {
		return "s" + text
	}
	return string(appendIdentity(nil, v))
}

func appendIdentity(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'z')
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendText(b, v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendIdentity(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = append(appendIdentity(appendText(b, name), v[name]), ',')
		}
		return append(b, '}')
	}
	return append(b, number(fmt.Sprint(v))...)
}

// appendText puts the length first, so that no text within a list can be taken for another value.
func appendText(b []byte, text string) []byte {
	b = strconv.AppendInt(append(b, 's'), int64(len(text)), 10)
	return append(append(b, ':'), text...)
}

// number writes a number so that equal ones have the same text. Most are written so already.
func number(text string) string {
	plain := text != "" && text[0] >= '1' && text[0] <= '9'
	for i := 1; plain && i < len(text); i++ {
		plain = text[i] >= '0' && text[i] <= '9'
	}
	if plain {
		return text
	}
	if r, ok := new(big.Rat).SetString(text); ok {
		return r.RatString()
	}
	return text
}
