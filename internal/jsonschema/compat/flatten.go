package compat

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A flat schema has neither references nor, where its parts can be merged, allOf.
type flat struct {
	always, never bool
	keywords      map[string]any
}

func flatten(schema, root any) flat {
	switch s := schema.(type) {
	case bool:
		return flat{always: s, never: !s}
	case map[string]any:
		k := merged(s, root)
		return flat{always: !limits(k), keywords: k}
	}
	return flat{always: true}
}

// annotations limit nothing.
var annotations = []string{
	"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "title", "description", "default", "examples", "deprecated", "readOnly",
	"writeOnly",
}

func limits(keywords map[string]any) bool {
	for k := range keywords {
		if !slices.Contains(annotations, k) {
			return true
		}
	}
	return false
}

// merged resolves a reference and joins the parts of allOf into one set of keywords. Parts that set a keyword differently stay in
// allOf, which is then compared as a whole.
func merged(s map[string]any, root any) map[string]any {
	parts := []any{}
	own := maps.Clone(s)
	if target, found := refer(s, root); found {
		delete(own, "$ref")
		parts = append(parts, target)
	}
	if all, given := own["allOf"].([]any); given {
		delete(own, "allOf")
		parts = append(parts, all...)
	}
	var left []any
	for _, p := range parts {
		f := flatten(p, root)
		switch {
		case f.never:
			own["not"] = map[string]any{}
		case f.always:
		case !join(own, f.keywords):
			left = append(left, p)
		}
	}
	if left != nil {
		own["allOf"] = left
	}
	return own
}

// join adds the keywords of a part, or reports that both set one differently.
func join(own, part map[string]any) bool {
	for k, v := range part {
		if there, given := own[k]; given && !mergeable[k] && !slices.Contains(annotations, k) && !reflect.DeepEqual(there, v) {
			return false
		}
	}
	if shares(own, part, "properties") {
		return false
	}
	for k, v := range part {
		there, given := own[k]
		switch {
		case !given:
			own[k] = v
		case k == "required":
			own[k] = union(there, v)
		case k == "properties":
			both := maps.Clone(there.(map[string]any))
			maps.Copy(both, v.(map[string]any))
			own[k] = both
		}
	}
	return true
}

var mergeable = map[string]bool{"required": true, "properties": true}

// shares reports whether both have a member of the same name that differs.
func shares(a, b map[string]any, keyword string) bool {
	x, _ := a[keyword].(map[string]any)
	y, _ := b[keyword].(map[string]any)
	for name, v := range x {
		if other, given := y[name]; given && !reflect.DeepEqual(v, other) {
			return true
		}
	}
	return false
}

func union(a, b any) []any {
	x, _ := a.([]any)
	y, _ := b.([]any)
	out := slices.Clone(x)
	for _, v := range y {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// refer returns the target of a reference within the document.
func refer(s map[string]any, root any) (map[string]any, bool) {
	ref, _ := s["$ref"].(string)
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false
	}
	at := root
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	target, ok := at.(map[string]any)
	return target, ok
}

// alternatives returns the schemas that a document of the schema follows one of: each branch of anyOf or oneOf together with the other
// keywords. It returns nil if there are none.
func (f *flat) alternatives() []any {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, given := f.keywords[keyword].([]any)
		if !given {
			continue
		}
		rest := maps.Clone(f.keywords)
		delete(rest, keyword)
		list := make([]any, len(branches))
		for n, b := range branches {
			if limits(rest) {
				list[n] = map[string]any{"allOf": []any{rest, b}}
			} else {
				list[n] = b
			}
		}
		return list
	}
	return nil
}
