package typedoc

import (
	"errors"
	"fmt"
	"strings"
)

// standalone copies the schema of a type and puts what it refers to into its $defs.
func (r *reader) standalone(name string, schema any) (any, error) {
	for range 16 {
		o, _ := schema.(object)
		ref, given := o["$ref"].(string)
		if !given || len(o) > 1 {
			break
		}
		var err error
		if schema, err = r.lookup(ref); err != nil {
			return nil, err
		}
	}
	c := &copier{reader: r, own: name + ".", names: map[string]string{}, defs: object{}}
	out, err := c.copy(schema)
	if err != nil || len(c.defs) == 0 {
		return out, err
	}
	o, isObject := out.(object)
	if !isObject {
		return out, nil
	}
	if own, given := o["$defs"].(object); given {
		for name, def := range own {
			if _, taken := c.defs[name]; !taken {
				c.defs[name] = def
			}
		}
	}
	o["$defs"] = c.defs
	return o, nil
}

// A copier copies one schema.
type copier struct {
	reader *reader
	own    string            // prefix of definitions that we moved out of the type's schema, when we wrote the document
	names  map[string]string // of references that have been seen, to their names in defs
	defs   object
}

func (c *copier) copy(schema any) (any, error) {
	var failed error
	out := mapSchema(schema, func(o object) object {
		if v, given := o["$ref"]; given {
			ref, isText := v.(string)
			if !isText {
				failed = errors.New("$ref is not text")
				return o
			}
			name, err := c.define(ref)
			if err != nil {
				failed = err
				return o
			}
			o["$ref"] = "#/$defs/" + escaper.Replace(name)
		}
		return modern(o)
	})
	return out, failed
}

// define copies what the reference names into defs, once.
func (c *copier) define(ref string) (string, error) {
	if name, seen := c.names[ref]; seen {
		return name, nil
	}
	target, err := c.reader.lookup(ref)
	if err != nil {
		return "", err
	}
	name := strings.TrimPrefix(unescape(ref[strings.LastIndex(ref, "/")+1:]), c.own)
	for n := 2; c.taken(name); n++ {
		name = fmt.Sprintf("%s%d", strings.TrimRight(name, "0123456789"), n)
	}
	c.names[ref], c.defs[name] = name, true // before the copy: the target may refer to itself
	c.defs[name], err = c.copy(target)
	return name, err
}

func (c *copier) taken(name string) bool { _, taken := c.defs[name]; return taken }

// modern replaces keywords of older drafts, which AsyncAPI documents have, by those of draft 2020-12.
func modern(o object) object {
	delete(o, "$schema")
	if list, tuple := o["items"].([]any); tuple {
		o["prefixItems"] = list
		delete(o, "items")
		if rest, given := o["additionalItems"]; given {
			o["items"] = rest
		}
	}
	delete(o, "additionalItems")
	return o
}
