package management

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/godwit-hq/godwit/internal/filter"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/profile"
	"github.com/godwit-hq/godwit/internal/sender"
)

// Limits of what an endpoint may carry.
const (
	MaxDescription   = 500
	MaxPatterns      = 100
	MaxFilterNames   = 16
	MaxFilterValues  = 100
	MaxMetadata      = 32
	MaxMetadataName  = 64
	MaxMetadataValue = 4096 // bytes of JSON
)

// rules validate the settings of an endpoint.
type rules struct{ urls URLs }

// validate checks a whole spec and names every member that is wrong. On success it returns the profile.
func (r rules) validate(s *EndpointSpec) (profile.Profile, error) {
	prof, profErr := profile.Lookup(s.Profile)
	errs := []error{
		checkOptionalUID("uid", s.UID),
		r.checkURL("url", s.URL),
		checkMethod(s),
		checkText("description", s.Description, MaxDescription),
		checkPatterns(s.Patterns),
		checkFilter(s.Filter),
		checkContent(s.Content),
		checkHeaders(s.Headers, s.Auth),
		r.checkAuth(s),
		checkMetadata(s.Metadata),
	}
	if profErr != nil {
		errs = append(errs, fieldError("profile", "must be one of %v", profile.Names()))
	} else {
		errs = append(errs, checkSigning("signing", s.Signing, prof))
		if _, err := s.Policy.Apply(prof.Defaults()); err != nil {
			errs = append(errs, err)
		}
	}
	return prof, errors.Join(errs...)
}

func (r rules) checkURL(field, raw string) error {
	if raw == "" {
		return fieldError(field, "must not be empty")
	}
	err := r.urls.CheckURL(raw)
	if err == nil {
		return nil
	}
	var why *sender.URLError
	if errors.As(err, &why) {
		return fieldError(field, "%s: %s", why.Problem, why.Detail)
	}
	return fieldError(field, "cannot be delivered to")
}

// checkMethod accepts POST, and PUT under an agreement. A cache could answer a GET. A PUT replaces the resource at the
// URL, so the receiver must agree to it (EDS-MTH-2, EDS-MTH-3).
func checkMethod(s *EndpointSpec) error {
	if !godwit.AllowedMethod(s.Method) {
		return fieldError("method", "must be POST, or PUT under an agreement")
	}
	if s.Method == "PUT" && !s.Policy.Agreement.Valid() {
		return fieldError("method", "PUT needs policy.agreement with document (a URL where it is written) and visible_to_both true")
	}
	return nil
}

func checkPatterns(patterns []string) error {
	if len(patterns) == 0 {
		return fieldError("patterns", "must name at least one event pattern; \"*\" selects every event")
	}
	if len(patterns) > MaxPatterns {
		return fieldError("patterns", "must have at most %d", MaxPatterns)
	}
	var errs []error
	for i, p := range patterns {
		field := fmt.Sprintf("patterns[%d]", i)
		if why := godwit.ValidPattern(p); why != "" {
			errs = append(errs, fieldError(field, "%s", why))
		} else if slices.Contains(patterns[:i], p) {
			errs = append(errs, fieldError(field, "is given twice"))
		}
	}
	return errors.Join(errs...)
}

func checkFilter(f godwit.Filter) error {
	if len(f) > MaxFilterNames {
		return fieldError("filter", "must have at most %d attributes", MaxFilterNames)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f)) {
		field := "filter." + clip(name)
		if why := ValidAttributeName(name); why != "" {
			errs = append(errs, fieldError(field, "name %s", why))
		}
		if n := len(f[name]); n == 0 || n > MaxFilterValues {
			errs = append(errs, fieldError(field, "must list 1 to %d values", MaxFilterValues))
		}
		for i, v := range f[name] {
			if why := ValidAttributeValue(v); why != "" {
				errs = append(errs, fieldError(fmt.Sprintf("%s[%d]", field, i), "%s", why))
			}
		}
	}
	return errors.Join(errs...)
}

func checkContent(f godwit.ContentFilter) error {
	if len(f) == 0 {
		return nil
	}
	_, err := filter.Compile(f)
	if err == nil {
		return nil
	}
	return fieldError(ContentField(err.Field), "%s", err.Detail)
}

// errOlderNodes refuses a content filter that a node of an older release would ignore.
var errOlderNodes = fieldError("content_filter", "cannot be set while a node of an older release is running, which would ignore it; finish the upgrade first (godwit nodes shows the versions)")

// ContentField returns the name of a place in an endpoint's content filter.
func ContentField(place string) string {
	if place == "" {
		return "content_filter"
	}
	return "content_filter." + place
}

// ValidAttributeName returns why an attribute cannot have this name, or "".
func ValidAttributeName(name string) string {
	if name == "" || len(name) > godwit.MaxAttributeName {
		return fmt.Sprintf("must have 1 to %d characters", godwit.MaxAttributeName)
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return "may hold letters, digits, '_', '-' and dots only"
		}
	}
	return ""
}

// ValidAttributeValue returns why an attribute cannot have this value, or "".
func ValidAttributeValue(value string) string {
	if len(value) > godwit.MaxAttributeValue {
		return fmt.Sprintf("must have at most %d bytes", godwit.MaxAttributeValue)
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, isControl) {
		return "must be valid UTF-8 without control characters"
	}
	return ""
}

func isControl(c rune) bool { return c < 0x20 || c >= 0x7f && c < 0xa0 }

func checkMetadata(m godwit.Metadata) error {
	if len(m) > MaxMetadata {
		return fieldError("metadata", "must have at most %d members", MaxMetadata)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m)) {
		field := "metadata." + clip(name)
		if n := utf8.RuneCountInString(name); n == 0 || n > MaxMetadataName || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl) {
			errs = append(errs, fieldError(field, "name must have 1 to %d characters, none of them control characters", MaxMetadataName))
		}
		if len(m[name]) > MaxMetadataValue || !utf8.Valid(m[name]) || !json.Valid(m[name]) {
			errs = append(errs, fieldError(field, "must be JSON of at most %d bytes", MaxMetadataValue))
		}
	}
	return errors.Join(errs...)
}

// clip shortens an external name, so that it cannot fill an answer.
func clip(name string) string {
	const most = 64
	name = strings.ToValidUTF8(name, "?")
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// secureTarget reports whether a credential may go to the URL: over https, or over http to this machine (EDS T-37). The caller has
// checked that http and loopback addresses are allowed at all.
func secureTarget(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	host := strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
