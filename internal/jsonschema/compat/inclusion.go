package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// An inclusion checks whether every document of one schema is valid by another.
type inclusion struct {
	narrow, wide any // the whole documents, for references
	direction    Direction
	faults       []Fault
}

func (i *inclusion) fault(place, format string, args ...any) {
	f := Fault{Place: place, Direction: i.direction, Detail: fmt.Sprintf(format, args...)}
	if f.Place == "" {
		f.Place = "/"
	}
	if len(i.faults) < maxFaults && !slices.Contains(i.faults, f) {
		i.faults = append(i.faults, f)
	}
}

// holds reports whether the narrow subschema is included in the wide one, and leaves no faults.
func (i *inclusion) holds(narrow, wide any) bool {
	try := &inclusion{narrow: i.narrow, wide: i.wide, direction: i.direction}
	try.schema(narrow, wide, "")
	return len(try.faults) == 0
}

// schema compares two subschemas at a place.
func (i *inclusion) schema(narrow, wide any, place string) {
	n, w := flatten(narrow, i.narrow), flatten(wide, i.wide)
	switch {
	case w.always || n.never:
		return
	case w.never:
		i.fault(place, "nothing is valid here any more")
		return
	}
	if branches := n.alternatives(); branches != nil {
		for _, b := range branches {
			i.schema(b, w.keywords, place)
		}
		return
	}
	i.alternatives(&n, &w, place)
	i.types(&n, &w, place)
	i.values(&n, &w, place)
	i.bounds(&n, &w, place)
	i.same(&n, &w, place)
	i.object(&n, &w, place)
	i.array(&n, &w, place)
}

// alternatives checks anyOf and oneOf of the wide schema: one of the branches must include the narrow schema.
func (i *inclusion) alternatives(n, w *flat, place string) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, given := w.keywords[keyword].([]any)
		if !given {
			continue
		}
		if !slices.ContainsFunc(branches, func(b any) bool { return i.holds(n.keywords, b) }) {
			i.fault(place+"/"+keyword, "none of the alternatives accepts all that was valid")
		}
	}
}

// types compares "type". A schema without it allows all types.
func (i *inclusion) types(n, w *flat, place string) {
	wide := typesOf(w.keywords)
	if wide == nil {
		return
	}
	narrow := typesOf(n.keywords)
	if narrow == nil {
		if narrow = typesOfValues(n.keywords); narrow == nil {
			i.fault(place+"/type", "is limited to %s", strings.Join(wide, ", "))
			return
		}
	}
	for _, t := range narrow {
		if !slices.Contains(wide, t) && !(t == "integer" && slices.Contains(wide, "number")) {
			i.fault(place+"/type", "%s is not allowed, only %s", t, strings.Join(wide, ", "))
		}
	}
}

func typesOf(keywords map[string]any) []string {
	switch t := keywords["type"].(type) {
	case string:
		return []string{t}
	case []any:
		list := make([]string, 0, len(t))
		for _, v := range t {
			if s, ok := v.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// typesOfValues returns the types of the listed values; nil if values are not listed.
func typesOfValues(keywords map[string]any) []string {
	values, listed := listedValues(keywords)
	if !listed {
		return nil
	}
	types := []string{}
	for _, v := range values {
		t := "object"
		switch v := v.(type) {
		case nil:
			t = "null"
		case bool:
			t = "boolean"
		case string:
			t = "string"
		case []any:
			t = "array"
		case json.Number:
			if t = "number"; !strings.ContainsAny(v.String(), ".eE") {
				t = "integer"
			}
		case float64:
			t = "number"
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

// listedValues returns the values of "const" or "enum".
func listedValues(keywords map[string]any) ([]any, bool) {
	if v, given := keywords["const"]; given {
		return []any{v}, true
	}
	values, given := keywords["enum"].([]any)
	return values, given
}

// values compares "enum" and "const".
func (i *inclusion) values(n, w *flat, place string) {
	wide, limited := listedValues(w.keywords)
	if !limited {
		return
	}
	narrow, listed := listedValues(n.keywords)
	if !listed {
		i.fault(place+"/enum", "is limited to listed values")
		return
	}
	for _, v := range narrow {
		if !slices.ContainsFunc(wide, func(other any) bool { return reflect.DeepEqual(v, other) }) {
			text, _ := json.Marshal(v)
			i.fault(place+"/enum", "%s is not among the values", text)
		}
	}
}

// incomparable are keywords whose inclusion is not worked out: the wide schema must have them unchanged or not at all.
var incomparable = []string{
	"pattern", "format", "contentEncoding", "contentMediaType", "contentSchema", "not", "if", "then", "else", "contains", "minContains", "maxContains",
	"propertyNames", "patternProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "multipleOf", "allOf",
	"$dynamicRef",
}

func (i *inclusion) same(n, w *flat, place string) {
	for _, keyword := range incomparable {
		wide, given := w.keywords[keyword]
		if !given || wide == true && strings.HasPrefix(keyword, "unevaluated") {
			continue
		}
		narrow, there := n.keywords[keyword]
		switch {
		case !there:
			i.fault(place+"/"+keyword, "%s is a new limit", keyword)
		case !reflect.DeepEqual(i.expanded(narrow, i.narrow), i.expanded(wide, i.wide)):
			i.fault(place+"/"+keyword, "%s differs, and whether that is compatible cannot be told", keyword)
		}
	}
}

// expanded replaces references by what they refer to.
func (i *inclusion) expanded(v, root any) any {
	switch v := v.(type) {
	case map[string]any:
		if target, found := refer(v, root); found {
			v = target
		}
		out := make(map[string]any, len(v))
		for k, member := range v {
			if k != "$defs" && k != "definitions" {
				out[k] = i.expanded(member, root)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for k := range v {
			out[k] = i.expanded(v[k], root)
		}
		return out
	}
	return v
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
