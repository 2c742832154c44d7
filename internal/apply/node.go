package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// A node is a value of a file with its place.
type node struct {
	at      Position
	scalar  any // string, bool, json.Number or nil
	list    []*node
	members []member
	names   map[string]int // places in members
	shape   shape
}

type shape int

const (
	isScalar shape = iota
	isList
	isMap
)

type member struct {
	name  string
	at    Position
	value *node
}

// maxNodes bounds how many values a file has after its aliases are followed.
const maxNodes = 5_000_000

// A converter turns the documents of one file into nodes.
type converter struct {
	file   string
	nodes  int
	open   []*yaml.Node // aliases that are being followed
	faults Faults
}

// parseFile reads the YAML documents of a file.
func parseFile(file string, text []byte) ([]*node, Faults) {
	c := &converter{file: file}
	var documents []*node
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, c.faults
		}
		if err != nil {
			c.faults.add(Position{File: file}, "is not YAML: %v", err)
			return documents, c.faults
		}
		if len(document.Content) == 1 {
			documents = append(documents, c.node(document.Content[0]))
		}
	}
}

func (c *converter) place(y *yaml.Node) Position { return Position{c.file, y.Line, y.Column} }

func (c *converter) node(y *yaml.Node) *node {
	n := &node{at: c.place(y)}
	if c.nodes++; c.nodes >= maxNodes {
		if c.nodes == maxNodes {
			c.faults.add(n.at, "the file has more than %d values", maxNodes)
		}
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		if slices.Contains(c.open, y.Alias) {
			c.faults.add(n.at, "the alias *%s contains itself", y.Value)
			return n
		}
		c.open = append(c.open, y.Alias)
		target := c.node(y.Alias)
		c.open = c.open[:len(c.open)-1]
		target.at = n.at
		return target
	case yaml.SequenceNode:
		n.shape = isList
		for _, item := range y.Content {
			n.list = append(n.list, c.node(item))
		}
	case yaml.MappingNode:
		n.shape, n.names = isMap, make(map[string]int, len(y.Content)/2)
		for i := 0; i+1 < len(y.Content); i += 2 {
			c.member(n, y.Content[i], y.Content[i+1])
		}
	default:
		n.scalar = c.scalar(y)
	}
	return n
}

func (c *converter) member(n *node, key, value *yaml.Node) {
	at := c.place(key)
	switch {
	case key.Kind != yaml.ScalarNode:
		c.faults.add(at, "a name must be text")
		return
	case key.Tag == "!!merge":
		c.faults.add(at, "<< is not supported; repeat the members, or give the whole value an anchor")
		return
	}
	if first, twice := n.member(key.Value); twice {
		c.faults.add(at, "%q is given twice; it is also at line %d", key.Value, first.at.Line)
		return
	}
	n.names[key.Value] = len(n.members)
	n.members = append(n.members, member{key.Value, at, c.node(value)})
}

func (c *converter) scalar(y *yaml.Node) any {
	switch y.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if y.Decode(&b) == nil {
			return b
		}
	case "!!int":
		if json.Valid([]byte(y.Value)) {
			return json.Number(y.Value)
		}
		var i int64
		if y.Decode(&i) == nil { // hexadecimal and the like
			return json.Number(strconv.FormatInt(i, 10))
		}
	case "!!float":
		if json.Valid([]byte(y.Value)) {
			return json.Number(y.Value)
		}
		var f float64
		if y.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	case "!!str", "!!timestamp":
		return y.Value
	}
	c.faults.add(c.place(y), "%s %q is not supported", y.ShortTag(), y.Value)
	return nil
}

// member finds a member of a mapping.
func (n *node) member(name string) (*member, bool) {
	i, ok := n.names[name]
	if !ok {
		return nil, false
	}
	return &n.members[i], true
}

// value returns the value of a member; nil if there is none.
func (n *node) value(name string) *node {
	if m, ok := n.member(name); ok {
		return m.value
	}
	return nil
}

// plain returns the value without places, as a decoder of JSON would.
func (n *node) plain() any {
	switch n.shape {
	case isList:
		list := make([]any, len(n.list))
		for i, item := range n.list {
			list[i] = item.plain()
		}
		return list
	case isMap:
		object := make(map[string]any, len(n.members))
		for _, m := range n.members {
			object[m.name] = m.value.plain()
		}
		return object
	}
	return n.scalar
}

// find returns the place of the value at a path, or of the nearest value above it.
func (n *node) find(path []string) Position {
	at := n.at
	for _, step := range path {
		var next *node
		switch n.shape {
		case isMap:
			if m, ok := n.member(step); ok {
				at, next = m.at, m.value
			}
		case isList:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.list) {
				next = n.list[i]
				at = next.at
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return at
}

// decode reads JSON with exact numbers.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is text behind the value")
	}
	return v, nil
}
