package source

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Spec holds the settings that the owner of a source chooses. A merge patch is applied to its JSON form.
type Spec struct {
	Name        string                `json:"name"`
	Description string                `json:"description,omitempty"`
	Scheme      string                `json:"scheme"`
	Settings    godwit.SourceSettings `json:"settings,omitzero"`
	Credentials []godwit.Credential   `json:"credentials,omitempty"` // used on creation only; later credentials are rotated
	Adopt       bool                  `json:"adopt,omitempty"`
	Mode        godwit.RelayMode      `json:"mode,omitempty"`
	EventType   godwit.TypeRule       `json:"event_type,omitzero"`
	Keep        []string              `json:"keep_headers,omitempty"`
}

func (s *Spec) setDefaults() { s.Mode = cmp.Or(s.Mode, godwit.StoreAndForward) }

func specOf(src *godwit.Source) *Spec {
	return &Spec{
		Name: src.Name, Description: src.Description, Scheme: src.Scheme, Settings: src.Settings, Adopt: src.Adopt, Mode: src.Mode,
		EventType: src.EventType, Keep: slices.Clone(src.Keep),
	}
}

// lay copies the settings into the source.
func (s *Spec) lay(src *godwit.Source) {
	src.Name, src.Description, src.Settings, src.Adopt, src.Mode, src.EventType = s.Name, s.Description, s.Settings, s.Adopt, s.Mode, s.EventType
	src.Keep = nil
	for _, name := range s.Keep {
		src.Keep = append(src.Keep, textproto.CanonicalMIMEHeaderKey(name))
	}
}

func fieldError(field, format string, args ...any) *godwit.FieldError {
	return &godwit.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// checkText returns what is wrong with a text for people, or "".
func checkText(text string, least, most int) string {
	n := utf8.RuneCountInString(text)
	if n < least || n > most || !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return c < 0x20 || c == 0x7f }) {
		return fmt.Sprintf("must have %d to %d characters, none of them control characters", least, most)
	}
	return ""
}

func (s *Sources) check(spec *Spec) error {
	var errs []error
	add := func(field, why string) {
		if why != "" {
			errs = append(errs, fieldError(field, "%s", why))
		}
	}
	add("name", checkName(spec.Name))
	add("description", checkText(spec.Description, 0, 1024))
	if spec.Mode != godwit.StoreAndForward && spec.Mode != godwit.PassThrough {
		add("mode", fmt.Sprintf("must be %q or %q", godwit.StoreAndForward, godwit.PassThrough))
	}
	sch := schemeNamed(spec.Scheme)
	if sch == nil {
		add("scheme", fmt.Sprintf("must be one of %s", strings.Join(Schemes(), ", ")))
		return errors.Join(errs...)
	}
	if spec.Scheme == "mtls" && !s.cfg.ClientCertificates {
		add("scheme", "needs a server that asks for client certificates: set client-certificates and serve https itself")
	}
	if spec.Adopt && sch.keyed && spec.Settings.DeliveryHeader == "" {
		add("adopt", "needs settings.delivery_header with this scheme: it has no delivery id of its own to make a key of")
	}
	if len(spec.Credentials) > godwit.MaxCredentials {
		add("credentials", fmt.Sprintf("must have at most %d", godwit.MaxCredentials))
	}
	for i := range spec.Credentials {
		add(fmt.Sprintf("credentials[%d].id", i), checkText(spec.Credentials[i].ID, 0, 200))
	}
	errs = append(errs, checkSettings(spec)...)
	errs = append(errs, checkTypeRule(&spec.EventType)...)
	errs = append(errs, checkKeep(spec.Keep)...)
	return errors.Join(errs...)
}

// checkName requires a name that can be part of a path without escapes.
func checkName(name string) string {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return "may hold letters, digits, '-', '_' and '.' only"
		}
	}
	if len(name) == 0 || len(name) > godwit.MaxSourceName || strings.Trim(name, ".") == "" {
		return fmt.Sprintf("must have 1 to %d characters", godwit.MaxSourceName)
	}
	return ""
}

