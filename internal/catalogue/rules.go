package catalogue

import (
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A size is what a schema amounts to when every reference is written out: the most that can look at one value of an event.
// References that meet again and again multiply, so a short schema can be endless work.
type size struct {
	rules    int // subschemas
	patterns int // instructions of their regular expressions
}

// recursive is the size of a schema that leads back to itself, or can.
var recursive = size{rules: -1}

func measure(s *jsonschema.Schema, seen map[*jsonschema.Schema]size) size {
	if s == nil {
		return size{}
	}
	if n, known := seen[s]; known {
		return n // recursive while it is under way
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return recursive // where it leads depends on the way that led here: it may be back, although it does not look so
	}
	seen[s] = recursive
	total := size{1, instructions(s.Pattern)}
	for pattern := range s.PatternProperties {
		total.patterns += instructions(pattern)
	}
	for _, part := range parts(s) {
		n := measure(part, seen)
		if n == recursive {
			return recursive
		}
		// Beyond the bounds it does not matter by how much.
		total.rules = min(total.rules+n.rules, maxRules+1)
		total.patterns = min(total.patterns+n.patterns, maxPatterns+1)
	}
	seen[s] = total
	return total
}

// instructions is how many steps a regular expression takes for a byte at worst.
func instructions(r jsonschema.Regexp) int {
	if r == nil {
		return 0
	}
	parsed, err := syntax.Parse(r.String(), syntax.Perl)
	if err != nil {
		return 0 // it was compiled before
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// parts are the schemas right under a schema.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{
		s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}
	for _, more := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		list = append(list, more...)
	}
	for _, p := range s.Properties {
		list = append(list, p)
	}
	for _, p := range s.PatternProperties {
		list = append(list, p)
	}
	for _, p := range s.DependentSchemas {
		list = append(list, p)
	}
	for _, p := range s.Dependencies {
		list = appendSchema(list, p)
	}
	for _, p := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		list = appendSchema(list, p)
	}
	return list
}

func appendSchema(list []*jsonschema.Schema, v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		list = append(list, v)
	case []*jsonschema.Schema:
		list = append(list, v...)
	}
	return list
}
