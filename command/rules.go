package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/godwit-hq/godwit/internal/jsonschema"
)

// annotations holds the keywords of a schema that say how a value is normalised.
type annotations struct {
	ephemeral, set      bool
	foldCase, foldSpace bool
	given               bool
}

// Validate accepts every value: annotations do not restrict it.
func (*annotations) Validate(*validator.ValidatorContext, any) {}

// annotationsVocabulary makes the compiler keep the annotations with their schema, wherever references lead.
var annotationsVocabulary = &validator.Vocabulary{URL: "urn:godwit:normalisation", Compile: compileAnnotations}

func compileAnnotations(_ *validator.CompilerContext, object map[string]any) (validator.SchemaExt, error) {
	var a annotations
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		if !strings.HasPrefix(keyword, "x-") {
			continue
		}
		value := object[keyword]
		var ok bool
		switch keyword {
		case "x-ephemeral":
			a.ephemeral, ok = value.(bool)
		case "x-set":
			a.set, ok = value.(bool)
		case "x-fold":
			var fold string
			if fold, ok = value.(string); ok {
				ok = a.setFold(fold)
			}
		default:
			// A misspelt annotation would go unnoticed until a command is executed twice.
			return nil, jsonschema.KeywordError(fmt.Sprintf("has the keyword %.100q: those with x- are x-ephemeral, x-set and x-fold", keyword))
		}
		if !ok {
			return nil, jsonschema.KeywordError(fmt.Sprintf(`gives %s another value than it can have: x-ephemeral and x-set are true or false, `+
				`x-fold is "case", "space" or "case space"`, keyword))
		}
		a.given = true
	}
	if !a.given {
		return nil, nil
	}
	return &a, nil
}

func (a *annotations) setFold(fold string) bool {
	for word := range strings.SplitSeq(fold, " ") {
		switch word {
		case "case":
			a.foldCase = true
		case "space":
			a.foldSpace = true
		default:
			return false
		}
	}
	return true
}

// A rule says how to normalise the values that a schema applies to.
type rule struct {
	annotations
	fallback   *any // "default"
	properties map[string]*rule
	patterns   []patternRule
	additional *rule
	prefix     []*rule
	items      *rule
	also       []*rule // rules of $ref and allOf, which apply to the same value

	all []*rule // this rule and its also rules, recursively
}

type patternRule struct {
	pattern validator.Regexp
	*rule
}

// compileRules finds the rules of a schema that does not refer to itself. It refuses annotations behind alternatives and
// conditions, because only the normalised value decides which of those apply.
func compileRules(root *validator.Schema) ([]*rule, error) {
	c := ruleCompiler{made: map[*validator.Schema]*rule{}}
	r, err := c.rule(root)
	if err != nil {
		return nil, err
	}
	for _, part := range r.all {
		if part.ephemeral {
			return nil, fmt.Errorf("x-ephemeral is for members: args as a whole cannot be left out")
		}
	}
	return r.all, nil
}

type ruleCompiler struct {
	made map[*validator.Schema]*rule
}

func (c *ruleCompiler) rule(s *validator.Schema) (*rule, error) {
	if r := c.made[s]; r != nil {
		return r, nil
	}
	for _, part := range jsonschema.Conditional(s) {
		if err := unannotated(part); err != nil {
			return nil, err
		}
	}
	r := &rule{annotations: annotationsOf(s), fallback: s.Default, properties: map[string]*rule{}}
	if err := c.children(r, s); err != nil {
		return nil, err
	}
	r.all = []*rule{r}
	for _, part := range r.also {
		r.all = append(r.all, part.all...)
	}
	c.made[s] = r
	return r, checkRule(r, s)
}

func (c *ruleCompiler) children(r *rule, s *validator.Schema) (err error) {
	add := func(part *validator.Schema) *rule {
		if part == nil || err != nil {
			return nil
		}
		var made *rule
		made, err = c.rule(part)
		return made
	}
	if s.Ref != nil {
		r.also = append(r.also, add(s.Ref))
	}
	for _, part := range s.AllOf {
		r.also = append(r.also, add(part))
	}
	for name, part := range s.Properties {
		r.properties[name] = add(part)
	}
	for pattern, part := range s.PatternProperties {
		r.patterns = append(r.patterns, patternRule{pattern, add(part)})
	}
	slices.SortFunc(r.patterns, func(a, b patternRule) int { return strings.Compare(a.pattern.String(), b.pattern.String()) })
	if part, ok := s.AdditionalProperties.(*validator.Schema); ok {
		r.additional = add(part)
	}
	for _, part := range s.PrefixItems {
		r.prefix = append(r.prefix, add(part))
	}
	r.items = add(s.Items2020)
	for _, part := range append(slices.Clone(r.prefix), r.items) {
		if err == nil && part != nil && part.drops() {
			err = fmt.Errorf("%s: x-ephemeral is for members of objects, not for items", place(s))
		}
	}
	return err
}

// checkRule finds defaults that do not fit the schema, and values that folding makes impossible.
func checkRule(r *rule, s *validator.Schema) error {
	if s.Default != nil {
		v := normalised(clone(*s.Default), r.all, false)
		if s.Validate(v) != nil {
			return fmt.Errorf("%s: the default does not fit its own schema", place(s))
		}
	}
	for _, v := range jsonschema.Allowed(s) {
		if text, ok := v.(string); ok && folded(text, r.all) != text {
			return fmt.Errorf("%s: with x-fold, %.100q can never be matched: write the allowed values folded", place(s), text)
		}
	}
	return nil
}

// drops reports whether a member with this rule is left out.
func (r *rule) drops() bool {
	return slices.ContainsFunc(r.all, func(r *rule) bool { return r.ephemeral })
}

// defaultValue returns the default of an absent member with this rule. The rule's own default precedes that of a
// reference.
func (r *rule) defaultValue() *any {
	for _, part := range r.all {
		if part.fallback != nil {
			return part.fallback
		}
	}
	return nil
}

// member lists the rules for a member.
func (r *rule) member(name string) []*rule {
	var list []*rule
	if p := r.properties[name]; p != nil {
		list = append(list, p.all...)
	}
	for _, p := range r.patterns {
		if p.pattern.MatchString(name) {
			list = append(list, p.all...)
		}
	}
	if list == nil && r.additional != nil {
		return r.additional.all
	}
	return list
}

// item lists the rules for an item.
func (r *rule) item(i int) []*rule {
	switch {
	case i < len(r.prefix):
		return r.prefix[i].all
	case r.items != nil:
		return r.items.all
	}
	return nil
}

func annotationsOf(s *validator.Schema) annotations {
	for _, ext := range s.Extensions {
		if a, ok := ext.(*annotations); ok {
			return *a
		}
	}
	return annotations{}
}

// unannotated refuses annotations, including defaults, at any depth of a schema that is not followed.
func unannotated(s *validator.Schema) error {
	if s.Default != nil || annotationsOf(s).given {
		return fmt.Errorf("%s: default and x- keywords work under properties, patternProperties, additionalProperties, items, "+
			"prefixItems, $ref and allOf alone; under alternatives and conditions they would do nothing", place(s))
	}
	for _, part := range jsonschema.Parts(s) {
		if err := unannotated(part); err != nil {
			return err
		}
	}
	return nil
}

// place returns the place of a schema in its document.
func place(s *validator.Schema) string {
	if _, at, ok := strings.Cut(s.Location, "#"); ok && at != "" {
		return at
	}
	return "/"
}
