package identity

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// claims are the members of an ID token, or of the provider's userinfo.
type claims map[string]any

// find returns a claim by its name, or by the path of dots into objects.
func (c claims) find(name string) (any, bool) {
	if v, ok := c[name]; ok {
		return v, true
	}
	var at any = map[string]any(c)
	for part := range strings.SplitSeq(name, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = object[part]; !ok {
			return nil, false
		}
	}
	return at, true
}

// groups returns the values of the claim that holds the groups. An e-mail address counts only if the provider has verified it.
func (c claims) groups(name string) (list []string, found bool, err error) {
	v, found := c.find(name)
	if !found {
		return nil, false, nil
	}
	if name == "email" && !c.emailVerified() {
		return nil, true, nil
	}
	switch v := v.(type) {
	case nil:
		return nil, true, nil
	case string:
		return []string{v}, true, nil
	case []any:
		for _, element := range v {
			s, ok := element.(string)
			if !ok {
				return nil, true, fmt.Errorf("claim %s: must hold texts, and holds a %T", name, element)
			}
			list = append(list, s)
		}
		return list, true, nil
	}
	return nil, true, fmt.Errorf("claim %s: must be a text or a list of texts, and is a %T", name, v)
}

// overflown reports whether the provider left the claim out because it is too long, and says where it can be had instead (Entra does so).
func (c claims) overflown(name string) bool {
	names, _ := c["_claim_names"].(map[string]any)
	_, ok := names[name]
	more, _ := c["hasgroups"].(bool)
	return ok || more && name == "groups"
}

func (c claims) emailVerified() bool {
	switch v := c["email_verified"].(type) {
	case bool:
		return v
	case string: // of Cognito
		return v == "true"
	}
	return false
}

const maxUserName = 120

// userName returns the person's name in records: a verified e-mail address, the login name, the name, or the subject.
func (c claims) userName(subject string) string {
	candidates := []any{c["preferred_username"], c["name"], subject}
	if c.emailVerified() {
		candidates = slices.Insert(candidates, 0, c["email"])
	}
	for _, v := range candidates {
		if s, ok := v.(string); ok {
			if s = printable(s); s != "" {
				return s
			}
		}
	}
	return "user"
}

// printable removes what could make a name look like another, and shortens it.
func printable(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, s))
	if runes := []rune(s); len(runes) > maxUserName {
		return string(runes[:maxUserName])
	}
	return s
}
