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
	MaxSchema   = 32 << 10 // bytes
	maxDepth    = 64       // of objects and lists within each other
	maxRules    = 2000     // subschemas that could look at one value
	maxPatterns = 10_000   // instructions of all its regular expressions
)

// Bounds of holding one event against a schema. Rules times values is what it may take at worst: each rule can find fault
// with each value, and each fault takes memory.
const (
	maxWork      = 4_000_000     // rules times values
	maxExplained = 250_000       // the same, for faults to be told one by one
	maxMatching  = 1_000_000_000 // instructions of regular expressions times bytes
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// A Schema is a compiled JSON Schema.
type Schema struct {
	compiled *jsonschema.Schema
	verdict  *jsonschema.Schema // fits what compiled fits, and does not say why it does not
	size     size
}

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
	s, err := compile(document)
	if err != nil {
		return nil, wrong("%s", err)
	}
	s.size = measure(s.compiled, map[*jsonschema.Schema]size{})
	switch {
	case s.size == recursive:
		return nil, wrong("must not refer to itself: how long a check takes would be up to the event")
	case s.size.rules > maxRules:
		return nil, wrong("is too much work: references and alternatives amount to more than %d rules", maxRules)
	case s.size.patterns > maxPatterns:
		return nil, wrong("is too much work: its regular expressions amount to more than %d instructions", maxPatterns)
	}
	return s, nil
}

// self is what the schema is called while it is compiled; it is no address.
const (
	self    = "urn:godwit:schema"
	verdict = "urn:godwit:verdict"
)

// yesOrNo is what a schema amounts to when it is asked within "not": there faults are not looked for beyond the first.
var yesOrNo = map[string]any{"not": map[string]any{"not": map[string]any{"$ref": self}}}

func compile(document any) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nothingOutside{})
	if err := c.AddResource(self, document); err != nil {
		return nil, errors.New("is not a JSON Schema")
	}
	if err := c.AddResource(verdict, yesOrNo); err != nil {
		return nil, errors.New("is not a JSON Schema")
	}
	s := &Schema{}
	var err error
	if s.compiled, err = c.Compile(self); err == nil {
		s.verdict, err = c.Compile(verdict)
	}
	var invalid *jsonschema.SchemaValidationError
	var outside *jsonschema.LoadURLError
	switch {
	case err == nil:
		return s, nil
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
	work := s.size.rules * values(document)
	switch {
	case work > maxWork || s.size.patterns*len(text) > maxMatching:
		return []godwit.FieldError{{Detail: "holds more than can be held against a schema of this size"}}
	case work > maxExplained:
		if s.verdict.Validate(document) != nil {
			return []godwit.FieldError{{Detail: "does not fit its schema, and holds too much to say where"}}
		}
		return nil
	}
	return s.check(document)
}

// values counts what rules can look at: every value, and the names of members.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += 1 + values(member)
		}
	case []any:
		for _, item := range v {
			n += values(item)
		}
	}
	return n
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
