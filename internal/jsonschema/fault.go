package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A Fault is one violation of the schema, and its place. It does not repeat values of the document, because they may be
// secrets.
type Fault struct {
	Location []string // names of members and numbers of items, from the outermost; empty: the document as a whole
	Detail   string
}

// Pointer writes a location as a JSON pointer (RFC 6901). It shortens long names.
func Pointer(location ...string) string {
	var b strings.Builder
	for _, step := range location {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(Clip(step)))
	}
	return b.String()
}

// faults lists the violations, sorted by place, without duplicates.
func faults(err error) []Fault {
	var v *validator.ValidationError
	if !errors.As(err, &v) {
		return nil
	}
	var list []Fault
	collect(v, &list)
	order := func(a, b Fault) int {
		return cmp.Or(slices.Compare(a.Location, b.Location), strings.Compare(a.Detail, b.Detail))
	}
	slices.SortFunc(list, order)
	return slices.CompactFunc(list, func(a, b Fault) bool { return order(a, b) == 0 })
}

func collect(v *validator.ValidationError, list *[]Fault) {
	at := v.InstanceLocation
	add := func(detail string, below ...string) {
		*list = append(*list, Fault{slices.Concat(at, below), detail})
	}
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add("is required", name)
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			add("is required beside "+Clip(k.Prop), name)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add("is not a member that is known", name)
		}
	case *kind.AnyOf, *kind.OneOf:
		add("fits none of the alternatives, or more than one")
	default:
		if len(v.Causes) == 0 {
			add(detail(v.ErrorKind))
		}
		for _, cause := range v.Causes {
			collect(cause, list)
		}
	}
}

// detail describes a violation in words that do not change for the same fault.
func detail(k validator.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "must be one of the listed values"
	case *kind.Const:
		if text, ok := k.Want.(string); ok && len(text) <= 100 {
			return fmt.Sprintf("must be %q", text)
		}
		return "must be the one value that is allowed"
	case *kind.Format:
		return "must be in the form " + Clip(k.Want)
	case *kind.Pattern:
		return "must match " + Clip(k.Want)
	case *kind.FalseSchema:
		return "must not be present"
	case *kind.Not:
		return "must not fit what is excluded"
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items", k.Want)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members", k.Want)
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.ExclusiveMinimum:
		return "must be more than " + k.Want.RatString()
	case *kind.ExclusiveMaximum:
		return "must be less than " + k.Want.RatString()
	case *kind.MultipleOf:
		return "must be a multiple of " + k.Want.RatString()
	case *kind.UniqueItems:
		return "must not hold an item twice"
	}
	return "does not fit its schema"
}

// Clip shortens an external name, so that it cannot fill an answer.
func Clip(name string) string {
	const most = 100
	name = strings.ToValidUTF8(name, "?")
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
