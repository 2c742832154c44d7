package wellknown_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/godwit-hq/godwit/internal/api/wellknown"
)

func TestAddressesInTheFormThatIsAskedFor(t *testing.T) {
	f := newFixture(t, nil)
	const document = `{"production":["203.0.113.0/24","2001:db8::/32"],"updated_at":"2026-03-01T12:00:00Z"}` + "\n"
	const text = "# Production\n203.0.113.0/24\n2001:db8::/32\n"
	for accept, want := range map[string]string{
		"":                                   document,
		"*/*":                                document,
		"application/json":                   document,
		"application/json, text/plain":       document,
		"text/plain;q=0.5, application/json": document,
		"text/html":                          document,
		"text/plain":                         text,
		"text/*":                             text,
		"text/plain, */*;q=0.1":              text,
		"application/json;q=0.3, text/plain": text,
		"text/plain;q=0":                     document,
		"nonsense;;, text/plain":             text,
	} {
		req, err := http.NewRequest(http.MethodGet, f.server.URL+wellknown.AddressesPath, nil)
		must(t, err)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		must(t, err)
		if string(got) != want || resp.StatusCode != http.StatusOK || resp.Header.Get("Vary") != "Accept" {
			t.Errorf("Accept %q: %d %q", accept, resp.StatusCode, got)
		}
	}
}
