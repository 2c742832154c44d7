package typedoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// An Info names the catalogue in a document.
type Info struct{ Title, Version string }

// WriteOpenAPI writes the types as the webhooks of an OpenAPI 3.1 document.
func WriteOpenAPI(info Info, types []Type) ([]byte, error) {
	schemas, webhooks := object{}, object{}
	for i := range types {
		t := &types[i]
		media := object{}
		if err := t.place(schemas, media, false); err != nil {
			return nil, err
		}
		op := object{
			"operationId": t.Name, "requestBody": object{"required": true, "content": object{"application/json": media}},
			"responses": object{"2XX": object{"description": "The event was received."}},
		}
		t.describe(op)
		if t.Deprecated {
			op["deprecated"] = true
		}
		webhooks[t.Name] = object{"post": op}
	}
	return encode(object{
		"openapi": "3.1.0", "info": object{"title": info.Title, "version": info.Version},
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema", "webhooks": webhooks, "components": object{"schemas": schemas},
	})
}

// WriteAsyncAPI writes the types as the messages that an AsyncAPI 3 document's application sends.
func WriteAsyncAPI(info Info, types []Type) ([]byte, error) {
	schemas, messages, sent := object{}, object{}, object{}
	for i := range types {
		t := &types[i]
		m := object{"name": t.Name, "contentType": "application/json"}
		media := object{}
		if err := t.place(schemas, media, true); err != nil {
			return nil, err
		}
		if schema, given := media["schema"]; given {
			m["payload"] = schema
		}
		if example, given := media["example"]; given {
			m["examples"] = []any{object{"payload": example}}
		}
		t.describe(m)
		if t.Deprecated {
			m["x-deprecated"] = true
		}
		messages[t.Name] = m
		sent[t.Name] = object{"$ref": "#/components/messages/" + escaper.Replace(t.Name)}
	}
	return encode(object{
		"asyncapi": "3.0.0", "info": object{"title": info.Title, "version": info.Version}, "defaultContentType": "application/json",
		"channels":   object{"events": object{"address": nil, "description": "The webhook of a subscriber.", "messages": sent}},
		"operations": object{"deliver": object{"action": "send", "channel": object{"$ref": "#/channels/events"}}},
		"components": object{"messages": messages, "schemas": schemas},
	})
}

func (t *Type) describe(o object) {
	if t.Description != "" {
		o["description"] = t.Description
	}
}

// place puts the schema among the document's, with its $defs beside it, and refers to it. AsyncAPI's own schemas are of draft 7.
func (t *Type) place(schemas, media object, draft7 bool) error {
	if t.Schema != nil {
		var schema any
		if err := unmarshal(t.Schema, &schema); err != nil {
			return fmt.Errorf("%s: read schema: %w", t.Name, err)
		}
		schemas[t.Name] = t.spread(schema, schemas, draft7)
		media["schema"] = object{"$ref": "#/components/schemas/" + escaper.Replace(t.Name)}
	}
	if t.Example != nil {
		var example any
		if err := unmarshal(t.Example, &example); err != nil {
			return fmt.Errorf("%s: read example: %w", t.Name, err)
		}
		media["example"] = example
	}
	return nil
}

// spread copies a schema, moves its definitions beside it, and follows them with its references.
func (t *Type) spread(schema any, schemas object, draft7 bool) any {
	return mapSchema(schema, func(o object) object {
		for _, k := range []string{"$defs", "definitions"} {
			defs, _ := o[k].(object)
			for name, def := range defs {
				schemas[t.part(name)] = def
			}
			delete(o, k)
		}
		delete(o, "$schema")
		if ref, given := o["$ref"].(string); given {
			o["$ref"] = t.referTo(ref)
		}
		if prefix, given := o["prefixItems"]; given && draft7 {
			if rest, given := o["items"]; given {
				o["additionalItems"] = rest
			}
			o["items"] = prefix
			delete(o, "prefixItems")
		}
		return o
	})
}

// part is the name of a definition of the type's schema among the document's.
func (t *Type) part(name string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, name)
	return t.Name + "." + clean
}

func (t *Type) referTo(ref string) string {
	if ref == "#" {
		return "#/components/schemas/" + escaper.Replace(t.Name)
	}
	for _, root := range []string{"#/$defs/", "#/definitions/"} {
		if rest, found := strings.CutPrefix(ref, root); found {
			name, below, deeper := strings.Cut(rest, "/")
			to := "#/components/schemas/" + escaper.Replace(t.part(unescape(name)))
			if deeper {
				to += "/" + below
			}
			return to
		}
	}
	if rest, found := strings.CutPrefix(ref, "#/"); found {
		return "#/components/schemas/" + escaper.Replace(t.Name) + "/" + rest
	}
	return ref
}

func unmarshal(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // numbers stay as they are written
	return d.Decode(v)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
