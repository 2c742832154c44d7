package jsonschema

import (
	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// A size is the size of a schema with every reference expanded: the rules that can apply to one value of a document.
// Nested references multiply, so a short schema can cause unlimited work.
type size struct {
	rules        int // subschemas
	instructions int // instructions of their regular expressions
}

// recursive is the size of a schema that refers to itself, or can.
var recursive = size{rules: -1}

func measure(s *validator.Schema, seen map[*validator.Schema]size) size {
	if n, known := seen[s]; known {
		return n // recursive while s is being measured
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return recursive // the target of a dynamic reference depends on the path to it, and may be an outer schema
	}
	seen[s] = recursive
	total := size{1, instructions(s.Pattern)}
	if s.Format != nil && s.Format.Name == "regex" {
		total.instructions += regexFormat
	}
	for pattern := range s.PatternProperties {
		total.instructions += instructions(pattern)
	}
	for _, part := range Parts(s) {
		n := measure(part, seen)
		if n == recursive {
			return recursive
		}
		// Beyond the bounds the exact size does not matter.
		total.rules = min(total.rules+n.rules, maxRules+1)
		total.instructions = min(total.instructions+n.instructions, maxInstructions+1)
	}
	seen[s] = total
	return total
}

// Parts lists the direct subschemas of a schema.
func Parts(s *validator.Schema) []*validator.Schema {
	return append(Applied(s), Conditional(s)...)
}

// Applied lists the subschemas that always apply to the value, or to a member or item selected only by its name or place.
func Applied(s *validator.Schema) []*validator.Schema {
	var list []*validator.Schema
	list = append(append(list, s.AllOf...), s.PrefixItems...)
	for _, part := range s.Properties {
		list = append(list, part)
	}
	for _, part := range s.PatternProperties {
		list = append(list, part)
	}
	list = appendSchemas(list, s.AdditionalProperties)
	return appendGiven(list, s.Ref, s.Items2020)
}

// Conditional lists the other subschemas: alternatives, conditions, and those that depend on other subschemas.
func Conditional(s *validator.Schema) []*validator.Schema {
	var list []*validator.Schema
	list = append(append(list, s.AnyOf...), s.OneOf...)
	for _, part := range s.DependentSchemas {
		list = append(list, part)
	}
	for _, part := range s.Dependencies {
		list = appendSchemas(list, part)
	}
	list = appendSchemas(appendSchemas(list, s.Items), s.AdditionalItems)
	return appendGiven(list, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains,
		s.UnevaluatedItems, s.ContentSchema)
}

func appendGiven(list []*validator.Schema, parts ...*validator.Schema) []*validator.Schema {
	for _, part := range parts {
		if part != nil {
			list = append(list, part)
		}
	}
	return list
}

func appendSchemas(list []*validator.Schema, v any) []*validator.Schema {
	switch v := v.(type) {
	case *validator.Schema:
		return appendGiven(list, v)
	case []*validator.Schema:
		return append(list, v...)
	}
	return list
}
