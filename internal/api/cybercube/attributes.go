package cybercube

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// attributesOf returns the attributes that filters compare: the kind of the resource and its scalar members. Members nearest
// to the top come first. Members that exceed the limits of attributes, or cannot be attributes, are left out.
func attributesOf(object json.RawMessage, livemode bool) map[string]string {
	out := map[string]string{attributeLivemode: strconv.FormatBool(livemode)}
	members := objectOf(object)
	if id, ok := scalar(members["id"]); ok {
		put(out, attributeResource, id)
	}
	if kind, ok := scalar(members["object"]); ok {
		put(out, attributeKind, kind)
	}
	level := map[string]json.RawMessage{}
	for name, raw := range members {
		if len(attributeObject)+len(name) <= godwit.MaxAttributeName {
			level[attributeObject+name] = raw
		}
	}
	for range maxAttributeDepth {
		next := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(level)) {
			if value, ok := scalar(level[name]); ok {
				put(out, name, value)
				continue
			}
			for inner, raw := range objectOf(level[name]) {
				if len(name)+1+len(inner) <= godwit.MaxAttributeName { // otherwise no name below it fits either
					next[name+"."+inner] = raw
				}
			}
		}
		level = next
	}
	return out
}

// maxAttributeDepth is the greatest depth of a member that filters can use.
const maxAttributeDepth = 4

func objectOf(raw json.RawMessage) map[string]json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

func put(out map[string]string, name, value string) {
	if len(out) < godwit.MaxAttributes && management.ValidAttributeName(name) == "" && management.ValidAttributeValue(value) == "" {
		out[name] = value
	}
}
