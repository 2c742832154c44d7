package catalogue

import (
	"fmt"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// Bounds of checking one event against a schema.
const (
	maxWork      = 4_000_000     // rules times values
	maxExplained = 250_000       // rules times values up to which every fault is reported
	maxMatching  = 1_000_000_000 // instructions of regular expressions times bytes
)

// A Schema is a compiled JSON Schema.
type Schema struct{ *jsonschema.Schema }

// Compile reads a schema. Its error is a *godwit.FieldError that names the field "schema".
func Compile(text []byte) (*Schema, error) {
	wrong := func(err error) error { return &godwit.FieldError{Field: "schema", Detail: err.Error()} }
	if len(text) > jsonschema.MaxSchema {
		return nil, wrong(fmt.Errorf("must have at most %d bytes", jsonschema.MaxSchema))
	}
	document, err := jsonschema.Decode(text)
	if err != nil {
		return nil, wrong(err)
	}
	s, err := jsonschema.Compile(document)
	if err != nil {
		return nil, wrong(err)
	}
	return &Schema{s}, nil
}

// Check returns what in a JSON text does not match the schema, by path. The path of the whole text is empty.
func (s *Schema) Check(text []byte) []godwit.FieldError {
	document, err := jsonschema.Decode(text)
	if err != nil {
		return []godwit.FieldError{{Detail: err.Error()}}
	}
	work := s.Work(document)
	switch {
	case work > maxWork || s.Matching(len(text)) > maxMatching:
		return []godwit.FieldError{{Detail: "holds more than can be held against a schema of this size"}}
	case work > maxExplained:
		if !s.Fits(document) {
			return []godwit.FieldError{{Detail: "does not fit its schema, and holds too much to say where"}}
		}
		return nil
	}
	return s.check(document)
}

func (s *Schema) check(document any) []godwit.FieldError { return fields(s.Faults(document)) }
