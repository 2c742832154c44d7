package attempt

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/godwit-hq/godwit/internal/profile"
)

// The bounds of the header fields that an attempt's record keeps.
const (
	maxFields     = 48
	maxFieldValue = 512
	maxFieldBytes = 4 << 10 // of all
	masked        = "••••••"
)

// samplesPerSecond is how many acknowledged attempts of a node keep their header fields in a second. A record with them is several times as large as one
// without; below this rate every attempt has them.
const samplesPerSecond = 50

// A sampler chooses attempts that keep their header fields.
type sampler struct{ state atomic.Int64 } // second, and how many it had

const sampleBits = 16

// take reports whether one more attempt of this second is chosen.
func (s *sampler) take(second int64) bool {
	for {
		old := s.state.Load()
		next := second << sampleBits
		if old>>sampleBits == second {
			next = old
		}
		if next&(1<<sampleBits-1) >= samplesPerSecond {
			return false
		}
		if s.state.CompareAndSwap(old, next+1) {
			return true
		}
	}
}

// fields lists header fields in order, as "Name: value". It masks secrets: credentials, cookies, and the values of the endpoint's own header fields, which are stored
// encrypted, also where a receiver sends them back. Signatures are no secrets.
func fields(h http.Header, own map[string]string) (list []string) {
	private := make(map[string]bool, len(own))
	for name := range own {
		private[http.CanonicalHeaderKey(name)] = true
	}
	left := maxFieldBytes
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if private[name] || secretField(name) || repeats(value, own) {
				value = mask(value)
			}
			field := name + ": " + profile.Excerpt(value, maxFieldValue)
			if left -= len(field); left < 0 || len(list) == maxFields {
				return list
			}
			list = append(list, field)
		}
	}
	return list
}

// leastSecret is the length from which the value of an endpoint's own header field is looked for in other values: a short one stands in many by chance.
const leastSecret = 8

// repeats reports whether a value holds that of an endpoint's own header field.
func repeats(value string, own map[string]string) bool {
	for _, secret := range own {
		if len(secret) >= leastSecret && strings.Contains(value, secret) {
			return true
		}
	}
	return false
}

// secretField reports whether a field holds a secret by its name.
func secretField(name string) bool {
	switch name = strings.ToLower(name); name {
	case "idempotency-key", "sec-websocket-key", "surrogate-key", "www-authenticate", "proxy-authenticate":
		return false
	case "authorization", "proxy-authorization", "authentication-info", "x-auth":
		return true
	}
	if strings.HasSuffix(name, "-key") && !strings.HasSuffix(name, "idempotency-key") { // keys of gateways: Ocp-Apim-Subscription-Key, X-Functions-Key
		return true
	}
	for _, part := range []string{"secret", "token", "password", "passwd", "api-key", "apikey", "credential", "session", "cookie", "authorization", "jwt", "csrf", "xsrf"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// mask hides a value. The scheme of a credential stays, since it says which kind was sent.
func mask(value string) string {
	switch scheme, _, found := strings.Cut(value, " "); {
	case found && (scheme == "Bearer" || scheme == "Basic" || scheme == "Digest"):
		return scheme + " " + masked
	}
	return masked
}
