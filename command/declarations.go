package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// maxFile bounds a declaration file.
const maxFile = 4 << 20

// ReadDeclarations reads a declaration file: {"commands": [...]}. It refuses an unknown member and names its place,
// because a misspelt member would be a rule without effect. Register checks whether the declarations are valid.
func ReadDeclarations(r io.Reader) ([]Declaration, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read declarations: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("read declarations: more than %d bytes", maxFile)
	}
	v, err := document(text)
	if err != nil {
		return nil, fmt.Errorf("read declarations: %w", err)
	}
	var file struct {
		Commands []json.RawMessage `json:"commands"`
	}
	problems := misfits("", v, reflect.TypeFor[struct {
		Commands []Declaration `json:"commands"`
	}]())
	if len(problems) > 0 {
		return nil, fmt.Errorf("read declarations: %w", errors.Join(problems...))
	}
	if err := json.Unmarshal(text, &file); err != nil || file.Commands == nil {
		return nil, errors.New(`read declarations: must be an object with the member "commands", a list`)
	}
	list := make([]Declaration, len(file.Commands))
	for i, one := range file.Commands {
		if err := decodeDeclaration(fmt.Sprintf("/commands/%d", i), one, &list[i]); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("read declarations: %w", errors.Join(problems...))
	}
	return list, nil
}

func decodeDeclaration(at string, text []byte, d *Declaration) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return &fault{at, "must be an object"}
	}
	err := json.Unmarshal(text, d)
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistyped):
		return &fault{at + jsonschema.Pointer(strings.Split(mistyped.Field, ".")...), "must not be a " + mistyped.Value}
	}
	return fmt.Errorf("%s: %w", at, err)
}

// misfits lists members that have no field of exactly the same name (encoding/json would also accept "Class"), and windows
// that cannot be parsed.
func misfits(at string, v any, t reflect.Type) []error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var problems []error
	switch v := v.(type) {
	case string:
		if t != reflect.TypeFor[Window]() {
			return nil
		}
		if _, err := ParseWindow(v); err != nil {
			return []error{&fault{at, err.Error()}}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, item := range v {
			problems = append(problems, misfits(fmt.Sprintf("%s/%d", at, i), item, t.Elem())...)
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil // the schema of args, or a member of another JSON type
		}
		known := map[string]reflect.Type{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			known[name] = t.Field(i).Type
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, ok := known[name]; !ok {
				problems = append(problems, &fault{at + jsonschema.Pointer(name), "is not a member that is known"})
				continue
			}
			problems = append(problems, misfits(at+jsonschema.Pointer(name), v[name], known[name])...)
		}
	}
	return problems
}
