package apply

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Difference is a member that has another value than it should have.
type Difference struct {
	Path   string `json:"member"`
	Before any    `json:"before"` // nil: absent
	After  any    `json:"after"`
}

// inherited stands for a setting that a tenant has from its environment.
type inherited struct{}

func (inherited) String() string               { return "(the environment's)" }
func (inherited) MarshalJSON() ([]byte, error) { return []byte(`"(the environment's)"`), nil }

// hidden stands for a value that is not shown.
type hidden struct{}

func (hidden) String() string               { return "(secret)" }
func (hidden) MarshalJSON() ([]byte, error) { return []byte(`"(secret)"`), nil }

// A Found is an object of the server.
type Found struct {
	Address
	id       string // the server's own; empty for event types
	etag     string // empty: not known yet
	document map[string]any
}

// differences lists the members of an object that differ from what the server has. The environment is the one that lends defaults, as it
// will be.
func differences(want *Object, have *Found, environment map[string]any) []Difference {
	var out []Difference
	k := want.Kind
	usual := k.usual(want.document, environment)
	inherits, _ := have.document["inherits"].([]any)
	for _, name := range k.members() {
		after, given := want.document[name]
		before := have.document[name]
		switch {
		case k == tenants && slices.Contains(inheritable(), name):
			lent := slices.Contains(inherits, any(name))
			switch {
			case lent && !given:
				continue
			case lent:
				before = inherited{}
			case !given:
				after = inherited{}
			}
			if lent || !given {
				out = append(out, Difference{name, before, after})
				continue
			}
		case !given && slices.Contains(k.stays, name):
			continue
		case !given:
			after = usual[name]
		}
		if before == nil && after == nil || k.precision[name] != exact && empty(before) && empty(after) {
			continue
		}
		if name == "content_filter" && hollow(before) && hollow(after) {
			continue
		}
		if slices.Contains(k.folded, name) && equal(folded(before), folded(after)) {
			continue
		}
		compare(name, before, after, k.precision[name], &out)
	}
	if k == endpoints {
		sealedDifferences(want.document, have.document, &out)
	}
	return out
}

// folded returns a list of names in lower case.
func folded(v any) any {
	list, _ := v.([]any)
	out := make([]any, len(list))
	for i := range list {
		name, _ := list[i].(string)
		out[i] = strings.ToLower(name)
	}
	return out
}

// usual returns the values of members that are absent in a document.
func (k *Kind) usual(document, environment map[string]any) map[string]any {
	if k != endpoints {
		return k.defaults
	}
	usual := maps.Clone(k.defaults)
	if profile, _ := environment["endpoint_profile"].(string); profile != "" {
		usual["profile"] = profile
	}
	profile := text(document, "profile")
	if profile == "" {
		profile = text(usual, "profile")
	}
	_, algorithm := document["algorithm"]
	_, secret := document["secret"]
	if signing := text(environment, "endpoint_signing"); signing != "" && profile == defaultProfile && !algorithm && !secret { // the profile whose endpoints may share keys
		usual["signing"] = signing
	}
	if profile, given := document["profile"]; !given || profile == usual["profile"] {
		usual["policy"] = environment["endpoint_policy"]
	}
	return usual
}

// sealedDifferences compares the names of headers and the kind of a credential. Their values are not shown by the server.
func sealedDifferences(want, have map[string]any, out *[]Difference) {
	names, _ := have["header_names"].([]any)
	headers, _ := want["headers"].(map[string]any)
	known := map[string]bool{}
	for _, name := range names {
		text, _ := name.(string)
		known[strings.ToLower(text)] = true
	}
	wanted := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if wanted[strings.ToLower(name)] = true; !known[strings.ToLower(name)] {
			*out = append(*out, Difference{"headers." + name, nil, hidden{}})
		}
	}
	for _, name := range names {
		if text, _ := name.(string); !wanted[strings.ToLower(text)] {
			*out = append(*out, Difference{"headers." + text, hidden{}, nil})
		}
	}
	auth, _ := want["auth"].(map[string]any)
	compare("auth.kind", have["auth_kind"], auth["kind"], loose, out)
}

// A precision says when a member that is absent equals one that is there.
type precision int

const (
	loose    precision = iota // if it is empty: the API leaves out empty members
	settings                  // if it is an empty list or object: 0, false and "" are settings
	exact                     // never
)

// compare adds the places at which two values differ.
func compare(path string, before, after any, p precision, out *[]Difference) {
	b, isObject := before.(map[string]any)
	a, both := after.(map[string]any)
	if !isObject || !both {
		if !equal(before, after) {
			*out = append(*out, Difference{path, before, after})
		}
		return
	}
	names := slices.Collect(maps.Keys(b))
	for name := range a {
		if _, known := b[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		x, inBefore := b[name]
		y, inAfter := a[name]
		switch {
		case inBefore && inAfter:
			compare(path+"."+name, x, y, p, out)
		case p == loose && empty(x) && empty(y), p == settings && hollow(x) && hollow(y):
		default:
			*out = append(*out, Difference{path + "." + name, x, y})
		}
	}
}

// hollow reports whether a value is absent or has no members.
func hollow(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		f, err := v.Float64()
		return err == nil && f == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// equal compares values; numbers by what they mean.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, errX := strconv.ParseFloat(string(a), 64)
		y, errY := strconv.ParseFloat(string(b), 64)
		return errX == nil && errY == nil && x == y
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return a == b
}
