package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fileName makes the name of a file of an id. Names in taken are not given again: some file systems do not tell cases apart.
func fileName(id string, taken map[string]bool) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, id)
	for n := 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d", strings.TrimSuffix(name, fmt.Sprintf("-%d", n-1)), n)
	}
	if taken != nil {
		taken[strings.ToLower(name)] = true
	}
	return name
}

// members are those of an object, in the order in which they are written.
type members []pair

type pair struct {
	name  string
	value any
}

// render adds a YAML file.
func render(files []exported, name string, content members) ([]exported, error) {
	var b bytes.Buffer
	b.WriteString(head)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	n, err := yamlNode(content)
	if err == nil {
		err = e.Encode(n)
	}
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return append(files, exported{name, b.Bytes()}), nil
}

func yamlNode(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case members:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, p := range v {
			key, err := yamlNode(p.name)
			if err != nil {
				return nil, err
			}
			value, err := yamlNode(p.value)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, key, value)
		}
		return n, nil
	case map[string]any:
		list := members{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, pair{name, v[name]})
		}
		return yamlNode(list)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			value, err := yamlNode(item)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		return n, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(string(v), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(v)}, nil
	}
	n := &yaml.Node{}
	return n, n.Encode(v)
}

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
