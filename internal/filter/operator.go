package filter

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Operators are the operators of filters.
var Operators = []string{
	"$eq", "$neq", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$startsWith", "$endsWith", "$contains", "$exist", "$regex", "$or", "$and", "$not",
}

// operator compiles an operator of an object.
func (c *compiler) operator(place, name string, operand any, s scope, depth int) (node, *godwit.FieldError) {
	switch name {
	case "$or", "$and":
		return c.list(place, name, operand, s, depth)
	case "$not":
		part, err := c.part(place, operand, s, depth)
		if err != nil {
			return nil, err
		}
		return &not{part, place}, nil
	}
	if !slices.Contains(Operators, name) {
		return nil, wrong(place, "is no operator; the operators are %s", strings.Join(Operators, ", "))
	}
	if s == ofEvent {
		return nil, wrong(place, "must stand below a member, as in {\"body\": {\"amount\": {%q: …}}}", name)
	}
	switch name {
	case "$eq", "$neq":
		n, err := c.condition(place, "wants "+show(operand, true), operand, func(v any) bool { return equal(v, operand) })
		return negate(n, name == "$neq", "wants another value than "+show(operand, true)), err
	case "$gt", "$gte", "$lt", "$lte":
		return c.order(place, name, operand)
	case "$in", "$nin":
		return c.in(place, name, operand)
	case "$startsWith", "$endsWith", "$contains":
		return c.text(place, name, operand)
	case "$exist":
		want, ok := operand.(bool)
		if !ok {
			return nil, wrong(place, "must be true or false")
		}
		_, err := c.condition(place, "", operand, nil)
		return &existence{place, want}, err
	}
	return c.regex(place, operand)
}

// negate makes a condition pass what it did not pass.
func negate(n *condition, negated bool, want string) *condition {
	if n != nil && negated {
		n.negated, n.want = true, want
	}
	return n
}

// list compiles $or and $and.
func (c *compiler) list(place, name string, operand any, s scope, depth int) (node, *godwit.FieldError) {
	list, ok := operand.([]any)
	if !ok || len(list) == 0 {
		return nil, wrong(place, "must be a list of filters, with at least one")
	}
	var parts []node
	for i, element := range list {
		part, err := c.part(fmt.Sprintf("%s[%d]", place, i), element, s, depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if name == "$and" {
		return all(parts), nil
	}
	return &either{parts, place}, nil
}

// part compiles a filter within $or, $and and $not, which looks at the same value as these.
func (c *compiler) part(place string, operand any, s scope, depth int) (node, *godwit.FieldError) {
	if _, ok := operand.(map[string]any); !ok && s != ofValue {
		return nil, wrong(place, "must be an object")
	}
	return c.value(place, operand, s, depth+1)
}

func (c *compiler) order(place, name string, operand any) (node, *godwit.FieldError) {
	if _, ok := compare(operand, operand); !ok {
		return nil, wrong(place, "must be a number or a string")
	}
	passes := map[string]func(int) bool{
		"$gt": func(o int) bool { return o > 0 }, "$gte": func(o int) bool { return o >= 0 },
		"$lt": func(o int) bool { return o < 0 }, "$lte": func(o int) bool { return o <= 0 },
	}[name]
	sign := map[string]string{"$gt": "more than", "$gte": "at least", "$lt": "less than", "$lte": "at most"}[name]
	return c.condition(place, "wants "+sign+" "+show(operand, true), operand, func(v any) bool {
		order, ok := compare(v, operand)
		return ok && passes(order)
	})
}

// in compiles $in and $nin: one of a list of values, or a text that contains another.
func (c *compiler) in(place, name string, operand any) (node, *godwit.FieldError) {
	var test func(any) bool
	want := "one of " + show(operand, true)
	switch operand := operand.(type) {
	case []any:
		test = func(v any) bool { return slices.ContainsFunc(operand, func(o any) bool { return equal(v, o) }) }
	case string:
		test = func(v any) bool { text, ok := v.(string); return ok && strings.Contains(text, operand) }
		want = "a text that contains " + show(operand, true)
	default:
		return nil, wrong(place, "must be a list of values, or a text that is to be contained")
	}
	n, err := c.condition(place, "wants "+want, operand, test)
	return negate(n, name == "$nin", "does not want "+want), err
}

// text compiles operators on texts. Their operand is a text, or a list of which one must fit.
func (c *compiler) text(place, name string, operand any) (node, *godwit.FieldError) {
	list, ok := operand.([]any)
	if !ok {
		list = []any{operand}
	}
	texts := make([]string, len(list))
	for i := range list {
		if texts[i], ok = list[i].(string); !ok {
			return nil, wrong(place, "must be a text or a list of texts")
		}
	}
	if len(texts) == 0 {
		return nil, wrong(place, "must list at least one text")
	}
	fits := map[string]func(string, string) bool{"$startsWith": strings.HasPrefix, "$endsWith": strings.HasSuffix, "$contains": strings.Contains}[name]
	verb := map[string]string{"$startsWith": "starts with ", "$endsWith": "ends with ", "$contains": "contains "}[name]
	return c.condition(place, "wants a text that "+verb+show(operand, true), operand, func(v any) bool {
		value, ok := v.(string)
		return ok && slices.ContainsFunc(texts, func(text string) bool { return fits(value, text) })
	})
}

func (c *compiler) regex(place string, operand any) (node, *godwit.FieldError) {
	source, ok := operand.(string)
	if !ok || len(source) > MaxRegex {
		return nil, wrong(place, "must be a regular expression of at most %d bytes", MaxRegex)
	}
	if c.regexes++; c.regexes > MaxRegexes {
		return nil, wrong(place, "is one expression too many: a filter has at most %d", MaxRegexes)
	}
	program, err := instructions(source)
	if err != nil {
		return nil, wrong(place, "must be a regular expression of RE2: %v", err)
	}
	if program > MaxProgram {
		return nil, wrong(place, "is too large an expression: its repetitions make %d steps, and %d are allowed", program, MaxProgram)
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, wrong(place, "must be a regular expression of RE2: %v", err)
	}
	n, wrong := c.condition(place, "wants a text that fits "+show(operand, true), operand, func(v any) bool {
		text, ok := v.(string)
		return ok && compiled.MatchString(text)
	})
	if n != nil {
		n.program = program
	}
	return n, wrong
}

// instructions returns the size of a compiled expression. A short one with repetitions of repetitions can be very large.
func instructions(source string) (int, error) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}
