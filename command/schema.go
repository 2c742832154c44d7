package command

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bounds of a schema, which is somebody else's program that every command runs through.
const (
	maxSchema   = 32 << 10 // bytes
	maxRules    = 2000     // subschemas that could look at one value, references written out
	maxPatterns = 10_000   // instructions of all its regular expressions
	maxWork     = 500_000  // rules times values of one command's args
	maxFaults   = 5        // that one refusal tells of
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// self is what a schema is called while it is compiled; it is no address.
const self = "urn:godwit:args"

// argsSchema is what a command's args have to fit, and how they are normalised.
type argsSchema struct {
	compiled *jsonschema.Schema
	root     []*rule
	rules    int
}

// compileArgs reads a declaration's schema; nil is for a command that takes any args.
func compileArgs(text []byte) (*argsSchema, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("has more than %d bytes", maxSchema)
	}
	root, err := document(text)
	if err != nil {
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, errors.New("must be a JSON Schema that is an object")
	}
	if name, given := object["$schema"]; given && name != draft2020 && name != draft2020+"#" {
		return nil, fmt.Errorf("$schema must be %s, or absent", draft2020)
	}
	s := &argsSchema{}
	if s.compiled, err = compileSchema(root); err != nil {
		return nil, err
	}
	switch n := measure(s.compiled, map[*jsonschema.Schema]size{}); {
	case n == recursive:
		return nil, errors.New("must not refer to itself: how long a check takes would be up to the command")
	case n.rules > maxRules:
		return nil, fmt.Errorf("is too much work: references and alternatives amount to more than %d rules", maxRules)
	case n.patterns > maxPatterns:
		return nil, fmt.Errorf("is too much work: its regular expressions amount to more than %d instructions", maxPatterns)
	default:
		s.rules = n.rules
	}
	s.root, err = compileRules(s.compiled)
	return s, err
}

func compileSchema(root any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.RegisterVocabulary(annotationsVocabulary)
	c.AssertVocabs()
	c.UseLoader(nothingOutside{})
	if err := c.AddResource(self, root); err != nil {
		return nil, errors.New("is not a JSON Schema")
	}
	s, err := c.Compile(self)
	var outside *jsonschema.LoadURLError
	var invalid *jsonschema.SchemaValidationError
	var annotation annotationError
	switch {
	case err == nil:
		return s, nil
	case errors.As(err, &annotation):
		return nil, annotation
	case errors.As(err, &outside):
		return nil, fmt.Errorf("refers to %.200q: nothing outside the schema is fetched; put what it needs under $defs", outside.URL)
	case errors.As(err, &invalid):
		if list := faults(invalid.Err, ""); len(list) > 0 {
			return nil, fmt.Errorf("is not a JSON Schema: %w", &list[0])
		}
	}
	return nil, fmt.Errorf("is not a JSON Schema: %.300s", strings.ReplaceAll(err.Error(), self, ""))
}

// nothingOutside is a loader that loads nothing.
type nothingOutside struct{}

func (nothingOutside) Load(string) (any, error) { return nil, errors.New("references are not fetched") }

// check holds args against the schema. Its error is a *Refusal.
func (s *argsSchema) check(args any) error {
	if s.rules*values(args) > maxWork {
		return refuse(InvalidArgs, "/args", "hold more than can be held against a schema of this size")
	}
	err := s.compiled.Validate(args)
	if err == nil {
		return nil
	}
	list := faults(err, "/args")
	if len(list) == 0 {
		return refuse(InvalidArgs, "/args", "do not fit their schema")
	}
	var words []string
	for i := range list[:min(len(list), maxFaults)] {
		words = append(words, list[i].Error())
	}
	if more := len(list) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return &Refusal{Code: InvalidArgs, Field: list[0].pointer, Detail: strings.Join(words, "; ")}
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

// faults lists what does not fit, by place.
func faults(err error, at string) []fault {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return nil
	}
	var list []fault
	collect(v, at, &list)
	slices.SortFunc(list, func(a, b fault) int {
		return cmp.Or(strings.Compare(a.pointer, b.pointer), strings.Compare(a.detail, b.detail))
	})
	return slices.Compact(list)
}

func collect(v *jsonschema.ValidationError, root string, list *[]fault) {
	at := root + pointer(v.InstanceLocation...)
	add := func(at, detail string) { *list = append(*list, fault{at, detail}) }
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(at+pointer(name), "is required")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			add(at+pointer(name), fmt.Sprintf("is required beside %.100s", k.Prop))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(at+pointer(name), "is not a member that is known")
		}
	case *kind.AnyOf, *kind.OneOf:
		add(at, "fits none of the alternatives, or more than one")
	default:
		if len(v.Causes) == 0 {
			add(at, faultDetail(v.ErrorKind))
		}
		for _, cause := range v.Causes {
			collect(cause, root, list)
		}
	}
}

// faultDetail says what is wrong in words that stay the same for the same fault, and without the value.
func faultDetail(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be one of the listed values"
	case *kind.Const:
		return "must be the one value that is allowed"
	case *kind.Format:
		return fmt.Sprintf("must be in the form %.100s", k.Want)
	case *kind.Pattern:
		return fmt.Sprintf("must match %.100s", k.Want)
	case *kind.FalseSchema:
		return "must not be present"
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members", k.Want)
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "must be more than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "must be less than " + k.Want.RatString()
	case *kind.MultipleOf:
		return "must be a multiple of " + k.Want.RatString()
	case *kind.UniqueItems:
		return "must not hold an item twice"
	}
	return "does not fit its schema"
}

// A size is what a schema amounts to when every reference is written out. References that meet again and again multiply, so
// that a short schema can be endless work.
type size struct {
	rules    int // subschemas
	patterns int // instructions of their regular expressions
}

// recursive is the size of a schema that leads back to itself, or can.
var recursive = size{rules: -1}

func measure(s *jsonschema.Schema, seen map[*jsonschema.Schema]size) size {
	if n, known := seen[s]; known {
		return n // recursive while it is under way
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return recursive // where it leads depends on the way that led here
	}
	seen[s] = recursive
	total := size{1, instructions(s.Pattern)}
	for pattern := range s.PatternProperties {
		total.patterns += instructions(pattern)
	}
	for _, part := range append(followed(s), unfollowed(s)...) {
		n := measure(part, seen)
		if n == recursive {
			return recursive
		}
		// Beyond the bounds it does not matter by how much.
		total.rules = min(total.rules+n.rules, maxRules+1)
		total.patterns = min(total.patterns+n.patterns, maxPatterns+1)
	}
	seen[s] = total
	return total
}

// instructions is how many steps a regular expression takes for a byte at worst.
func instructions(r jsonschema.Regexp) int {
	if r == nil {
		return 0
	}
	parsed, err := syntax.Parse(r.String(), syntax.Perl)
	if err != nil {
		return maxPatterns // it was compiled before, so this does not happen
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return maxPatterns
	}
	return len(program.Inst)
}
