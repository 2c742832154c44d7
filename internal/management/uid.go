package management

import (
	"regexp"
	"strings"

	"github.com/godwit-hq/godwit/internal/profile"
)

// uidForm is the form of ids that callers choose. They stand in URLs and headers without escaping.
var uidForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)

// checkUID checks an id that a caller chose. It must not look like one of ours: text that names an object is one or the other.
func checkUID(field, uid string) error {
	switch {
	case !uidForm.MatchString(uid):
		return fieldError(field, "must have 1 to 100 letters, digits, dots, colons, hyphens or underscores, and begin with a letter or digit")
	case strings.IndexByte(uid, '_') == 3:
		return fieldError(field, "must not have an underscore as its fourth character: ids of the server have")
	case len(uid) > 4 && (strings.EqualFold(uid[:4], profile.CodeEndpoint+"-") || strings.EqualFold(uid[:4], profile.CodeTenant+"-")):
		return fieldError(field, "must not begin with %s- or %s-: public ids of the server do", profile.CodeEndpoint, profile.CodeTenant)
	}
	return nil
}

// ValidUID reports whether text has the form of ids that callers choose.
func ValidUID(text string) bool { return checkUID("", text) == nil }

// checkOptionalUID accepts none, too.
func checkOptionalUID(field, uid string) error {
	if uid == "" {
		return nil
	}
	return checkUID(field, uid)
}