func checkSettings(spec *Spec) (errs []error) {
	set := &spec.Settings
	for _, only := range []struct{ field, value, scheme string }{
		{"settings.webhook_id", set.WebhookID, "paypal"}, {"settings.end_to_end", set.EndToEnd, "eds"}, {"settings.put_agreement", set.PutAgreement, "eds"},
	} {
		if only.value != "" && spec.Scheme != only.scheme {
			errs = append(errs, fieldError(only.field, "is for the scheme %s only", only.scheme))
		}
	}
	if why := checkText(set.WebhookID, 0, 200); why != "" {
		errs = append(errs, fieldError("settings.webhook_id", "%s", why))
	}
	if label := set.EndToEnd; label != "" && (!plainLabel(label) || strings.HasPrefix(label, "sig")) {
		errs = append(errs, fieldError("settings.end_to_end", "must be a signature's label in lower case that does not begin with sig, as in origin"))
	}
	if u, err := url.Parse(set.PutAgreement); set.PutAgreement != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		errs = append(errs, fieldError("settings.put_agreement", "must be the URL where the agreement is written"))
	}
	if _, err := godwit.ParseKeyID(set.CommandsAs); set.CommandsAs != "" && err != nil {
		errs = append(errs, fieldError("settings.commands_as", "must be the id of an API key, as in key_…"))
	}
	if name := set.DeliveryHeader; name != "" && !httpguts.ValidHeaderFieldName(name) {
		errs = append(errs, fieldError("settings.delivery_header", "is not a valid header name"))
	}
	return errs
}

func plainLabel(label string) bool {
	for i := range len(label) {
		if c := label[i]; !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_')) {
			return false
		}
	}
	return len(label) <= 64
}

func checkTypeRule(rule *godwit.TypeRule) (errs []error) {
	if why := godwit.ValidEventType(rule.Fixed); rule.Fixed != "" && why != "" {
		errs = append(errs, fieldError("event_type.fixed", "%s", why))
	}
	if rule.Header != "" && !httpguts.ValidHeaderFieldName(rule.Header) {
		errs = append(errs, fieldError("event_type.header", "is not a valid header name"))
	}
	if rule.Header != "" && rule.Member != "" {
		errs = append(errs, fieldError("event_type.member", "cannot be given beside header: choose one"))
	}
	if why := checkText(rule.Member, 0, 200); why != "" || strings.Contains("."+rule.Member+".", "..") && rule.Member != "" {
		errs = append(errs, fieldError("event_type.member", "must be names joined with dots, as in data.type"))
	}
	return errs
}

// hopHeaders belong to one hop: its connection, its authentication, or the delivery itself. An upstream's credentials must
// not reach an endpoint (EDS-INT-7).
var hopHeaders = []string{
	"Accept-Encoding", "Authorization", "Connection", "Cookie", "Cookie2", "Date", "Early-Data", "Expect", "Forwarded", "Host", "Http2-Settings",
	"Idempotency-Key", "Keep-Alive", "Set-Cookie", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Via", "Www-Authenticate",
}

// hopWords are parts of the names of fields that hold credentials.
var hopWords = []string{"authorization", "cookie", "signature", "hmac", "secret", "token", "password", "passwd", "credential", "api-key", "apikey", "access-key", "jwt", "session"}

var hopPrefixes = []string{"Content-", "Proxy-", "Godwit-", "Sec-", "Webhook-", "X-Forwarded-", "X-Ojs-", "X-Webhook-", "Paypal-"}

func checkKeep(names []string) (errs []error) {
	if len(names) > godwit.MaxKeptHeaders {
		return []error{fieldError("keep_headers", "must have at most %d", godwit.MaxKeptHeaders)}
	}
	for i, name := range names {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		field := fmt.Sprintf("keep_headers[%d]", i)
		switch {
		case len(name) > 100 || !httpguts.ValidHeaderFieldName(name):
			errs = append(errs, fieldError(field, "is not a valid header name"))
		case belongsToHop(canonical):
			errs = append(errs, fieldError(field, "belongs to the hop between the upstream and us, and does not go on"))
		}
	}
	return errs
}

func belongsToHop(canonical string) bool {
	lower := strings.ReplaceAll(strings.ToLower(canonical), "_", "-")
	if slices.Contains(hopHeaders, canonical) || slices.ContainsFunc(hopWords, func(w string) bool { return strings.Contains(lower, w) }) {
		return true
	}
	return slices.ContainsFunc(hopPrefixes, func(p string) bool { return strings.HasPrefix(canonical, p) })
}
