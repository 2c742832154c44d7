package compat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonschema.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Each change is compatible in the directions that it names. The place is that of the first fault in the other direction.
func TestChanges(t *testing.T) {
	const order = `{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"total":{"type":"integer","minimum":0}}}`
	for name, c := range map[string]struct {
		old, new    string
		compatible  Direction // None: in neither
		placeOfElse string
	}{
		"the same":                {order, order, Full, ""},
		"an annotation":           {`{"type":"string"}`, `{"type":"string","description":"a name","examples":["x"]}`, Full, ""},
		"an optional member":      {order, strings.Replace(order, `"id":{`, `"note":{"type":"string"},"id":{`, 1), Full, ""},
		"a required member":       {order, strings.Replace(order, `["id"]`, `["id","total"]`, 1), Forward, "/required"},
		"no longer required":      {order, strings.Replace(order, `["id"]`, `[]`, 1), Backward, "/required"},
		"a removed member":        {order, `{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`, Full, ""},
		"another type":            {order, strings.Replace(order, `"id":{"type":"string"}`, `"id":{"type":"integer"}`, 1), None, "/properties/id/type"},
		"a wider type":            {order, strings.Replace(order, `"integer"`, `"number"`, 1), Backward, "/properties/total/type"},
		"one more type":           {`{"type":"string"}`, `{"type":["string","null"]}`, Backward, "/type"},
		"a type at all":           {`{}`, `{"type":"string"}`, Forward, "/type"},
		"a value more":            {`{"enum":["a","b"]}`, `{"enum":["a","b","c"]}`, Backward, "/enum"},
		"a value less":            {`{"enum":["a","b"]}`, `{"const":"a"}`, Forward, "/enum"},
		"a lower minimum":         {`{"type":"integer","minimum":1}`, `{"type":"integer","minimum":0}`, Backward, "/minimum"},
		"an exclusive minimum":    {`{"type":"number","minimum":1}`, `{"type":"number","exclusiveMinimum":1}`, Forward, "/exclusiveMinimum"},
		"a longer text":           {`{"type":"string","maxLength":10}`, `{"type":"string","maxLength":20}`, Backward, "/maxLength"},
		"values within a bound":   {`{"enum":["ab","abc"]}`, `{"type":"string","maxLength":3}`, Backward, "/enum"},
		"a pattern":               {`{"type":"string"}`, `{"type":"string","pattern":"^a"}`, Forward, "/pattern"},
		"another pattern":         {`{"type":"string","pattern":"^b"}`, `{"type":"string","pattern":"^a"}`, None, "/pattern"},
		"closed":                  {order, strings.Replace(order, `{"type":"object"`, `{"additionalProperties":false,"type":"object"`, 1), Forward, "/additionalProperties"},
		"closed, and one more":    {`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}`, Backward, "/properties/b"},
		"items":                   {`{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":["string","null"]}}`, Backward, "/items/type"},
		"unique items":            {`{"type":"array"}`, `{"type":"array","uniqueItems":true}`, Forward, "/uniqueItems"},
		"a prefix":                {`{"type":"array","items":{"type":"string"}}`, `{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"string"}}`, None, "/prefixItems/0/type"},
		"an alternative more":     {`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"anyOf":[{"type":"string"},{"type":"null"},{"type":"integer"}]}`, Backward, "/anyOf"},
		"alternatives of a type":  {`{"type":"string"}`, `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, Backward, "/type"},
		"by reference":            {`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"type":"string"}`, Full, ""},
		"behind a reference":      {`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}}}`, None, "/properties/x/type"},
		"parts of a whole":        {`{"allOf":[{"type":"object","required":["a"]},{"properties":{"a":{"type":"string"}}}]}`, `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, Full, ""},
		"one part less":           {`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{"allOf":[{"required":["a"]}]}`, Backward, "/required"},
		"a condition":             {`{"type":"object"}`, `{"type":"object","if":{"required":["a"]},"then":{"required":["b"]}}`, Forward, "/if"},
		"nothing any more":        {`true`, `false`, Forward, "/"},
		"names with a slash":      {`{"properties":{"a/b":{"type":"string"}}}`, `{"properties":{"a/b":{"type":"integer"}}}`, None, "/properties/a~1b/type"},
		"the whole, by its parts": {`{"type":["string","integer"]}`, `{"type":["integer","string"]}`, Full, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := decode(t, c.old), decode(t, c.new)
			for _, d := range []Direction{Backward, Forward} {
				faults := Compare(before, after, d)
				want := c.compatible == Full || c.compatible == d
				if (len(faults) == 0) != want {
					t.Errorf("%s: %+v", d, faults)
				}
				if !want && len(faults) > 0 && (faults[0].Place != c.placeOfElse || faults[0].Direction != d) {
					t.Errorf("%s: first fault %+v, want it at %s", d, faults[0], c.placeOfElse)
				}
			}
			if full := Compare(before, after, Full); (len(full) == 0) != (c.compatible == Full) {
				t.Errorf("full: %+v", full)
			}
			if got := Compare(before, after, None); got != nil {
				t.Errorf("none: %+v", got)
			}
		})
	}
}

