package typedoc

import "time"

// Members of a schema that hold schemas by name, and those that hold values.
var (
	schemasByName = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}
	values        = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "example": true}
)

// mapSchema copies a schema. It calls change with the copy of each subschema, the inner ones first, and puts the result in its place.
func mapSchema(v any, change func(object) object) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = mapSchema(v[i], change)
		}
		return out
	case object:
		out := make(object, len(v))
		for k, member := range v {
			named, isObject := member.(object)
			switch {
			case values[k]:
				out[k] = member
			case schemasByName[k] && isObject:
				copied := make(object, len(named))
				for name, s := range named {
					copied[name] = mapSchema(s, change)
				}
				out[k] = copied
			default:
				out[k] = mapSchema(member, change)
			}
		}
		return change(out)
	}
	return v
}

// withoutTimes replaces what YAML takes for a time by its text, which is what a JSON document would have.
func withoutTimes(v any) any {
	switch v := v.(type) {
	case object:
		for k := range v {
			v[k] = withoutTimes(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutTimes(v[i])
		}
	case time.Time:
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339Nano)
	}
	return v
}
