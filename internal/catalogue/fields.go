package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// maxFields bounds an answer.
const maxFields = 20

// fields lists what does not fit, sorted, each field once for each thing that is wrong with it. Values are not repeated: they
// may be secrets.
func fields(v *jsonschema.ValidationError) []godwit.FieldError {
	var list []godwit.FieldError
	walk(v, &list)
	slices.SortFunc(list, func(a, b godwit.FieldError) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Detail, b.Detail))
	})
	list = slices.Compact(list)
	return list[:min(len(list), maxFields)]
}

func walk(v *jsonschema.ValidationError, list *[]godwit.FieldError) {
	add := func(field, detail string) { *list = append(*list, godwit.FieldError{Field: field, Detail: detail}) }
	at := path(v.InstanceLocation)
	switch k := v.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(join(at, name), "is required")
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			add(join(at, name), fmt.Sprintf("is required beside %s", clip(k.Prop)))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(join(at, name), "is not a member that is known")
		}
	case *kind.AnyOf, *kind.OneOf:
		add(at, "fits none of the alternatives, or more than one")
	default:
		if len(v.Causes) == 0 {
			add(at, detail(v.ErrorKind))
		}
		for _, cause := range v.Causes {
			walk(cause, list)
		}
	}
}

// detail says what is wrong in words that stay the same for the same fault.
func detail(k jsonschema.ErrorKind) string {
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
		return "must be in the form " + clip(k.Want)
	case *kind.Pattern:
		return "must match " + clip(k.Want)
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

// path writes a place as people do: data.lines[2].sku.
func path(location []string) string {
	at := ""
	for _, step := range location {
		if _, err := strconv.ParseUint(step, 10, 32); err == nil && at != "" {
			at += "[" + step + "]"
			continue
		}
		at = join(at, step)
	}
	return at
}

func join(at, name string) string {
	if at == "" {
		return clip(name)
	}
	return at + "." + clip(name)
}

// clip keeps a hostile name from filling the answer.
func clip(name string) string {
	const most = 100
	name = strings.ToValidUTF8(name, "?")
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
