package filter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Members of an event that a filter can look at.
const (
	memberType       = "type"
	memberAttributes = "attributes"
	memberHeaders    = "headers"
	memberSource     = "source"
	memberBody       = "body"
)

var members = []string{memberType, memberAttributes, memberHeaders, memberSource, memberBody}

// A Filter is a compiled filter. It is safe for concurrent use.
type Filter struct{ root node }

// Match reports whether the event passes the filter.
func (f *Filter) Match(d *Document) bool {
	r := run{left: MaxSteps}
	return f.root.match(&r, d, true) && !r.exhausted()
}

// Closed returns a filter that no event passes, for one that cannot be compiled.
func Closed(err *godwit.FieldError) *Filter {
	return &Filter{root: &condition{place: err.Field, want: "cannot be used by this release (" + err.Detail + ")", test: func(any) bool { return false }}}
}

// A Miss is the condition that an event does not meet.
type Miss struct {
	Place string // in the filter, as in "body.amount.$gt"
	Want  string // the condition in words
	Got   string // the event's value as JSON, shortened; empty: the event has no such member
}

// Explain returns the first condition that the event does not meet, and false if it passes the filter.
func (f *Filter) Explain(d *Document) (Miss, bool) {
	r := run{left: MaxSteps}
	matched := f.root.match(&r, d, true)
	switch {
	case r.exhausted():
		return Miss{Place: memberBody, Want: "is too large for this filter, which looks at no more of it", Got: "more"}, true
	case matched:
		return Miss{}, false
	}
	return f.root.why(&run{left: MaxSteps}, d, true), true
}

// String says in one sentence why the event does not pass.
func (m Miss) String() string {
	if m.Got == "" {
		return fmt.Sprintf("%s %s; the event has no such member", m.Place, m.Want)
	}
	return fmt.Sprintf("%s %s; the event has %s", m.Place, m.Want, m.Got)
}

// A node is a part of a filter. Its methods get the value that it looks at; exists is false if the event has none.
type node interface {
	match(r *run, value any, exists bool) bool
	why(r *run, value any, exists bool) Miss // called if match is false
}

// all passes what each of its parts passes.
type all []node

func (n all) match(r *run, value any, exists bool) bool {
	for _, part := range n {
		if !part.match(r, value, exists) {
			return false
		}
	}
	return true
}

func (n all) why(r *run, value any, exists bool) Miss {
	for _, part := range n {
		if !part.match(r, value, exists) {
			return part.why(r, value, exists)
		}
	}
	return Miss{}
}

// either passes what one of its parts passes.
type either struct {
	parts []node
	place string
}

func (n *either) match(r *run, value any, exists bool) bool {
	return slices.ContainsFunc(n.parts, func(part node) bool { return part.match(r, value, exists) })
}

func (n *either) why(r *run, value any, exists bool) Miss {
	return Miss{Place: n.place, Want: "wants one of its parts to match", Got: show(value, exists)}
}

// not passes what its part does not pass.
type not struct {
	part  node
	place string
}

func (n *not) match(r *run, value any, exists bool) bool { return !n.part.match(r, value, exists) }

func (n *not) why(r *run, value any, exists bool) Miss {
	return Miss{Place: n.place, Want: "wants its part not to match", Got: show(value, exists)}
}

// object passes an object whose members pass, or an array with one element that does.
type object []member

type member struct {
	name string
	node node
}

func (n object) match(r *run, value any, exists bool) bool {
	if list, ok := value.([]any); ok && len(list) > 0 {
		return slices.ContainsFunc(list, func(element any) bool { return r.spend(1) && n.match(r, element, true) })
	}
	for i := range n {
		if v, ok := n[i].of(value); !n[i].node.match(r, v, ok) {
			return false
		}
	}
	return true
}

// why explains by the first element of an array.
func (n object) why(r *run, value any, exists bool) Miss {
	if list, ok := value.([]any); ok && len(list) > 0 {
		return n.why(r, list[0], true)
	}
	for i := range n {
		if v, ok := n[i].of(value); !n[i].node.match(r, v, ok) {
			return n[i].node.why(r, v, ok)
		}
	}
	return Miss{}
}

// of returns the member of an object or an event.
func (m *member) of(value any) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		found, ok := v[m.name]
		return found, ok
	case *Document:
		return v.member(m.name)
	}
	return nil, false
}

// shown is how many bytes of a value an explanation shows.
const shown = 120

// show returns a value as JSON, shortened.
func show(value any, exists bool) string {
	if !exists {
		return ""
	}
	if _, ok := value.(*Document); ok {
		return "other values"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "a value"
	}
	if len(text) > shown {
		return strings.ToValidUTF8(string(text[:shown]), "") + "…"
	}
	return string(text)
}