// What is called compatible is compatible: a document that is valid by the one schema is valid by the other.
func TestComparisonIsSound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	compared, valid := 0, 0
	for range 2000 {
		before, after := sample(random, 3), sample(random, 3)
		if random.IntN(2) == 0 {
			after = mutate(random, before)
		}
		old, oldErr := jsonschema.Compile(normal(t, before))
		latest, newErr := jsonschema.Compile(normal(t, after))
		if oldErr != nil || newErr != nil {
			continue
		}
		if len(Compare(normal(t, before), normal(t, after), Backward)) > 0 {
			continue
		}
		compared++
		for range 12 {
			doc := document(random, before, 3)
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			v := decode(t, string(text))
			if len(old.Faults(v)) > 0 {
				continue
			}
			valid++
			if faults := latest.Faults(v); len(faults) > 0 {
				t.Fatalf("compatible, but %s is valid by %s and not by %s: %v", text, show(before), show(after), faults)
			}
		}
	}
	t.Logf("%d compatible pairs, %d documents", compared, valid)
	if compared < 100 || valid < 500 {
		t.Errorf("only %d pairs and %d documents were compared", compared, valid)
	}
}

func show(v any) string { text, _ := json.Marshal(v); return string(text) }

func normal(t testing.TB, v any) any { return decode(t, show(v)) }

type object = map[string]any

// sample makes a schema over the members a and b.
func sample(r *rand.Rand, depth int) any {
	if depth == 0 {
		return object{"type": pick(r, "string", "integer", "null")}
	}
	switch r.IntN(11) {
	case 0:
		return object{}
	case 1:
		return object{"type": "integer", "minimum": r.IntN(3), "maximum": 2 + r.IntN(3)}
	case 2:
		return object{"type": []any{"string", "null"}, "maxLength": r.IntN(3)}
	case 3:
		return object{"enum": []any{"x", r.IntN(2), nil}[:1+r.IntN(3)]}
	case 4:
		return object{"anyOf": []any{sample(r, depth-1), sample(r, depth-1)}}
	case 5:
		return object{"type": "array", "items": sample(r, depth-1), "minItems": r.IntN(2)}
	case 6:
		return object{"allOf": []any{sample(r, depth-1), sample(r, depth-1)}}
	case 7:
		return object{"type": "array", "prefixItems": []any{sample(r, depth-1)}, "uniqueItems": r.IntN(2) == 0}
	case 8:
		return object{"type": "number", "exclusiveMinimum": r.IntN(2)}
	}
	s := object{"type": "object", "properties": object{"a": sample(r, depth-1), "b": sample(r, depth-1)}}
	if r.IntN(2) == 0 {
		s["required"] = []any{pick(r, "a", "b")}
	}
	if r.IntN(3) == 0 {
		s["additionalProperties"] = false
	}
	return s
}

// mutate changes one place of a schema.
func mutate(r *rand.Rand, schema any) any {
	s, ok := schema.(object)
	if !ok || len(s) == 0 {
		return schema
	}
	out := object{}
	for k, v := range s {
		out[k] = v
	}
	switch r.IntN(5) {
	case 0:
		delete(out, "required")
	case 1:
		delete(out, pick(r, "maximum", "minimum", "maxLength", "additionalProperties", "minItems", "uniqueItems"))
	case 2:
		out["description"] = "changed"
	case 3:
		if p, ok := out["properties"].(object); ok {
			out["properties"] = object{"a": mutate(r, p["a"]), "b": p["b"]}
		}
	case 4:
		if t, ok := out["type"].(string); ok {
			out["type"] = []any{t, "null"}
		}
	}
	return out
}

// document makes a document that often fits the schema.
func document(r *rand.Rand, schema any, depth int) any {
	s, _ := schema.(object)
	if list, ok := s["anyOf"].([]any); ok {
		return document(r, list[r.IntN(len(list))], depth)
	}
	if list, ok := s["allOf"].([]any); ok {
		return document(r, list[r.IntN(len(list))], depth)
	}
	if list, ok := s["enum"].([]any); ok {
		return list[r.IntN(len(list))]
	}
	kind := fmt.Sprint(s["type"])
	switch {
	case strings.Contains(kind, "object"):
		doc := object{}
		for name, p := range s["properties"].(object) {
			if r.IntN(3) > 0 {
				doc[name] = document(r, p, depth-1)
			}
		}
		return doc
	case strings.Contains(kind, "array"):
		doc := []any{}
		inner := s["items"]
		if prefix, ok := s["prefixItems"].([]any); ok {
			inner = prefix[0]
		}
		for range r.IntN(3) {
			doc = append(doc, document(r, inner, depth-1))
		}
		return doc
	case strings.Contains(kind, "integer"):
		return r.IntN(5)
	case strings.Contains(kind, "number"):
		return []any{0.5, 1, 2}[r.IntN(3)]
	case strings.Contains(kind, "string"):
		return []any{"", "x", "xyz", nil}[r.IntN(4)]
	}
	return []any{nil, "x", 1, true}[r.IntN(4)]
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }
