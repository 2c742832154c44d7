package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Secrets reads what references name.
type Secrets struct {
	// Lookup finds environment variables.
	Lookup func(name string) (string, bool)
}

// A missing reference names a variable or file that is not there.
type missing struct {
	path []string // in the document of the object
	why  string
}

// resolve returns the document to send: without the members to leave out, and with the secrets in place of references.
func (s *Secrets) resolve(o *Object, leaveOut []string) (map[string]any, []missing) {
	out := make(map[string]any, len(o.document))
	var lacks []missing
	for name, value := range o.document {
		switch raw, isRaw := o.raw[name]; {
		case slices.Contains(leaveOut, name):
			continue
		case isRaw:
			out[name] = raw
		case o.Kind == endpoints && (name == "secret" || slices.Contains(sealed, name)), o.Kind == sources && name == "credentials":
			out[name] = s.follow(o, []string{name}, value, &lacks)
		default:
			out[name] = value
		}
	}
	slices.SortFunc(lacks, func(a, b missing) int { return slices.Compare(a.path, b.path) })
	return out, lacks
}

// follow replaces the references in a value.
func (s *Secrets) follow(o *Object, path []string, value any, lacks *[]missing) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.follow(o, append(slices.Clone(path), fmt.Sprint(i)), v[i], lacks)
		}
		return out
	case map[string]any:
		if text, why, isReference := s.reference(o, v); isReference {
			if why != "" {
				*lacks = append(*lacks, missing{path, why})
			}
			return text
		}
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out[name] = s.follow(o, append(slices.Clone(path), name), v[name], lacks)
		}
		return out
	}
	return value
}

// reference reads {env: NAME}, {file: PATH} or {text: VALUE}.
func (s *Secrets) reference(o *Object, v map[string]any) (text, why string, isReference bool) {
	if len(v) != 1 {
		return "", "", false
	}
	if name, ok := v["env"].(string); ok {
		if text, ok = s.Lookup(name); !ok || text == "" {
			why = fmt.Sprintf("the environment variable %s is not set", name)
		}
		return text, why, true
	}
	if name, ok := v["file"].(string); ok {
		content, err := readLimited(beside(o.At.File, name))
		if err != nil {
			return "", err.Error(), true
		}
		return strings.TrimRight(string(content), "\r\n"), "", true
	}
	text, ok := v["text"].(string)
	return text, "", ok
}
