package management

import (
	"errors"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/godwit-hq/godwit/internal/godwit"
)

// Limits of custom headers.
const (
	MaxHeaders     = 32
	MaxHeaderName  = 100
	MaxHeaderValue = 4096
)

// reservedHeaders belong to HTTP itself, to the delivery or to its signature.
var reservedHeaders = []string{
	"Connection", "Date", "Expect", "Host", "Idempotency-Key", "Keep-Alive", "Signature", "Signature-Input", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "User-Agent", "Via", "Accept-Encoding", "Early-Data", "Http2-Settings", "Cookie2",
}

var reservedPrefixes = []string{"Content-", "Proxy-", "Godwit-", "Signature-", "Webhook-", "X-Ojs-", "X-Webhook-",
	"X-Ratelimit-", "Sec-"}

// checkHeaders checks the header fields that are added to every request to an endpoint. It ignores the case of names, as
// HTTP does.
func checkHeaders(headers map[string]string, auth *godwit.Auth) error {
	if len(headers) > MaxHeaders {
		return fieldError("headers", "must have at most %d", MaxHeaders)
	}
	var errs []error
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		field := "headers." + clip(name)
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch value := headers[name]; {
		case len(name) > MaxHeaderName || !httpguts.ValidHeaderFieldName(name):
			errs = append(errs, fieldError(field, "is not a valid header name"))
		case seen[canonical]:
			errs = append(errs, fieldError(field, "is given twice: header names do not differ by case"))
		case reserved(canonical):
			errs = append(errs, fieldError(field, "is set by the delivery itself"))
		case canonical == "Authorization" && auth != nil && auth.Kind != godwit.AuthMTLS:
			errs = append(errs, fieldError(field, "is set by auth"))
		case len(value) > MaxHeaderValue || !validHeaderValue(value):
			errs = append(errs, fieldError(field, "value must be visible ASCII, at most %d characters, without spaces at its ends", MaxHeaderValue))
		}
		seen[canonical] = true
	}
	return errors.Join(errs...)
}

func reserved(canonical string) bool {
	if slices.Contains(reservedHeaders, canonical) {
		return true
	}
	return slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(canonical, p) })
}

func validHeaderValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < 0x20 && c != '\t' || c > 0x7e {
			return false
		}
	}
	return value == strings.Trim(value, " \t")
}
