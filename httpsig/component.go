package httpsig

import (
	"fmt"
	"net/textproto"
	"strings"

	"github.com/dunglas/httpsfv"
)

// maxComponents bounds the covered components of one signature, so that a hostile
// Signature-Input cannot make a base that is many times the size of the message.
const maxComponents = 64

// identity distinguishes one component identifier from another: the name and the parameters, in any order (RFC 9421, section
// 2).
type identity struct {
	name      string
	value     string // value of the parameter "key" or, for @query-param, "name"
	hasKey    bool
	sf        bool
	bs        bool
	tr        bool
	req       bool
	queryName bool
}

// component is a parsed component identifier.
type component struct {
	identity
	id    string // serialised, with the parameters in their given order
	field string // canonical field name; empty for derived components
}

// parseComponents reads component identifiers as callers write them: a bare name,
// or a structured field item if there are parameters.
func parseComponents(names []string) ([]component, error) {
	components := make([]component, 0, len(names))
	for _, name := range names {
		item := httpsfv.NewItem(name)
		if strings.HasPrefix(name, `"`) {
			var err error
			if item, err = httpsfv.UnmarshalItem([]string{name}); err != nil {
				return nil, &Error{Reason: ReasonMalformed, Component: name, cause: err}
			}
		}
		c, err := parseComponent(item)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	return components, checkSet(components)
}

// parseCovered reads the covered components of a received signature.
func parseCovered(items []httpsfv.Item) ([]component, error) {
	if len(items) > maxComponents {
		return nil, malformed("", fmt.Sprintf("covers %d components, at most %d are allowed", len(items), maxComponents))
	}
	components := make([]component, 0, len(items))
	for _, item := range items {
		c, err := parseComponent(item)
		if err != nil {
			return nil, err
		}
		components = append(components, c)
	}
	return components, checkSet(components)
}

// checkSet refuses an identifier that occurs twice (RFC 9421, section 2.5).
func checkSet(components []component) error {
	for i, c := range components {
		if covers(components[:i], c.identity) {
			return malformed(c.id, "occurs twice")
		}
	}
	return nil
}

func covers(components []component, want identity) bool {
	for _, c := range components {
		if c.identity == want {
			return true
		}
	}
	return false
}

func parseComponent(item httpsfv.Item) (component, error) {
	name, ok := item.Value.(string)
	if !ok {
		return component{}, malformed("", "component identifier is not a string")
	}
	id, err := httpsfv.Marshal(item)
	if err != nil {
		return component{}, &Error{Reason: ReasonMalformed, Component: name, cause: err}
	}
	c := component{identity: identity{name: name}, id: id}
	for _, param := range item.Params.Names() {
		value, _ := item.Params.Get(param)
		if err := c.setParam(param, value); err != nil {
			return component{}, err
		}
	}
	return newComponent(c.identity, id)
}

// newComponent validates an identifier and returns its component.
func newComponent(what identity, id string) (component, error) {
	c := component{identity: what, id: id}
	if strings.HasPrefix(c.name, "@") {
		return c, c.checkDerived()
	}
	c.field = textproto.CanonicalMIMEHeaderKey(c.name)
	return c, c.checkField()
}

func (c *component) setParam(param string, value any) error {
	switch param {
	case "key", "name":
		text, ok := value.(string)
		if !ok {
			return malformed(c.id, "parameter "+param+" is not a string")
		}
		c.value, c.hasKey, c.queryName = text, c.hasKey || param == "key", c.queryName || param == "name"
		return nil
	}
	flag := map[string]*bool{"sf": &c.sf, "bs": &c.bs, "tr": &c.tr, "req": &c.req}[param]
	if flag == nil {
		return malformed(c.id, "parameter "+param+" is not known")
	}
	if value != true {
		return malformed(c.id, "parameter "+param+" is not a true flag")
	}
	*flag = true
	return nil
}

// derived lists the derived components of RFC 9421, section 2.2.
// "@signature-params" is not among them: it may not be listed (section 2.3).
var derived = map[string]bool{
	"@method": true, "@target-uri": true, "@authority": true, "@scheme": true,
	"@request-target": true, "@path": true, "@query": true, "@query-param": true, "@status": true,
}

func (c *component) checkDerived() error {
	switch {
	case !derived[c.name]:
		return malformed(c.id, "derived component is not known")
	case c.sf || c.bs || c.tr || c.hasKey:
		return malformed(c.id, "parameter belongs to fields")
	case c.queryName != (c.name == "@query-param"):
		return malformed(c.id, `parameter name belongs to "@query-param", which needs it`)
	}
	return nil
}

func (c *component) checkField() error {
	switch {
	case !isFieldName(c.name):
		return malformed(c.id, "not a lower-case field name")
	case c.queryName:
		return malformed(c.id, `parameter name belongs to "@query-param"`)
	case c.bs && (c.sf || c.hasKey):
		return malformed(c.id, "parameter bs excludes sf and key")
	}
	return nil
}

// isFieldName reports whether name is a field name in lower case (RFC 9110, section 5.1).
func isFieldName(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case 'a' <= b && b <= 'z', '0' <= b && b <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0:
		default:
			return false
		}
	}
	return name != ""
}
