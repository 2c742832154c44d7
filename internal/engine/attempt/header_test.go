package attempt

import (
	"net/http"
	"strings"
	"testing"
)

func TestFieldsMaskSecrets(t *testing.T) {
	const secret = "s3cr3t-value"
	own := map[string]string{"x-tenant": secret, "X-Mode": "fast"}
	for _, c := range []struct {
		name, value string
		masked      bool
	}{
		{"Authorization", "Bearer " + secret, true}, {"Proxy-Authorization", "Basic " + secret, true}, {"X-Forwarded-Authorization", secret, true},
		{"Cookie", "a=" + secret, true}, {"Set-Cookie", "sid=" + secret + "; HttpOnly", true}, {"Set-Cookie2", "a=b", true}, {"X-Api-Key", "k", true},
		{"Ocp-Apim-Subscription-Key", "k", true}, {"X-Functions-Key", "k", true}, {"X-Auth", "k", true}, {"X-Amz-Security-Token", "k", true}, {"X-Gitlab-Token", "k", true},
		{"X-Jwt-Assertion", "k", true}, {"X-Csrf", "k", true}, {"X-Tenant", "of the response", true}, {"X-Mode", "slow", true},
		{"X-Echo", "got x-tenant=" + secret, true}, {"X-Speed", "fast", false}, // too short to be told apart
		{"Idempotency-Key", "k", false}, {"X-Webhook-Idempotency-Key", "k", false}, {"Surrogate-Key", "k", false}, {"Www-Authenticate", "Basic realm=x", false},
		{"Webhook-Signature", "v1,abc", false}, {"Content-Type", "text/plain", false},
	} {
		got := fields(http.Header{c.name: {c.value}}, own)
		want := c.name + ": " + c.value
		if c.masked {
			want = c.name + ": " + mask(c.value)
		}
		if len(got) != 1 || got[0] != want || strings.Contains(got[0], secret) {
			t.Errorf("%s: %s is kept as %q", c.name, c.value, got)
		}
	}
}
