package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/clock"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Failed sign-ins are limited by address and by how the credential begins. They lock neither another address out nor, at the same address, another credential: behind a
// proxy that is not trusted all browsers have one address.
func TestSignInFailures(t *testing.T) {
	hands := clock.NewManual(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	srv := apptest.Start(t, apptest.Options{Clock: hands, Configure: func(c *config.Config) {
		var n config.Network
		if err := n.UnmarshalText([]byte("127.0.0.1")); err != nil {
			t.Fatal(err)
		}
		c.TrustedProxies, c.Sessions.FailuresPerMinute = []config.Network{n}, 3
	}})
	try := func(address, body string) tabAnswer {
		return newTab(t, srv.URL).do("POST", "/v1/sessions", body, map[string]string{"X-Forwarded-For": address})
	}
	right, other := `{"key":"`+srv.Key+`"}`, `{"key":"`+srv.NewKey(srv.Tenant, godwit.ScopeRead)+`"}`
	wrong := `{"key":"` + godwit.TokenHint(srv.Key) + strings.Repeat("A", 39) + `"}` // of one who has seen how the key begins
	for _, address := range []string{"192.0.2.1", "198.51.100.9, 192.0.2.1", "192.0.2.1"} {
		if a := try(address, wrong); a.status != 401 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	for _, body := range []string{wrong, right} {
		if a := try("192.0.2.1", body); a.status != 429 || a.header.Get("Retry-After") != "60" {
			t.Errorf("%d %v", a.status, a.header)
		}
	}
	if a := try("192.0.2.1", other); a.status != 201 {
		t.Errorf("another key is locked out at the same address: %d %s", a.status, a.body)
	}
	for _, address := range []string{"192.0.2.2", "198.51.100.9", "2001:db8::1", ""} {
		if a := try(address, right); a.status != 201 {
			t.Errorf("%s is locked out: %d %s", address, a.status, a.body)
		}
	}
	for _, address := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3:4"} { // one owner
		try(address, wrong)
	}
	if a := try("2001:db8::5", right); a.status != 429 {
		t.Errorf("%d %s", a.status, a.body)
	}
	hands.Step(-time.Hour) // the machine's clock is set
	if a := try("192.0.2.1", right); a.status != 429 || a.header.Get("Retry-After") != "60" {
		t.Errorf("after the clock was set back: %d %v", a.status, a.header)
	}
	hands.Advance(time.Minute)
	if a := try("192.0.2.1", right); a.status != 201 {
		t.Errorf("after a minute: %d %s", a.status, a.body)
	}
}
