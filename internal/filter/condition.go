package filter

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// condition tests one value. It passes an array if one element passes.
type condition struct {
	place, want string
	test        func(value any) bool
	negated     bool // passes what test does not, and what does not exist
	operands    int  // values that each value is compared with
	program     int  // instructions of its regular expression
}

func (n *condition) match(r *run, value any, exists bool) bool {
	return (exists && n.anyOf(r, value)) != n.negated
}

func (n *condition) why(_ *run, value any, exists bool) Miss {
	return Miss{Place: n.place, Want: n.want, Got: show(value, exists)}
}

// anyOf reports whether a value, or an element of it, passes.
func (n *condition) anyOf(r *run, value any) bool {
	if !r.spend(n.steps(value)) {
		return false
	}
	if n.test(value) {
		return true
	}
	list, ok := value.([]any)
	return ok && slices.ContainsFunc(list, func(element any) bool { return n.anyOf(r, element) })
}

// existence passes a value that exists, or one that does not.
type existence struct {
	place string
	want  bool
}

func (n *existence) match(_ *run, _ any, exists bool) bool { return exists == n.want }

func (n *existence) why(_ *run, value any, exists bool) Miss {
	want := "wants the member to exist"
	if !n.want {
		want = "wants the member not to exist"
	}
	return Miss{Place: n.place, Want: want, Got: show(value, exists)}
}

// equal compares JSON values. Numbers are equal if their values are.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && compareNumbers(a, b) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case json.Number, []any, map[string]any:
		return false
	}
	return a == b // strings, booleans and null
}

// compare orders two numbers or two strings. It reports false for other values.
func compare(a, b any) (int, bool) {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return compareNumbers(a, b), ok
	case string:
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	}
	return 0, false
}

// compareNumbers is exact for integers of 64 bits; other numbers are rounded to float64.
func compareNumbers(a, b json.Number) int {
	x, errX := strconv.ParseInt(string(a), 10, 64)
	y, errY := strconv.ParseInt(string(b), 10, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	f, _ := strconv.ParseFloat(string(a), 64) // a number out of range is infinite
	g, _ := strconv.ParseFloat(string(b), 64)
	return cmp.Compare(f, g)
}
