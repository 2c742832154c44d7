package cybercube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/api/httpapi"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// The attributes of events that this API sets and filters by. Members of the resource are named by their path in it:
// object.status, object.owner.id.
const (
	attributeResource = "resource_id"
	attributeKind     = "resource_type"
	attributeLivemode = "livemode"
	attributeObject   = "object."
)

// filterView is an endpoint's filter as this API shows it (CCW-API-19). Attributes that only other APIs set are left out.
type filterView struct {
	ResourceIDs []string       `json:"resource_ids,omitempty"`
	Attributes  map[string]any `json:"attributes,omitempty"` // a string or a list of strings
	Livemode    *bool          `json:"livemode,omitempty"`
}

func viewFilter(f godwit.Filter) *filterView {
	v := filterView{ResourceIDs: f[attributeResource]}
	for name, values := range f {
		path, ours := strings.CutPrefix(name, attributeObject)
		if !ours {
			continue
		}
		if v.Attributes == nil {
			v.Attributes = map[string]any{}
		}
		if v.Attributes[path] = any(values); len(values) == 1 {
			v.Attributes[path] = values[0]
		}
	}
	if live := f[attributeLivemode]; len(live) == 1 {
		is := live[0] == "true"
		v.Livemode = &is
	}
	if v.ResourceIDs == nil && v.Attributes == nil && v.Livemode == nil {
		return nil
	}
	return &v
}

// ours reports whether this API shows the filter member.
func ours(name string) bool {
	return name == attributeResource || name == attributeLivemode || strings.HasPrefix(name, attributeObject)
}

// filter reads the request's filter. Null and absent both mean no filter.
func (f *form) filter() godwit.Filter {
	if !f.has("filter") || f.null("filter") {
		return nil
	}
	var members map[string]json.RawMessage
	f.read("filter", &members, "must be an object")
	out := godwit.Filter{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field := "filter." + httpapi.Clip(name)
		switch raw := members[name]; name {
		case "resource_ids":
			var ids []string
			if json.Unmarshal(raw, &ids) != nil || len(ids) == 0 {
				f.wrong(field, "must be a list of one or more ids")
			}
			f.accept(out, field, attributeResource, ids)
		case "attributes":
			f.attributes(out, field, raw)
		case "livemode":
			var live *bool
			if json.Unmarshal(raw, &live) != nil || live == nil {
				f.wrong(field, "must be true or false")
				continue
			}
			out[attributeLivemode] = []string{fmt.Sprint(*live)}
		default:
			f.wrong(field, "is not a member that is known")
		}
	}
	return out
}

func (f *form) attributes(out godwit.Filter, field string, raw json.RawMessage) {
	var attributes map[string]json.RawMessage
	if json.Unmarshal(raw, &attributes) != nil || attributes == nil {
		f.wrong(field, "must be an object of paths and values")
		return
	}
	for _, path := range slices.Sorted(maps.Keys(attributes)) {
		at := field + "." + httpapi.Clip(path)
		name := attributeObject + path
		if why := management.ValidAttributeName(name); path == "" || why != "" {
			f.wrong(at, "path must have 1 to %d characters: letters, digits, '_', '-' and dots", godwit.MaxAttributeName-len(attributeObject))
			continue
		}
		values, ok := scalars(attributes[path])
		if !ok {
			f.wrong(at, "must be a string, a number, true or false, or a list of such")
			continue
		}
		f.accept(out, at, name, values)
	}
}

func (f *form) accept(out godwit.Filter, field, name string, values []string) {
	if len(values) > management.MaxFilterValues {
		f.wrong(field, "must list at most %d values", management.MaxFilterValues)
		return
	}
	for i, v := range values {
		if why := management.ValidAttributeValue(v); why != "" {
			f.wrong(fmt.Sprintf("%s[%d]", field, i), "%s", why)
		}
	}
	out[name] = values
}

// scalars reads one scalar value, or a list of them.
func scalars(raw json.RawMessage) ([]string, bool) {
	if v, ok := scalar(raw); ok {
		return []string{v}, true
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil || len(many) == 0 {
		return nil, false
	}
	values := make([]string, len(many))
	for i := range many {
		v, ok := scalar(many[i])
		if !ok {
			return nil, false
		}
		values[i] = v
	}
	return values, true
}

// scalar returns the text by which filters compare a scalar JSON value. Numbers are compared as written.
func scalar(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch c := raw[0]; {
	case c == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err == nil
	case c == 't', c == 'f', c == '-', c >= '0' && c <= '9':
		return string(raw), true
	}
	return "", false
}
