package typedoc

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

func read(t *testing.T, name string, rename map[string]string) []Type {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	types, err := Read(text, rename)
	if err != nil {
		t.Fatal(err)
	}
	for i := range types {
		types[i].Place = ""
		if types[i].Schema != nil {
			compile(t, &types[i])
		}
	}
	return types
}

// compile checks that a schema stands alone.
func compile(t *testing.T, typ *Type) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.Decode(typ.Schema)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.Compile(document)
	if err != nil {
		t.Fatalf("%s: the schema %s: %s", typ.Name, err, typ.Schema)
	}
	if typ.Example != nil {
		example, err := jsonschema.Decode(typ.Example)
		if err != nil || !s.Fits(example) {
			t.Errorf("%s: the example %s does not fit the schema %s (%v)", typ.Name, typ.Example, typ.Schema, err)
		}
	}
	return s
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	var a, b any
	for v, text := range map[*any]any{&a: got, &b: want} {
		raw, isText := text.(string)
		if !isText {
			encoded, _ := json.Marshal(text)
			raw = string(encoded)
		}
		if err := json.Unmarshal([]byte(raw), v); err != nil {
			t.Fatalf("%s: %v in %s", what, err, raw)
		}
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

const (
	line  = `{"type":"object","properties":{"sku":{"type":"string"}}}`
	order = `"type":"object","required":["id"],"properties":{"id":{"type":"string"},"lines":{"type":"array","items":{"$ref":"#/$defs/Line"}},"since":{"type":"string","format":"date"}}`
)

func TestReadOpenAPI(t *testing.T) {
	types := read(t, "shop.openapi.yaml", map[string]string{"stockLow": "stock.low"})
	if len(types) != 3 {
		t.Fatalf("%+v", types)
	}
	cancelled, created, stock := types[0], types[1], types[2]
	if created.Name != "order.created" || created.Description != "An order came in" || stock.Name != "stock.low" || !stock.Deprecated ||
		cancelled.Name != "order.cancelled" || cancelled.Description != "An order will not be sent" {
		t.Errorf("%+v", types)
	}
	equal(t, "created", string(created.Schema), `{`+order+`,"$defs":{"Line":`+line+`}}`)
	equal(t, "example", string(created.Example), `{"id":"o1","lines":[{"sku":"a"}],"since":"2026-03-01"}`)
	equal(t, "cancelled", string(cancelled.Schema), `{"allOf":[{"$ref":"#/$defs/Order"},{"required":["reason"]}],
		"properties":{"reason":{"enum":["$ref","customer",1]},"$schema":{"type":"string"}},"$defs":{"Order":{`+order+`},"Line":`+line+`}}`)
	equal(t, "stock", string(stock.Schema), `true`)
}

func TestReadAsyncAPI(t *testing.T) {
	types := read(t, "shop.asyncapi.yaml", nil)
	if len(types) != 2 || types[0].Name != "order.cancelled" || types[1].Name != "order.created" || types[1].Description != "An order came in" {
		t.Fatalf("what the application receives is not its event: %+v", types)
	}
	equal(t, "schema", string(types[1].Schema), `{"type":"object","properties":{"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false},
		"line":{"$ref":"#/$defs/Line"}},"$defs":{"Line":{"type":"object"}}}`)
}

// What is written can be read again and means the same.
func TestRoundTrip(t *testing.T) {
	types := append(read(t, "shop.openapi.yaml", map[string]string{"stockLow": "stock.low"}), Type{Name: "bare.type"}, Type{
		Name: "tuple.type", Schema: json.RawMessage(`{"type":"array","prefixItems":[{"$ref":"#/$defs/a b"}],"items":{"type":"null"},"$defs":{"a b":{"const":1}}}`),
		Example: json.RawMessage(`[1,null]`),
	})
	for name, write := range map[string]func(Info, []Type) ([]byte, error){"OpenAPI": WriteOpenAPI, "AsyncAPI": WriteAsyncAPI} {
		document, err := write(Info{"Shop", "1"}, types)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(document, nil)
		if err != nil || len(again) != len(types) {
			t.Fatalf("%s: %v in %s", name, err, document)
		}
		for i := range again {
			if again[i].Schema != nil {
				compile(t, &again[i])
			}
			for _, want := range types {
				if want.Name == again[i].Name && want.Name != "tuple.type" && want.Schema != nil {
					equal(t, want.Name, string(again[i].Schema), string(want.Schema))
				}
				if want.Name == again[i].Name && (want.Description != again[i].Description || want.Deprecated != again[i].Deprecated || (want.Schema == nil) != (again[i].Schema == nil)) {
					t.Errorf("%s: %+v came back as %+v", name, want, again[i])
				}
			}
		}
		tuple := again[len(again)-1]
		s := compile(t, &tuple)
		for text, fits := range map[string]bool{`[1]`: true, `[2]`: false, `[1,null]`: true, `[1,2]`: false} {
			if v, _ := jsonschema.Decode([]byte(text)); s.Fits(v) != fits {
				t.Errorf("%s: %s fits the schema that came back: %t", name, text, !fits)
			}
		}
	}
}

func TestUnreadable(t *testing.T) {
	hook := func(body string) string {
		return `{"openapi":"3.1.0","webhooks":{"a.b":{"post":{"requestBody":` + body + `}}}}`
	}
	schema := func(s string) string { return hook(`{"content":{"application/json":{"schema":` + s + `}}}`) }
	for document, want := range map[string]string{
		`]`:                    "neither JSON nor YAML",
		`{}`:                   "neither OpenAPI",
		`{"openapi":"3.0.3"}`:  "came with 3.1",
		`{"asyncapi":"2.6.0"}`: "convert it to version 3",
		`{"openapi":"3.1.0"}`:  "no webhooks",
		`{"openapi":"3.1.0","webhooks":{"a.b":{}}}`:                 "webhooks.a.b: has no operation",
		`{"openapi":"3.1.0","webhooks":{"not a type":{"post":{}}}}`: "--rename not a type=TYPE",
		schema(`{"$ref":"other.json#/a"}`):                          "bundle it first",
		schema(`{"$ref":"#/components/schemas/None"}`):              "does not have",
		schema(`{"$ref":7}`):                                        "is not text",
		hook(`{"$ref":"#/webhooks/a.b/post/requestBody"}`):          "refers to itself",
		`{"asyncapi":"3.0.0","channels":{"c":{"messages":{"a.b":{"payload":{"schemaFormat":"application/vnd.apache.avro","schema":{}}}}}}}`: "only JSON Schema",
		`{"asyncapi":"3.0.0","operations":{"o":{"action":"send","messages":[7]}}}`:                                                          "no webhooks",
	} {
		if types, err := Read([]byte(document), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", document, types, err, want)
		}
	}
	if _, err := Read([]byte(schema(`{}`)), map[string]string{"x": "y.z"}); err == nil || !strings.Contains(err.Error(), `no webhook or message "x"`) {
		t.Errorf("a name that does not occur: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"shop.openapi.yaml", "shop.asyncapi.yaml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		types, err := Read(document, nil)
		if err == nil {
			if _, err := WriteOpenAPI(Info{}, types); err != nil {
				t.Error(err)
			}
		}
	})
}
