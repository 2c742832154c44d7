package typedoc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// asyncAPI reads the messages that the application of an AsyncAPI document sends. A document without operations does not say who
// sends what; then all messages of its channels count.
func (r *reader) asyncAPI() {
	operations, _ := r.root["operations"].(object)
	if len(operations) == 0 {
		channels, _ := r.root["channels"].(object)
		for _, name := range slices.Sorted(maps.Keys(channels)) {
			r.messagesOf(r.follow(channels[name], "channels."+name), "channels."+name)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		place := "operations." + name
		op := r.follow(operations[name], place)
		if op["action"] != "send" {
			continue
		}
		listed, given := op["messages"].([]any)
		if !given {
			r.messagesOf(r.follow(op["channel"], place+".channel"), place+".channel")
			continue
		}
		for i, m := range listed {
			key := ""
			o, _ := m.(object)
			if ref, isRef := o["$ref"].(string); isRef {
				key = unescape(ref[strings.LastIndex(ref, "/")+1:])
			}
			r.message(key, m, fmt.Sprintf("%s.messages[%d]", place, i))
		}
	}
}

func (r *reader) messagesOf(channel object, place string) {
	messages, _ := channel["messages"].(object)
	for _, key := range slices.Sorted(maps.Keys(messages)) {
		r.message(key, messages[key], place+".messages."+key)
	}
}

// message reads one message. Its type is its name, or else its key.
func (r *reader) message(key string, v any, place string) {
	m := r.follow(v, place)
	if m == nil {
		return
	}
	name := text(m, "name")
	if name == "" || godwit.ValidEventType(name) != "" && r.rename[name] == "" {
		name = key
	}
	if i := slices.IndexFunc(r.types, func(t Type) bool { return t.Name == name }); i >= 0 {
		return // several operations send it
	}
	t := Type{Description: text(m, "description", "summary", "title"), Place: place}
	t.Deprecated, _ = m["x-deprecated"].(bool)
	payload, err := r.payload(m["payload"])
	if err != nil {
		r.fault(place, "%v", err)
		return
	}
	var example any
	examples, _ := m["examples"].([]any)
	for _, e := range examples {
		if o, _ := e.(object); example == nil {
			example = o["payload"]
		}
	}
	r.add(name, t, payload, example)
}

// payload returns the JSON Schema of a message. A schema in another language is refused.
func (r *reader) payload(v any) (any, error) {
	o, isObject := v.(object)
	format, given := o["schemaFormat"].(string)
	if !isObject || !given {
		return v, nil
	}
	kind, _, _ := strings.Cut(format, ";")
	if kind == "application/vnd.aai.asyncapi" || kind == "application/vnd.aai.asyncapi+json" || kind == "application/vnd.aai.asyncapi+yaml" ||
		strings.HasPrefix(kind, "application/schema+") {
		return o["schema"], nil
	}
	return nil, fmt.Errorf("its payload is described by %q; only JSON Schema is read", format)
}
