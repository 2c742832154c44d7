package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fileValue is the value of a setting in the file: a string, or a list of strings.
type fileValue struct {
	value any
	line  int
}

// parseFile reads the settings of a YAML file, by key. It refuses an unknown key, so that a misspelt limit is not silently
// ignored.
func parseFile(path string, text []byte) (map[string]fileValue, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	values := map[string]fileValue{}
	if len(doc.Content) == 0 {
		return values, nil
	}
	if err := readMapping(doc.Content[0], "", values); err != nil {
		var at *lineError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("config file %s:%d: %s", path, at.line, at.text)
		}
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	return values, nil
}

type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

func wrong(n *yaml.Node, format string, args ...any) error {
	return &lineError{n.Line, fmt.Sprintf(format, args...)}
}

func readMapping(n *yaml.Node, prefix string, values map[string]fileValue) error {
	if n.Kind != yaml.MappingNode {
		if isNull(n) {
			return nil
		}
		return wrong(n, "%s must hold keys and values", orFile(strings.TrimSuffix(prefix, ".")))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		key := prefix + name.Value
		if _, twice := values[key]; twice {
			return wrong(name, "%q occurs twice", key)
		}
		switch kind(key) {
		case isGroup:
			if err := readMapping(value, key+".", values); err != nil {
				return err
			}
		case isSetting:
			v, err := readValue(value, key)
			if err != nil {
				return err
			}
			if v != nil {
				values[key] = fileValue{v, value.Line}
			}
		default:
			return wrong(name, "unknown key %q; did you mean %q?", key, nearestKey(key))
		}
	}
	return nil
}

func orFile(key string) string {
	if key == "" {
		return "the file"
	}
	return fmt.Sprintf("%q", key)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func readValue(n *yaml.Node, key string) (any, error) {
	switch {
	case isNull(n):
		return nil, nil
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n.Kind == yaml.SequenceNode && isList(key):
		list := []any{}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) {
				return nil, wrong(item, "%q must be a list of plain values", key)
			}
			list = append(list, item.Value)
		}
		return list, nil
	}
	return nil, wrong(n, "%q must be a plain value", key)
}

type keyKind int

const (
	isUnknown keyKind = iota
	isSetting
	isGroup
)

func kind(key string) keyKind {
	for _, s := range Settings() {
		if s.Key == key {
			return isSetting
		}
		if strings.HasPrefix(s.Key, key+".") {
			return isGroup
		}
	}
	return isUnknown
}

func isList(key string) bool {
	for _, s := range Settings() {
		if s.Key == key {
			return s.Type.Kind().String() == "slice"
		}
	}
	return false
}

// nearestKey returns the known key that takes the fewest changes to reach. It also considers flag names, for users who
// write tls-cert.
func nearestKey(key string) string {
	best, least := "", -1
	for _, s := range Settings() {
		for _, candidate := range []string{s.Key, s.Flag} {
			if d := distance(key, candidate); least < 0 || d < least {
				best, least = s.Key, d
			}
		}
		// A key may lack its group: `cert` at the top level means tls.cert.
		if _, last, ok := strings.Cut(s.Key, "."); ok && distance(key, last) == 0 {
			return s.Key
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{change, row[j] + 1, row[j+1] + 1})
		}
	}
	return row[len(b)]
}
