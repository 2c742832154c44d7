package catalogue

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// A Standard is the built-in event catalogue of a dialect. It never changes.
type Standard struct {
	name     string
	envelope *Schema            // for events of any type, including types that are not listed
	types    []godwit.EventType // in the standard's order
	schemas  map[string]*Schema // by type
}

//go:embed standards/*.json
var standards embed.FS

// OJS is the catalogue of the Open Job Spec: envelopes with specversion, id, type, source, time (OJS-PAY-2, OT-20).
var OJS = sync.OnceValue(func() *Standard { return load("ojs") })

// Cybercube is the catalogue of the CYBERCUBE standard. It checks both posted events (type, data, and any other members) and
// complete events (CCW-EVT-1, CCW-EVT-10).
var Cybercube = sync.OnceValue(func() *Standard { return load("cybercube") })

// StandardNamed finds a standard: "ojs" or "cybercube".
func StandardNamed(name string) (*Standard, bool) {
	switch name {
	case godwit.FormatOJS:
		return OJS(), true
	case godwit.FormatCybercube:
		return Cybercube(), true
	}
	return nil, false
}

// Name is "ojs" or "cybercube".
func (s *Standard) Name() string { return s.name }

// Types lists the types, each with its schema and an example. Callers must not change the list.
func (s *Standard) Types() []godwit.EventType { return s.types }

// Has reports whether the standard lists the type.
func (s *Standard) Has(eventType string) bool { return s.schemas[eventType] != nil }

// Type finds a type that the standard lists.
func (s *Standard) Type(name string) (*godwit.EventType, bool) {
	for i := range s.types {
		if s.types[i].Name == name {
			return &s.types[i], true
		}
	}
	return nil, false
}

// Check returns what in an event does not match, by path, as in data.object.id. Types that are not listed are checked
// against the rules for all events (CCW-EVT-25).
func (s *Standard) Check(event []byte) []godwit.FieldError {
	document, err := jsonschema.Decode(event)
	if err != nil {
		return []godwit.FieldError{{Detail: err.Error()}}
	}
	members, _ := document.(map[string]any)
	eventType, _ := members["type"].(string)
	if own := s.schemas[eventType]; own != nil {
		return own.check(document)
	}
	return s.envelope.check(document)
}

// A standardFile is the file format of a standard: the schema of all events, and the specific part of each type.
type standardFile struct {
	Schema map[string]any `json:"schema"`
	Types  []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Data        any             `json:"data"` // schema of the member data, in addition to the common one; may be absent
		Example     json.RawMessage `json:"example"`
	} `json:"types"`
}

// load reads an embedded file. Tests show that every embedded file is valid.
func load(name string) *Standard {
	text, err := standards.ReadFile("standards/" + name + ".json")
	must(name, err)
	var file standardFile
	must(name, json.Unmarshal(text, &file))
	s := &Standard{name: name, schemas: map[string]*Schema{}}
	s.envelope, err = Compile(encoded(name, file.Schema))
	must(name, err)
	for _, t := range file.Types {
		own := map[string]any{"type": map[string]any{"const": t.Name}}
		if t.Data != nil {
			own["data"] = t.Data
		}
		whole := map[string]any{}
		for k, v := range file.Schema {
			whole[k] = v
		}
		whole["title"] = t.Name
		whole["allOf"] = append([]any{map[string]any{"properties": own}}, anys(file.Schema["allOf"])...)
		schema := encoded(name, whole)
		s.schemas[t.Name], err = Compile(schema)
		must(t.Name, err)
		s.types = append(s.types, godwit.EventType{
			Name: t.Name, Description: t.Description, Example: t.Example,
			Schemas: []godwit.EventSchema{{Version: 1, Schema: schema}},
		})
	}
	return s
}

func anys(v any) []any {
	list, _ := v.([]any)
	return list
}

func encoded(name string, v any) []byte {
	text, err := json.Marshal(v)
	must(name, err)
	return text
}

func must(name string, err error) {
	if err != nil {
		panic(fmt.Sprintf("built-in catalogue %s: %v", name, err))
	}
}
