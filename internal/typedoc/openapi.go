package typedoc

import (
	"maps"
	"slices"
	"strings"
)

// openAPI reads the webhooks of an OpenAPI document: the name of a webhook is the type, the body of its request the payload.
func (r *reader) openAPI() {
	webhooks, _ := r.root["webhooks"].(object)
	for _, name := range slices.Sorted(maps.Keys(webhooks)) {
		place := "webhooks." + name
		item := r.follow(webhooks[name], place)
		op := operation(item)
		if op == nil {
			r.fault(place, "has no operation; a webhook is a post")
			continue
		}
		t := Type{Description: text(op, "description", "summary"), Place: place}
		if t.Description == "" {
			t.Description = text(item, "description", "summary")
		}
		t.Deprecated, _ = op["deprecated"].(bool)
		content, _ := r.follow(op["requestBody"], place+".requestBody")["content"].(object)
		media := jsonMedia(content)
		r.add(name, t, media["schema"], r.example(media, place))
	}
}

func operation(item object) object {
	for _, method := range []string{"post", "put", "patch"} {
		if op, given := item[method].(object); given {
			return op
		}
	}
	return nil
}

// jsonMedia returns the JSON body among the media types of a request.
func jsonMedia(content object) object {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		kind, _, _ := strings.Cut(name, ";")
		if kind = strings.TrimSpace(kind); kind == "application/json" || strings.HasSuffix(kind, "+json") {
			media, _ := content[name].(object)
			return media
		}
	}
	return nil
}

// example returns the example of a body: its own, or the first of several by name.
func (r *reader) example(media object, place string) any {
	if v, given := media["example"]; given {
		return v
	}
	examples, _ := media["examples"].(object)
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		if v, given := r.follow(examples[name], place+".examples."+name)["value"]; given {
			return v
		}
	}
	return nil
}
