package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Limits of a filter.
const (
	MaxSize       = 16 << 10 // bytes of JSON
	MaxDepth      = 16       // objects and lists within each other
	MaxConditions = 100
	MaxValues     = 1000 // in the lists and objects that values are compared with, in all
	MaxRegex      = 512  // bytes of an expression
	MaxRegexes    = 10
	MaxProgram    = 1000 // instructions of a compiled expression
)

// A scope says what the members of an object in a filter are.
type scope int

const (
	ofEvent   scope = iota // the members of an event
	ofHeaders              // names of header fields
	ofValue                // members of the value
)

// A compiler compiles one filter and counts what it has.
type compiler struct{ conditions, values, regexes int }

// Compile compiles a filter. The error names the place: body.amount.$gt.
func Compile(source godwit.ContentFilter) (*Filter, *godwit.FieldError) {
	size := 0
	top := make(map[string]any, len(source))
	for name, raw := range source {
		if size += len(name) + len(raw); size > MaxSize {
			return nil, wrong("", "must have at most %d bytes", MaxSize)
		}
		value, ok := parse(raw)
		if !ok || !utf8.ValidString(name) || !utf8.Valid(raw) {
			return nil, wrong(join("", name), "must be JSON in UTF-8")
		}
		top[name] = value
	}
	root, err := new(compiler).object("", top, ofEvent, 1)
	if err != nil {
		return nil, err
	}
	return &Filter{root: root}, nil
}

// object compiles an object: its operators, and its conditions on members.
func (c *compiler) object(place string, o map[string]any, s scope, depth int) (node, *godwit.FieldError) {
	if depth > MaxDepth {
		return nil, wrong(place, "is nested more than %d levels deep", MaxDepth)
	}
	var parts all
	var inner object
	for _, name := range slices.Sorted(maps.Keys(o)) {
		at, given := join(place, name), o[name]
		if strings.HasPrefix(name, "$") {
			part, err := c.operator(at, name, given, s, depth)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
			continue
		}
		next := ofValue
		switch {
		case s == ofEvent && !slices.Contains(members, name):
			return nil, wrong(at, "must be one of %s, $or, $and and $not", strings.Join(members, ", "))
		case s == ofEvent && name == memberHeaders:
			next = ofHeaders
		case s == ofHeaders:
			name = strings.ToLower(name)
		}
		part, err := c.value(at, given, next, depth+1)
		if err != nil {
			return nil, err
		}
		inner = append(inner, member{name, part})
	}
	if len(inner) > 0 {
		parts = append(parts, inner)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

// value compiles what a filter says of a value: an object with conditions, a list whose values an array must all hold, or a value.
func (c *compiler) value(place string, v any, s scope, depth int) (node, *godwit.FieldError) {
	switch v := v.(type) {
	case map[string]any:
		return c.object(place, v, s, depth)
	case []any:
		if len(v) == 0 {
			return nil, wrong(place, "must list at least one value; {\"$eq\": []} is an empty array")
		}
		var parts all
		for i, element := range v {
			part, err := c.condition(fmt.Sprintf("%s[%d]", place, i), "wants an array with "+show(element, true), element, func(value any) bool {
				list, ok := value.([]any)
				return ok && slices.ContainsFunc(list, func(held any) bool { return equal(held, element) })
			})
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return parts, nil
	}
	return c.condition(place, "wants "+show(v, true), v, func(value any) bool { return equal(value, v) })
}

// condition counts a condition and the values that it compares with.
func (c *compiler) condition(place, want string, operand any, test func(any) bool) (*condition, *godwit.FieldError) {
	if c.conditions++; c.conditions > MaxConditions {
		return nil, wrong(place, "is one condition too many: a filter has at most %d", MaxConditions)
	}
	operands := count(operand, 0)
	if c.values += operands; c.values > MaxValues {
		return nil, wrong(place, "lists too many values: a filter has at most %d", MaxValues)
	}
	return &condition{place: place, want: want, test: test, operands: operands}, nil
}

// count returns how many values a value is made of.
func count(v any, depth int) int {
	n := 1
	if depth > MaxDepth {
		return MaxValues + 1
	}
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			n += count(element, depth+1)
		}
	case map[string]any:
		for _, element := range v {
			n += count(element, depth+1)
		}
	}
	return n
}

// longestName is how many bytes of a name a place shows.
const longestName = 64

// join adds a name to a place.
func join(place, name string) string {
	name = strings.ToValidUTF8(name, "?")
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "") + "…"
	}
	if place == "" {
		return name
	}
	return place + "." + name
}

func wrong(place, format string, args ...any) *godwit.FieldError {
	return &godwit.FieldError{Field: place, Detail: fmt.Sprintf(format, args...)}
}
