package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Bounds of a schema, which is somebody else's program that every event runs through.
const (
	MaxSchema = 32 << 10 // bytes
	maxDepth  = 64       // of objects and lists within each other
	maxRules  = 2000     // subschemas that could look at one value
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// A Schema is a compiled JSON Schema.
type Schema struct{ compiled *jsonschema.Schema }

// Compile reads a schema. Its error is a *godwit.FieldError that names the field "schema".
func Compile(text []byte) (*Schema, error) {
	wrong := func(format string, args ...any) error {
		return &godwit.FieldError{Field: "schema", Detail: fmt.Sprintf(format, args...)}
	}
	if len(text) > MaxSchema {
		return nil, wrong("must have at most %d bytes", MaxSchema)
	}
	document, err := parse(text)
	if err != nil {
		return nil, wrong("%s", err)
	}
	switch d := document.(type) {
	case bool:
	case map[string]any:
		if name, given := d["$schema"]; given && name != draft2020 && name != draft2020+"#" {
			return nil, wrong("$schema must be %s, or absent", draft2020)
		}
	default:
		return nil, wrong("must be a JSON Schema: an object, or true or false")
	}
	compiled, err := compile(document)
	if err != nil {
		return nil, wrong("%s", err)
	}
	if n := rules(compiled, map[*jsonschema.Schema]int{}); n == recursive {
		return nil, wrong("must not refer to itself: how long a check takes would be up to the event")
	} else if n > maxRules {
		return nil, wrong("is too much work: references and alternatives amount to more than %d rules", maxRules)
	}
	return &Schema{compiled}, nil
}

// self is what the schema is called while it is compiled; it is no address.
const self = "urn:godwit:schema"

func compile(document any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nothingOutside{})
	if err := c.AddResource(self, document); err != nil {
		return nil, errors.New("is not a JSON Schema")
	}
	compiled, err := c.Compile(self)
	var invalid *jsonschema.SchemaValidationError
	var outside *jsonschema.LoadURLError
	switch {
	case err == nil:
		return compiled, nil
	case errors.As(err, &outside):
		return nil, fmt.Errorf("refers to %.200q: nothing outside the schema is fetched; put what it needs under $defs", outside.URL)
	case errors.As(err, &invalid):
		return nil, fmt.Errorf("is not a JSON Schema: %s", describe(invalid.Err))
	}
	return nil, fmt.Errorf("is not a JSON Schema: %.300s", strings.ReplaceAll(err.Error(), self, ""))
}

func describe(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return "it does not fit the draft"
	}
	for _, f := range fields(v) {
		return strings.TrimPrefix(f.Field+" "+f.Detail, " ")
	}
	return "it does not fit the draft"
}

// nothingOutside is a loader that loads nothing: an address in a schema is an address that a tenant chose.
type nothingOutside struct{}

func (nothingOutside) Load(string) (any, error) {
	return nil, errors.New("references are not fetched")
}

// Check says what in a JSON text does not fit the schema, by path; the path of the text as a whole is empty.
func (s *Schema) Check(text []byte) []godwit.FieldError {
	document, err := parse(text)
	if err != nil {
		return []godwit.FieldError{{Detail: err.Error()}}
	}
	return s.check(document)
}

func (s *Schema) check(document any) []godwit.FieldError {
	err := s.compiled.Validate(document)
	if err == nil {
		return nil
	}
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return []godwit.FieldError{{Detail: "does not fit its schema"}}
	}
	return fields(v)
}

// parse decodes JSON. Numbers stay as they are written, within bounds: they are calculated with exactly, so that
// 1e999999 would take as much memory as it has digits.
func parse(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var document any
	if err := dec.Decode(&document); err != nil {
		return nil, errors.New("is not valid JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("is not valid JSON")
	}
	return document, bounded(document, maxDepth)
}

func bounded(v any, depth int) error {
	if depth == 0 {
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if err := bounded(member, depth-1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := bounded(item, depth-1); err != nil {
				return err
			}
		}
	case json.Number:
		return plainNumber(string(v))
	}
	return nil
}

func plainNumber(text string) error {
	const digits, exponent = 400, 400
	mantissa, power, scientific := strings.Cut(strings.ToLower(text), "e")
	n := 0
	for _, c := range strings.TrimLeft(strings.TrimLeft(power, "+-"), "0") {
		if n = n*10 + int(c-'0'); n > exponent {
			break
		}
	}
	if len(mantissa) > digits || scientific && n > exponent {
		return errors.New("holds a number too long to calculate with")
	}
	return nil
}
