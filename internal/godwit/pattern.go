package godwit

import (
	"maps"
	"slices"
	"strings"
)

// ValidEventType returns why a type name is not valid, or "". A valid name has segments of letters, digits, '_' and '-',
// joined by dots.
func ValidEventType(t string) string {
	if t == "" {
		return "must not be empty"
	}
	if len(t) > MaxEventType {
		return "must have at most 128 characters"
	}
	for segment := range strings.SplitSeq(t, ".") {
		if segment == "" {
			return "must not have empty segments between dots"
		}
		for _, c := range []byte(segment) {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
				return "may hold letters, digits, '_', '-' and dots only"
			}
		}
	}
	return ""
}

// EventTypeFrom converts the type name of another system, of a CloudEvent or a vendor's webhook, to an event type. Slashes
// and colons separate segments as dots do: orders/create becomes orders.create, and https://example.com/order:paid becomes
// https.example.com.order.paid. Other characters are unchanged, and may make the result invalid.
func EventTypeFrom(name string) string {
	if !strings.ContainsAny(name, "/:") {
		return name
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == ':' })
	return strings.Join(parts, ".")
}

// ValidPattern returns why an event pattern is not valid, or "". A valid pattern is an exact type, `prefix.*`, or `*`.
func ValidPattern(p string) string {
	if p == "*" {
		return ""
	}
	prefix, _ := strings.CutSuffix(p, ".*")
	if strings.Contains(prefix, "*") {
		return "may use '*' alone or as the last segment only, as in \"order.*\""
	}
	return ValidEventType(prefix)
}

// MatchPattern reports whether the pattern selects the event type. `order.*` selects `order.paid` and
// `order.item.added`, not `order`.
func MatchPattern(pattern, eventType string) bool {
	if pattern == "*" || pattern == eventType {
		return true
	}
	prefix, wild := strings.CutSuffix(pattern, "*")
	return wild && len(eventType) > len(prefix) && strings.HasPrefix(eventType, prefix)
}

// A Filter restricts the events of an endpoint: for each named attribute the event's value must be one of those listed.
type Filter map[string][]string

// Match reports whether the attributes satisfy every member of the filter.
func (f Filter) Match(attributes map[string]string) bool {
	for name, allowed := range f {
		if !hasOneOf(attributes, name, allowed) {
			return false
		}
	}
	return true
}

func hasOneOf(attributes map[string]string, name string, allowed []string) bool {
	value, ok := attributes[name]
	return ok && slices.Contains(allowed, value)
}

// Mismatch returns the attribute, first by name, for which Match fails; empty: it does not.
func (f Filter) Mismatch(attributes map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !hasOneOf(attributes, name, f[name]) {
			return name
		}
	}
	return ""
}
