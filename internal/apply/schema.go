package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schemaURL names the schema of files.
const schemaURL = "https://godwit.example/apply.schema.json"

type object = map[string]any

// Schema returns the JSON Schema of a file, for editors. It is made from the schemas of the API.
func Schema() ([]byte, error) { return json.MarshalIndent(fileSchema(), "", "  ") }

// fileSchema makes the schema of a file.
func fileSchema() object {
	defs := object{
		"Reference": object{
			"description": "A secret: the name of an environment variable, or a file beside this one. Secrets do not stand in these files.",
			"type":        "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
			"properties": object{"env": object{"type": "string", "minLength": 1}, "file": object{"type": "string", "minLength": 1}},
		},
		"HeaderValue": object{
			"description": "The value of a header: a reference, or the value itself if it is no secret.",
			"type":        "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
			"properties": object{"env": object{"type": "string", "minLength": 1}, "file": object{"type": "string", "minLength": 1}, "text": object{"type": "string"}},
		},
		"SchemaFile": object{
			"type": "object", "required": []any{"file"}, "additionalProperties": false,
			"properties": object{"file": object{"type": "string", "minLength": 1, "description": "A JSON file, relative to this one"}},
		},
	}
	for _, k := range []*Kind{environments, eventTypes, tenants, endpoints, sources} {
		copySchema(defs, k.schema)
		delete(defs[k.schema].(object)["properties"].(object), k.own)
	}
	for _, k := range []*Kind{environments, tenants} {
		delete(defs[k.schema].(object), "required") // the name defaults to the uid
	}
	reference := func(name string) object { return object{"$ref": "#/$defs/" + name} }
	secret := func(schema string, members ...string) {
		for _, m := range members {
			defs[schema].(object)["properties"].(object)[m] = reference("Reference")
		}
	}
	secret("NewEndpoint", "secret")
	secret("Auth", "token", "password", "client_secret", "private_key_pem")
	secret("NewCredential", "secret")
	// These are no secrets, and often files.
	for schema, members := range map[string][]string{"Auth": {"username", "token_url", "client_id", "audience", "certificate_pem"}, "NewCredential": {"public_key"}} {
		for _, m := range members {
			properties := defs[schema].(object)["properties"].(object)
			properties[m] = object{"anyOf": []any{properties[m], reference("Reference")}}
		}
	}
	defs["NewEndpoint"].(object)["properties"].(object)["headers"] = object{"type": "object", "additionalProperties": reference("HeaderValue")}
	defs["EventTypeDraft"].(object)["properties"].(object)["schema"] = object{
		"description": "JSON Schema (draft 2020-12) of the payload, or {file: NAME.json}", "type": []any{"object", "boolean"},
	}
	section := func(k *Kind) object {
		return object{"type": []any{"object", "null"}, "additionalProperties": reference(k.schema)}
	}
	for _, k := range []*Kind{eventTypes, endpoints, sources} {
		defs["NewTenant"].(object)["properties"].(object)[k.section] = section(k)
	}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schemaURL, "title": "Objects of a Godwit server, for godwit apply",
		"type": "object", "additionalProperties": false, "$defs": defs,
		"properties": object{
			"environment": object{
				"type": "string", "minLength": 1,
				"description": "The environment of the event types and tenants below, by its uid. Defaults to that of the API key, or else to the one that every server has.",
			},
			environments.section: section(environments), eventTypes.section: section(eventTypes), tenants.section: section(tenants),
		},
	}
}

const componentPath = "#/components/schemas/"

// copySchema copies a schema of the OpenAPI document, and those that it refers to.
func copySchema(defs object, name string) {
	if defs[name] != nil {
		return
	}
	defs[name] = object{} // for references to itself
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case object:
			out := make(object, len(v))
			for name, value := range v {
				if ref, ok := value.(string); ok && name == "$ref" && strings.HasPrefix(ref, componentPath) {
					target := strings.TrimPrefix(ref, componentPath)
					copySchema(defs, target)
					out[name] = "#/$defs/" + target
					continue
				}
				out[name] = walk(value)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i := range v {
				out[i] = walk(v[i])
			}
			return out
		}
		return v
	}
	defs[name] = walk(component(name))
}

// compiled is the schema of a file.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(schemaURL, fileSchema()); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
})

// check compares a document with the schema, and names the place of each mistake.
func check(root *node, faults *Faults) error {
	schema, err := compiled()
	if err != nil {
		return fmt.Errorf("read the schema of files: %w", err)
	}
	err = schema.Validate(root.plain())
	if wrong, ok := err.(*jsonschema.ValidationError); ok {
		explain(root, wrong, faults)
		return nil
	}
	return err
}

var english = message.NewPrinter(language.English)

// explain adds the mistakes at the leaves of an error.
func explain(root *node, e *jsonschema.ValidationError, faults *Faults) {
	at := root.find(e.InstanceLocation)
	where := strings.Join(e.InstanceLocation, ".")
	if where != "" {
		where += ": "
	}
	secret := strings.Contains(e.SchemaURL, "/$defs/Reference")
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			if secret || strings.Contains(e.SchemaURL, "/$defs/HeaderValue") {
				faults.add(root.find(append(slices.Clone(e.InstanceLocation), name)), "%sa secret is given as {env: NAME} or {file: PATH}, not by %q", where, name)
				continue
			}
			faults.add(root.find(append(slices.Clone(e.InstanceLocation), name)), "%sunknown member %q%s", where, name, nearest(e.SchemaURL, name))
		}
		return
	case *kind.Type:
		switch {
		case secret:
			faults.add(at, "%sa secret must not stand in the file: write {env: NAME} for an environment variable, or {file: PATH}", where)
			return
		case strings.Contains(e.SchemaURL, "/$defs/HeaderValue"):
			faults.add(at, "%swrite {env: NAME} or {file: PATH}, since header values may be secrets, or {text: VALUE} if this one is not", where)
			return
		}
	case *kind.AnyOf: // text or a reference
		faults.add(at, "%smust be text, {env: NAME} or {file: PATH}", where)
		return
	}
	if len(e.Causes) == 0 {
		faults.add(at, "%s%s", where, e.ErrorKind.LocalizedString(english))
		return
	}
	for _, cause := range e.Causes {
		explain(root, cause, faults)
	}
}

// nearest suggests a member that a mistyped name may mean.
func nearest(schemaURL, name string) string {
	_, pointer, _ := strings.Cut(schemaURL, "#")
	var at any = fileSchema()
	for _, step := range strings.Split(strings.Trim(pointer, "/"), "/") {
		if o, ok := at.(object); ok && step != "" {
			at = o[step]
		}
	}
	o, _ := at.(object)
	properties, _ := o["properties"].(object)
	best, least := "", len(name)/2+1
	for known := range properties {
		if d := distance(name, known); d < least || d == least && known < best {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
