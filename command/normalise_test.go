package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/jsonschema"
	"github.com/godwit-hq/godwit/internal/trace"
)

func withSchema(t *testing.T, schema string) *Registered {
	t.Helper()
	d := declared(I1)
	d.Args = json.RawMessage(schema)
	return registered(t, d)
}

func TestNormaliseArgs(t *testing.T) {
	trace.Covers(t, "IDS-KEY-8")
	for _, c := range []struct {
		name, schema string
		a, b         string
		same         bool
		want         string // normalised form of a
	}{
		{"a default", `{"properties":{"n":{"default":5}}}`, `{}`, `{"n":5}`, true, `{"n":5}`},
		{"another value than the default", `{"properties":{"n":{"default":5}}}`, `{}`, `{"n":6}`, false, `{"n":5}`},
		{"null is not absent", `{"properties":{"n":{"default":5}}}`, `{}`, `{"n":null}`, false, `{"n":5}`},
		{"a default satisfies required", `{"required":["n"],"properties":{"n":{"default":5}}}`, `{}`, `{"n":5}`, true, `{"n":5}`},
		{"a default that is an object has its own", `{"properties":{"o":{"default":{},"properties":{"n":{"default":1}}}}}`, `{}`, `{"o":{"n":1}}`, true, `{"o":{"n":1}}`},
		{"no default within what is absent", `{"properties":{"o":{"properties":{"n":{"default":1}}}}}`, `{}`, `{"o":{}}`, false, `{}`},
		{"an own default goes before that of a reference", `{"properties":{"n":{"$ref":"#/$defs/n","default":1}},"$defs":{"n":{"default":2}}}`, `{}`, `{"n":1}`, true, `{"n":1}`},
		{"the default of a reference", `{"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"default":2}}}`, `{}`, `{"n":2}`, true, `{"n":2}`},
		{"ephemeral", `{"properties":{"at":{"x-ephemeral":true}}}`, `{"at":1}`, `{"at":2}`, true, `{}`},
		{"not ephemeral", `{"properties":{"at":{"x-ephemeral":false}}}`, `{"at":1}`, `{"at":2}`, false, `{"at":1}`},
		{"ephemeral and required", `{"required":["at"],"properties":{"at":{"type":"integer","x-ephemeral":true}}}`, `{"at":1}`, `{"at":2}`, true, `{}`},
		{"whatever is not declared is ephemeral", `{"properties":{"n":{}},"additionalProperties":{"x-ephemeral":true}}`, `{"n":1,"x":1}`, `{"n":1,"y":2}`, true, `{"n":1}`},
		{"by pattern", `{"patternProperties":{"^_":{"x-ephemeral":true}},"additionalProperties":{"x-fold":"case"}}`, `{"_a":1,"b":"X"}`, `{"b":"x","_":"X"}`, true, `{"b":"x"}`},
		{"a list", `{"properties":{"l":{}}}`, `{"l":[1,2]}`, `{"l":[2,1]}`, false, `{"l":[1,2]}`},
		{"a set", `{"properties":{"l":{"x-set":true}}}`, `{"l":[2,1]}`, `{"l":[1,2]}`, true, `{"l":[1,2]}`},
		{"a set has each once", `{"properties":{"l":{"x-set":true,"uniqueItems":true}}}`, `{"l":[1,1.0,2]}`, `{"l":[2,1]}`, true, `{"l":[1,2]}`},
		{"a set of all kinds", `{"properties":{"l":{"x-set":true}}}`, `{"l":[{"b":1,"a":2},null,[2,1],"x"]}`, `{"l":["x",[2,1],null,{"a":2,"b":1}]}`, true, `{"l":["x",[2,1],null,{"a":2,"b":1}]}`},
		{"a list within a set", `{"properties":{"l":{"x-set":true}}}`, `{"l":[[1,2]]}`, `{"l":[[2,1]]}`, false, `{"l":[[1,2]]}`},
		{"a set of sets", `{"properties":{"l":{"x-set":true,"items":{"x-set":true}}}}`, `{"l":[[4,3],[2,1],[1,2]]}`, `{"l":[[1,2],[3,4]]}`, true, `{"l":[[1,2],[3,4]]}`},
		{"a set by one part, folded by another", `{"properties":{"l":{"x-set":true,"allOf":[{"items":{"x-fold":"case"}}]}}}`, `{"l":["b","A"]}`, `{"l":["a","B"]}`, true, `{"l":["a","b"]}`},
		{"items that differ in what is ephemeral", `{"properties":{"l":{"x-set":true,"items":{"properties":{"at":{"x-ephemeral":true}}}}}}`, `{"l":[{"at":2,"n":1},{"at":1,"n":2}]}`, `{"l":[{"at":1,"n":1},{"at":2,"n":2},{"at":3,"n":1}]}`, true, `{"l":[{"n":1},{"n":2}]}`},
		{"case", `{"properties":{"s":{"x-fold":"case"}}}`, `{"s":"STRASSE "}`, `{"s":"Straße "}`, true, `{"s":"strasse "}`},
		{"space", `{"properties":{"s":{"x-fold":"space"}}}`, `{"s":" A\t\nb\u00a0c "}`, `{"s":"A b c"}`, true, `{"s":"A b c"}`},
		{"space is not case", `{"properties":{"s":{"x-fold":"space"}}}`, `{"s":"A"}`, `{"s":"a"}`, false, `{"s":"A"}`},
		{"both, from two parts", `{"properties":{"s":{"x-fold":"space","$ref":"#/$defs/s"}},"$defs":{"s":{"x-fold":"case"}}}`, `{"s":" A"}`, `{"s":"a"}`, true, `{"s":"a"}`},
		{"no folding", `{"properties":{"s":{}}}`, `{"s":"A"}`, `{"s":"a"}`, false, `{"s":"A"}`},
		{"other values are not folded", `{"properties":{"s":{"x-fold":"case","x-set":true}}}`, `{"s":1}`, `{"s":1.0}`, true, `{"s":1}`},
		{"items of a tuple", `{"properties":{"l":{"prefixItems":[{"x-fold":"case"}],"items":{"x-fold":"space"}}}}`, `{"l":["A "," B"]}`, `{"l":["a ","B "]}`, true, `{"l":["a ","B"]}`},
		{"the root by reference", `{"$ref":"#/$defs/all","$defs":{"all":{"properties":{"n":{"default":1}}}}}`, `{}`, `{"n":1}`, true, `{"n":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := withSchema(t, c.schema)
			a := derive(t, command, func(e *Envelope) { e.Args = json.RawMessage(c.a) })
			b := derive(t, command, func(e *Envelope) { e.Args = json.RawMessage(c.b) })
			if (a.Key == b.Key) != c.same || (a.Fingerprint == b.Fingerprint) != c.same {
				t.Errorf("%s and %s: same is %v, want %v", c.a, c.b, a.Key == b.Key, c.same)
			}
			if string(a.Args) != c.want {
				t.Errorf("normalised %s, want %s", a.Args, c.want)
			}
			again := derive(t, command, func(e *Envelope) { e.Args = json.RawMessage(c.a) })
			if again.Key != a.Key {
				t.Error("deriving again gives another key: the schema was changed by the first")
			}
		})
	}
}

func TestInvalidArgs(t *testing.T) {
	command := withSchema(t, `{"type":"object","additionalProperties":false,"required":["amount"],"properties":{
		"amount":{"type":"integer","minimum":1},"note":{"type":"string","maxLength":5},"at":{"type":"integer","x-ephemeral":true},
		"a/b":{"type":"array","items":{"enum":["x"]}},"mail":{"format":"email"}}}`)
	for args, field := range map[string]string{
		`{}`:                           "/args/amount",
		`{"amount":"secret"}`:          "/args/amount",
		`{"amount":0}`:                 "/args/amount",
		`{"amount":1,"more":1}`:        "/args/more",
		`{"amount":1,"note":"secret"}`: "/args/note",
		`{"amount":1,"at":"secret"}`:   "/args/at",
		`{"amount":1,"a/b":["x","y"]}`: "/args/a~1b/1",
		`{"amount":1,"mail":"secret"}`: "/args/mail",
	} {
		e := example()
		e.Args = json.RawMessage(args)
		_, err := command.Derive(e)
		refusal(t, err, InvalidArgs, field)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a value is repeated: %v", args, err)
		}
	}
	e := example()
	e.Args = json.RawMessage(`{"amount":1.5,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`)
	var r *Refusal
	if _, err := command.Derive(e); !errors.As(err, &r) || !strings.Contains(r.Detail, "2 more") {
		t.Errorf("many faults: %v", err)
	}
}

func TestSchemaIsBounded(t *testing.T) {
	var doubling strings.Builder // each definition refers to the next twice
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for name, c := range map[string]struct{ schema, says string }{
		"no JSON":                  {`{`, "not valid JSON"},
		"no object":                {`true`, "object"},
		"a keyword twice":          {`{"type":"object","type":"object"}`, "twice"},
		"another draft":            {`{"$schema":"http://json-schema.org/draft-07/schema#"}`, "$schema"},
		"no schema":                {`{"type":"objekt"}`, "not a JSON Schema"},
		"somewhere else":           {`{"$ref":"https://example.com/schema.json"}`, "nothing outside"},
		"a file":                   {`{"$ref":"file:///etc/passwd"}`, "nothing outside"},
		"itself":                   {`{"properties":{"a":{"$ref":"#"}}}`, "refer to itself"},
		"itself, dynamically":      {`{"$dynamicRef":"#x","$defs":{"x":{"$dynamicAnchor":"x"}}}`, "refer to itself"},
		"endless":                  {`{"$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d40":{}}}`, "too much work"},
		"endless patterns":         {`{"properties":{"s":{"pattern":"` + strings.Repeat("(a{1,100}){1,9}", 20) + `"}}}`, "too much work"},
		"large":                    {`{"description":"` + strings.Repeat("x", jsonschema.MaxSchema) + `"}`, "bytes"},
		"a misspelt annotation":    {`{"properties":{"a":{"x-ephemral":true}}}`, "x-ephemral"},
		"a set that is no boolean": {`{"properties":{"a":{"x-set":"yes"}}}`, "x-set"},
		"an unknown fold":          {`{"properties":{"a":{"x-fold":"accents"}}}`, "x-fold"},
		"ephemeral args":           {`{"x-ephemeral":true}`, "as a whole"},
		"ephemeral items":          {`{"properties":{"a":{"items":{"x-ephemeral":true}}}}`, "not for items"},
		"a default that is wrong":  {`{"properties":{"a":{"type":"integer","default":"x"}}}`, "default does not fit"},
		"values that are folded":   {`{"properties":{"a":{"enum":["USD"],"x-fold":"case"}}}`, "can never be matched"},
		"an alternative's default": {`{"anyOf":[{"properties":{"a":{"default":1}}},{}]}`, "would do nothing"},
		"a condition's set":        {`{"if":{},"then":{"properties":{"a":{"x-set":true}}}}`, "would do nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			d := declared(I1)
			d.Args = json.RawMessage(c.schema)
			err := NewRegistry().Register(d, done)
			if err == nil || !strings.Contains(err.Error(), "args_schema") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestWorkIsBounded(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"properties":{"l":{"items":{"allOf":[`)
	for i := range 300 {
		fmt.Fprintf(&schema, `{"minimum":%d},`, i)
	}
	schema.WriteString(`{}]}}}}`)
	command := withSchema(t, schema.String())
	e := example()
	e.Args = json.RawMessage(`{"l":[` + strings.Repeat("1,", 10_000) + `1]}`)
	_, err := command.Derive(e)
	refusal(t, err, InvalidArgs, "/args")
}
