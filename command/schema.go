package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

const (
	maxWork   = 500_000 // rules of a schema times values of one command's args
	maxFaults = 5       // faults that one refusal lists
)

// argsSchema validates and normalises a command's args.
type argsSchema struct {
	schema *jsonschema.Schema
	root   []*rule
}

// compileArgs compiles a declaration's schema. It returns nil for a command that takes any args.
func compileArgs(text []byte) (*argsSchema, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if len(text) > jsonschema.MaxSchema {
		return nil, fmt.Errorf("has more than %d bytes", jsonschema.MaxSchema)
	}
	root, err := document(text)
	if err != nil {
		return nil, err
	}
	if _, ok := root.(map[string]any); !ok {
		return nil, errors.New("must be a JSON Schema that is an object")
	}
	schema, err := jsonschema.Compile(root, annotationsVocabulary)
	if err != nil {
		return nil, err
	}
	rules, err := compileRules(schema.Root())
	return &argsSchema{schema, rules}, err
}

// check validates args against the schema. Its error is a *Refusal.
func (s *argsSchema) check(args any) error {
	if s.schema.Work(args) > maxWork {
		return refuse(InvalidArgs, "/args", "hold more than can be held against a schema of this size")
	}
	list := s.schema.Faults(args)
	if len(list) == 0 {
		return nil
	}
	at := func(f *jsonschema.Fault) string { return "/args" + jsonschema.Pointer(f.Location...) }
	var words []string
	for i := range list[:min(len(list), maxFaults)] {
		words = append(words, at(&list[i])+" "+list[i].Detail)
	}
	if more := len(list) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return &Refusal{Code: InvalidArgs, Field: at(&list[0]), Detail: strings.Join(words, "; ")}
}
