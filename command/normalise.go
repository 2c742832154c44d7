package command

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// normaliseArgs converts a document to the form that enters the key and that the handler gets (IDS-KEY-8), and validates
// it. The error is a *Refusal.
//
//	document (NFC, exact numbers) ─ defaults, folding, sets ─ hold against the schema ─ drop what is ephemeral
//
// The schema validates the normalised args: a required member with a default may be absent, and a set that names an item
// twice holds it once. The schema still sees ephemeral members; later stages do not.
func (s *argsSchema) normaliseArgs(args any) (any, error) {
	if s == nil {
		return args, nil
	}
	// The limit also bounds the normalisation, which has as many rules as the schema.
	if s.schema.Work(args) > maxWork {
		return nil, refuse(InvalidArgs, "/args", "hold more than can be held against a schema of this size")
	}
	args = normalised(args, s.root, false)
	if err := s.check(args); err != nil {
		return nil, err
	}
	return normalised(args, s.root, true), nil
}

// normalised applies rules to a value, in place. With drop it removes ephemeral members; without, it fills in defaults and
// folds strings.
func normalised(v any, rules []*rule, drop bool) any {
	if len(rules) == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		normaliseObject(v, rules, drop)
	case []any:
		for i, item := range v {
			v[i] = normalised(item, each(rules, func(r *rule) []*rule { return r.item(i) }), drop)
		}
		if slices.ContainsFunc(rules, func(r *rule) bool { return r.set }) {
			return asSet(v)
		}
	case string:
		return folded(v, rules)
	}
	return v
}

func normaliseObject(object map[string]any, rules []*rule, drop bool) {
	if !drop {
		fillIn(object, rules)
	}
	for name, member := range object {
		parts := each(rules, func(r *rule) []*rule { return r.member(name) })
		if drop && slices.ContainsFunc(parts, func(r *rule) bool { return r.ephemeral }) {
			delete(object, name)
			continue
		}
		object[name] = normalised(member, parts, drop)
	}
}

func fillIn(object map[string]any, rules []*rule) {
	for _, r := range rules {
		for name, p := range r.properties {
			if _, given := object[name]; given {
				continue
			}
			if fallback := p.defaultValue(); fallback != nil {
				object[name] = clone(*fallback)
			}
		}
	}
}

// each collects the rules of all given rules for a part of the value.
func each(rules []*rule, part func(*rule) []*rule) []*rule {
	var list []*rule
	for _, r := range rules {
		list = append(list, part(r)...)
	}
	return list
}

// asSet sorts items by canonical form, bytewise, and removes duplicates.
func asSet(list []any) []any {
	type item struct {
		value any
		form  []byte
	}
	items := make([]item, len(list))
	for i, v := range list {
		form, err := canonical(v)
		if err != nil {
			return list // does not happen for values that document returns
		}
		items[i] = item{v, form}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.form, b.form) })
	items = slices.CompactFunc(items, func(a, b item) bool { return bytes.Equal(a.form, b.form) })
	set := make([]any, len(items))
	for i := range items {
		set[i] = items[i].value
	}
	return set
}

// folded folds a string. "case" applies Unicode's full case folding to normalisation form D, in which letters and their
// marks are separate. "space" reduces each run of white space to one space and trims the ends. The result is in form C.
func folded(text string, rules []*rule) string {
	var foldCase, foldSpace bool
	for _, r := range rules {
		foldCase = foldCase || r.foldCase
		foldSpace = foldSpace || r.foldSpace
	}
	if foldCase {
		text = norm.NFC.String(cases.Fold().String(norm.NFD.String(text)))
	}
	if foldSpace {
		text = strings.Join(strings.Fields(text), " ")
	}
	return text
}

// clone copies a value, so that a change of one command's args does not change the schema's default.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		for name, member := range c {
			c[name] = clone(member)
		}
		return c
	case []any:
		c := slices.Clone(v)
		for i, item := range c {
			c[i] = clone(item)
		}
		return c
	}
	return v
}
