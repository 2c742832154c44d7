package jsonschema

import (
	"fmt"
	"testing"
)

// Values are equal by JSON Schema's rules, whether one is listed alone, among others, or beside the other in a list.
func TestValuesAreComparedByValue(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{`1`, `1`, true}, {`1`, `1.0`, true}, {`10`, `1e1`, true}, {`0.5`, `5e-1`, true}, {`0`, `-0.0`, true}, {`-3`, `-3.0`, true},
		{`1`, `2`, false}, {`1`, `-1`, false}, {`1`, `"1"`, false}, {`1`, `true`, false}, {`0`, `false`, false}, {`0`, `null`, false},
		{`"a"`, `"a"`, true}, {`"a"`, `"A"`, false}, {`"true"`, `true`, false}, {`"null"`, `null`, false}, {`""`, `null`, false},
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true}, {`{"a":1}`, `{"a":1,"b":2}`, false}, {`{"a":1}`, `["a",1]`, false},
		{`[1,[2]]`, `[1.0,[2]]`, true}, {`[1,[2]]`, `[1,2]`, false}, {`["a,s1:b"]`, `["a","b"]`, false}, {`[]`, `{}`, false},
	} {
		for name, s := range map[string]struct{ schema, document string }{
			"const":       {fmt.Sprintf(`{"const":%s}`, c.a), c.b},
			"enum":        {fmt.Sprintf(`{"enum":["x",%s,[7],{"y":7}]}`, c.a), c.b},
			"uniqueItems": {`{"not":{"uniqueItems":true}}`, fmt.Sprintf(`["x",%s,[7],%s]`, c.a, c.b)},
		} {
			compiled, err := Compile(decoded(t, s.schema))
			if err != nil {
				t.Fatal(err)
			}
			document := decoded(t, s.document)
			if compiled.Fits(document) != c.equal || (len(compiled.Faults(document)) == 0) != c.equal {
				t.Errorf("%s: %s and %s are taken for equal: %v", name, c.a, c.b, !c.equal)
			}
		}
	}
}

// A fault of a listed value reads as it did before, and does not repeat the value.
func TestFaultsOfListedValues(t *testing.T) {
	for schema, want := range map[string]string{
		`{"enum":[1,2]}`: "must be one of the listed values", `{"const":"a"}`: `must be "a"`, `{"const":[1]}`: "must be the one value that is allowed",
		`{"uniqueItems":true}`: "must not hold an item twice",
	} {
		compiled, err := Compile(decoded(t, schema))
		if err != nil {
			t.Fatal(err)
		}
		if list := compiled.Faults(decoded(t, `[3,3]`)); len(list) != 1 || list[0].Detail != want {
			t.Errorf("%s: %+v", schema, list)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
