package typedoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// A Type is an event type of a document.
type Type struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Deprecated  bool            `json:"deprecated,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // nil: none
	Example     json.RawMessage `json:"example,omitempty"`
	Place       string          `json:"-"` // where in the document it was found
}

// MaxDocument bounds a document.
const MaxDocument = 16 << 20

type object = map[string]any

// Read finds the event types of an OpenAPI or AsyncAPI document in JSON or YAML, sorted by name. Rename maps the names of webhooks and
// messages to types. The error names every place that cannot be read.
func Read(document []byte, rename map[string]string) ([]Type, error) {
	if len(document) > MaxDocument {
		return nil, fmt.Errorf("the document is larger than %d MiB", MaxDocument>>20)
	}
	var root object
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, fmt.Errorf("the document is neither JSON nor YAML: %w", err)
	}
	withoutTimes(root)
	r := &reader{root: root, rename: rename}
	openapi, _ := root["openapi"].(string)
	asyncapi, _ := root["asyncapi"].(string)
	switch {
	case strings.HasPrefix(openapi, "3.1.") || strings.HasPrefix(openapi, "3.2."):
		r.openAPI()
	case strings.HasPrefix(asyncapi, "3."):
		r.asyncAPI()
	case openapi != "":
		return nil, fmt.Errorf("the document is OpenAPI %s; webhooks came with 3.1", openapi)
	case asyncapi != "":
		return nil, fmt.Errorf("the document is AsyncAPI %s; convert it to version 3 first", asyncapi)
	default:
		return nil, errors.New("the document is neither OpenAPI (a member openapi) nor AsyncAPI (a member asyncapi)")
	}
	r.reportUnused()
	if len(r.types) == 0 && len(r.faults) == 0 {
		return nil, errors.New("the document has no webhooks and no messages that are sent")
	}
	slices.SortFunc(r.types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return r.types, errors.Join(r.faults...)
}

// A reader collects the types of one document.
type reader struct {
	root   object
	rename map[string]string
	used   map[string]bool // names of rename that occurred
	types  []Type
	faults []error
}

func (r *reader) fault(place, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

// add adds a type under its name in the document, or under the name that it is renamed to.
func (r *reader) add(name string, t Type, schema, example any) {
	t.Name = name
	if to, given := r.rename[name]; given {
		if r.used == nil {
			r.used = map[string]bool{}
		}
		t.Name, r.used[name] = to, true
	}
	if why := godwit.ValidEventType(t.Name); why != "" {
		r.fault(t.Place, "%q is not an event type: it %s; use --rename %s=TYPE", t.Name, why, name)
		return
	}
	if slices.ContainsFunc(r.types, func(other Type) bool { return other.Name == t.Name }) {
		r.fault(t.Place, "the type %s occurs twice", t.Name)
		return
	}
	var err error
	if schema != nil {
		if schema, err = r.standalone(t.Name, schema); err == nil {
			t.Schema, err = json.Marshal(schema)
		}
	}
	if err == nil && example != nil {
		t.Example, err = json.Marshal(example)
	}
	if err != nil {
		r.fault(t.Place, "%v", err)
		return
	}
	r.types = append(r.types, t)
}

func (r *reader) reportUnused() {
	for _, name := range slices.Sorted(maps.Keys(r.rename)) {
		if !r.used[name] {
			r.fault("--rename", "the document has no webhook or message %q", name)
		}
	}
}

// follow returns the object at v, or the one that v refers to.
func (r *reader) follow(v any, place string) object {
	o, _ := v.(object)
	for range 16 {
		ref, given := o["$ref"].(string)
		if !given {
			return o
		}
		target, err := r.lookup(ref)
		if err != nil {
			r.fault(place, "%v", err)
			return nil
		}
		o, _ = target.(object)
	}
	r.fault(place, "refers to itself")
	return nil
}

// lookup resolves a reference within the document.
func (r *reader) lookup(ref string) (any, error) {
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, fmt.Errorf("refers to %q; only references within the document are followed: bundle it first", ref)
	}
	var at any = r.root
	for _, step := range strings.Split(pointer, "/") {
		o, ok := at.(object)
		if at = o[unescape(step)]; !ok || at == nil {
			return nil, fmt.Errorf("refers to %q, which the document does not have", ref)
		}
	}
	return at, nil
}

var (
	unescaper = strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}", "%20", " ")
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
)

func unescape(step string) string { return unescaper.Replace(step) }

func text(o object, members ...string) string {
	for _, m := range members {
		if s, _ := o[m].(string); s != "" {
			return strings.TrimSpace(s)
		}
	}
	return ""
}
