package catalogue

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// A Standard is the event catalogue of a dialect. It is built in and does not change.
type Standard struct {
	name     string
	envelope *Schema            // any event, of types that are not listed too
	types    []godwit.EventType // in the standard's order
	schemas  map[string]*Schema // by type
}

//go:embed standards/*.json
var standards embed.FS

// OJS is the catalogue of the Open Job Spec: envelopes with specversion, id, type, source, time (OJS-PAY-2, OT-20).
var OJS = sync.OnceValue(func() *Standard { return load("ojs") })

// Cybercube is the catalogue of the CYBERCUBE standard. It checks an event as it is posted (type, data, and the other
// members where they are given) and the complete event alike (CCW-EVT-1, CCW-EVT-10).
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

// Types lists the types, each with its schema and an example. The list is not to be changed.
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

// Check says what in an event does not fit, by path, as in data.object.id. An event of a type that is not listed is held
// against what all events have in common (CCW-EVT-25).
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

// A standardFile is how a standard is written down: the schema of any event, and for each type what is its own.
type standardFile struct {
	Schema map[string]any `json:"schema"`
	Types  []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Data        any             `json:"data"` // schema of the member data, beside the common one; absent: none
		Example     json.RawMessage `json:"example"`
	} `json:"types"`
}

// load reads an embedded file. That it can be read is shown by tests.
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
