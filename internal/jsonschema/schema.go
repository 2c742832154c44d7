package jsonschema

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a schema.
const (
	MaxSchema = 32 << 10 // bytes
	maxRules  = 2000     // subschemas that can apply to one value, with all references expanded
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// Names of the documents during compilation. They are not addresses.
const (
	self    = "urn:godwit:schema"
	verdict = "urn:godwit:verdict"
)

// yesOrNo accepts the same documents as the schema. Inside "not" the validator stops at the first fault and collects none.
var yesOrNo = map[string]any{"not": map[string]any{"not": map[string]any{"$ref": self}}}

// A Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	compiled *validator.Schema
	verdict  *validator.Schema
	size     size
}

// A KeywordError is a vocabulary's error about a keyword. Compile returns it unchanged.
type KeywordError string

func (e KeywordError) Error() string { return string(e) }

// compiling admits one schema at a time: compiling takes many times the memory of the schema's text.
var compiling sync.Mutex

// Compile compiles a decoded schema. Vocabularies, if any, add keywords. The text of an error follows the name of the
// schema: "is not a JSON Schema: …".
func Compile(document any, vocabularies ...*validator.Vocabulary) (*Schema, error) {
	switch d := document.(type) {
	case bool:
	case map[string]any:
		if name, given := d["$schema"]; given && name != draft2020 && name != draft2020+"#" {
			return nil, fmt.Errorf("$schema must be %s, or absent", draft2020)
		}
	default:
		return nil, errors.New("must be a JSON Schema: an object, or true or false")
	}
	compiling.Lock()
	defer compiling.Unlock()
	patterns := &expressions{known: map[string]*expression{}}
	s, err := compile(document, patterns, vocabularies)
	if patterns.refused != nil {
		return nil, patterns.refused // the validator's own error would only say that the expression is invalid
	}
	if err != nil {
		return nil, err
	}
	s.size = measure(s.compiled, map[*validator.Schema]size{})
	switch {
	case s.size == recursive:
		return nil, errors.New("must not refer to itself: how long a check takes would be up to the document")
	case s.size.rules > maxRules:
		return nil, fmt.Errorf("is too much work: references and alternatives amount to more than %d rules", maxRules)
	case s.size.instructions > maxInstructions:
		return nil, errExpressions
	}
	seen := map[*validator.Schema]bool{}
	hasten(s.compiled, seen)
	hasten(s.verdict, seen)
	return s, patterns.compile()
}

func compile(document any, patterns *expressions, vocabularies []*validator.Vocabulary) (*Schema, error) {
	c := validator.NewCompiler()
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	c.UseLoader(nothingOutside{})
	c.UseRegexpEngine(patterns.parse)
	for _, v := range vocabularies {
		c.RegisterVocabulary(v)
		c.AssertVocabs()
	}
	for name, text := range map[string]any{self: document, verdict: yesOrNo} {
		if err := c.AddResource(name, text); err != nil {
			return nil, errors.New("is not a JSON Schema")
		}
	}
	s := &Schema{}
	var err error
	if s.compiled, err = c.Compile(self); err == nil {
		s.verdict, err = c.Compile(verdict)
	}
	var (
		invalid *validator.SchemaValidationError
		outside *validator.LoadURLError
		keyword KeywordError
	)
	switch {
	case err == nil:
		return s, nil
	case errors.As(err, &keyword):
		return nil, keyword
	case errors.As(err, &outside):
		return nil, fmt.Errorf("refers to %.200q: nothing outside the schema is fetched; put what it needs under $defs", outside.URL)
	case errors.As(err, &invalid):
		if list := faults(invalid.Err); len(list) > 0 {
			return nil, fmt.Errorf("is not a JSON Schema: %s", strings.TrimPrefix(Pointer(list[0].Location...)+" "+list[0].Detail, " "))
		}
	}
	return nil, fmt.Errorf("is not a JSON Schema: %.300s", strings.ReplaceAll(err.Error(), self, ""))
}

// nothingOutside is a loader that refuses every address, because the author of a schema chooses its addresses.
type nothingOutside struct{}

func (nothingOutside) Load(string) (any, error) { return nil, errors.New("references are not fetched") }

// Root returns the schema as the validator compiled it, for callers that read their own keywords from it.
func (s *Schema) Root() *validator.Schema { return s.compiled }

// Work is an upper bound of the cost of checking a document: rules times values. Every rule can find a fault in every
// value, and every fault takes memory.
func (s *Schema) Work(document any) int { return s.size.rules * values(document) }

// Matching is an upper bound of the cost of the schema's regular expressions on a text: instructions times bytes.
func (s *Schema) Matching(bytes int) int { return s.size.instructions * bytes }

// Fits reports whether the document is valid. For an invalid document it costs less than Faults.
func (s *Schema) Fits(document any) bool { return s.verdict.Validate(document) == nil }

// Faults lists the violations in the document, sorted by place.
func (s *Schema) Faults(document any) []Fault {
	err := s.compiled.Validate(document)
	if err == nil {
		return nil
	}
	if list := faults(err); len(list) > 0 {
		return list
	}
	return []Fault{{Detail: "does not fit its schema"}}
}

// values counts the values that rules can apply to, including the names of members.
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
