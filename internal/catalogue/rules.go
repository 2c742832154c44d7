package catalogue

import "github.com/santhosh-tekuri/jsonschema/v6"

const recursive = -1

// rules counts the subschemas that a schema amounts to when every reference is written out: the most that can look at one
// value of an event. References that meet again and again multiply, so a short schema can be endless work. It is recursive
// when a schema leads back to itself.
func rules(s *jsonschema.Schema, seen map[*jsonschema.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, known := seen[s]; known {
		return n // recursive while it is under way
	}
	seen[s] = recursive
	total := 1
	for _, part := range parts(s) {
		n := rules(part, seen)
		if n == recursive {
			return recursive
		}
		if total += n; total > maxRules {
			total = maxRules + 1
			break
		}
	}
	seen[s] = total
	return total
}

// parts are the schemas right under a schema.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
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
