package compat

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// object compares the members of objects.
func (i *inclusion) object(n, w *flat, place string) {
	if !mayBe(n, "object") {
		return
	}
	required, _ := n.keywords["required"].([]any)
	wanted, _ := w.keywords["required"].([]any)
	for _, name := range wanted {
		if !slices.Contains(required, name) {
			i.fault(place+"/required", "%q is required", name)
		}
	}
	narrow, _ := n.keywords["properties"].(map[string]any)
	wide, _ := w.keywords["properties"].(map[string]any)
	for _, name := range sortedKeys(narrow) {
		there := place + "/properties/" + escape(name)
		if in, named := wide[name]; named {
			i.schema(narrow[name], in, there)
		} else if rest, given := w.keywords["additionalProperties"]; given && w.keywords["patternProperties"] == nil {
			i.schema(narrow[name], rest, there)
		}
	}
	rest, limited := w.keywords["additionalProperties"]
	if !limited {
		return
	}
	before, given := n.keywords["additionalProperties"]
	if !given {
		before = true
	}
	i.schema(before, rest, place+"/additionalProperties")
}

// array compares the items of arrays.
func (i *inclusion) array(n, w *flat, place string) {
	if !mayBe(n, "array") {
		return
	}
	if w.keywords["uniqueItems"] == true && n.keywords["uniqueItems"] != true {
		i.fault(place+"/uniqueItems", "items must be unique")
	}
	narrow, _ := n.keywords["prefixItems"].([]any)
	wide, _ := w.keywords["prefixItems"].([]any)
	for at := range max(len(narrow), len(wide)) {
		i.schema(item(n, narrow, at), item(w, wide, at), place+"/prefixItems/"+json.Number(big.NewInt(int64(at)).String()).String())
	}
	i.schema(item(n, nil, 0), item(w, nil, 0), place+"/items")
}

// item returns the schema of an item.
func item(f *flat, prefix []any, at int) any {
	if at < len(prefix) {
		return prefix[at]
	}
	if rest, given := f.keywords["items"]; given {
		return rest
	}
	return true
}

// mayBe reports whether a document of the schema may have the type.
func mayBe(f *flat, t string) bool {
	types := typesOf(f.keywords)
	if types == nil {
		types = typesOfValues(f.keywords)
	}
	return types == nil || slices.Contains(types, t)
}

// A bound is a keyword that limits a number or a size.
type bound struct {
	keyword string
	of      string // the type that it limits
	lower   bool
}

var boundaries = []bound{
	{"minimum", "number", true}, {"maximum", "number", false}, {"exclusiveMinimum", "number", true}, {"exclusiveMaximum", "number", false},
	{"minLength", "string", true}, {"maxLength", "string", false}, {"minItems", "array", true}, {"maxItems", "array", false},
	{"minProperties", "object", true}, {"maxProperties", "object", false},
}

// bounds compares limits of numbers and sizes.
func (i *inclusion) bounds(n, w *flat, place string) {
	for _, b := range boundaries {
		limit := number(w.keywords[b.keyword])
		if limit == nil || !mayBe(n, b.of) && !(b.of == "number" && mayBe(n, "integer")) {
			continue
		}
		if _, listed := listedValues(n.keywords); listed && b.of != "object" && b.of != "array" && i.valuesWithin(n, b, limit) {
			continue
		}
		if !implied(n.keywords, b, limit) {
			i.fault(place+"/"+b.keyword, "the limit %s is new or narrower", limit.RatString())
		}
	}
}

// implied reports whether a bound of the narrow schema implies the limit.
func implied(keywords map[string]any, b bound, limit *big.Rat) bool {
	for _, other := range boundaries {
		if other.of != b.of || other.lower != b.lower {
			continue
		}
		own := number(keywords[other.keyword])
		if own == nil {
			continue
		}
		order := own.Cmp(limit)
		if !b.lower {
			order = -order
		}
		// An exclusive limit is implied by an equal exclusive one only.
		strict := strings.HasPrefix(b.keyword, "exclusive") && !strings.HasPrefix(other.keyword, "exclusive")
		if order > 0 || order == 0 && !strict {
			return true
		}
	}
	zero := new(big.Rat)
	return b.lower && b.of != "number" && limit.Cmp(zero) == 0
}

// valuesWithin reports whether all listed values are within the limit, or of a type that it does not limit.
func (i *inclusion) valuesWithin(n *flat, b bound, limit *big.Rat) bool {
	values, _ := listedValues(n.keywords)
	for _, v := range values {
		size := number(v)
		if text, isText := v.(string); isText {
			size = new(big.Rat).SetInt64(int64(len([]rune(text))))
			if b.of != "string" {
				continue
			}
		} else if b.of == "string" || size == nil {
			continue
		}
		order := size.Cmp(limit)
		if !b.lower {
			order = -order
		}
		if order < 0 || order == 0 && strings.HasPrefix(b.keyword, "exclusive") {
			return false
		}
	}
	return true
}

func number(v any) *big.Rat {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return r
		}
	case float64:
		return new(big.Rat).SetFloat64(v)
	}
	return nil
}

func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
