package main

import (
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
)

// doctor looks into a store that a server has used: its secrets open with the ring that sealed them, and with no other.
func TestDoctorOpensWhatTheServerSealed(t *testing.T) {
	srv := apptest.Start(t, apptest.Options{})
	srv.Endpoint("http://127.0.0.1:1/", apptest.Fields{"headers": map[string]string{"X-Key": "hush"}})
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ring string
		code int
		line string
	}{
		{srv.Config.Keyring, exitOK, "ok    store        sqlite"},
		{app.GenerateRing(), exitFailed, "fail  store        a secret in the store does not open"},
	} {
		var out, complaint strings.Builder
		code := run([]string{"doctor", "--data", srv.Config.Data, "--listen", "127.0.0.1:0"}, &environment{
			ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &complaint,
			lookup: func(name string) (string, bool) {
				if name == "GODWIT_KEYRING" {
					return c.ring, true
				}
				return "", false
			},
		})
		if code != c.code || !strings.Contains(out.String(), c.line) {
			t.Errorf("ended with %d, wanted %d and %q:\n%s%s", code, c.code, c.line, out.String(), complaint.String())
		}
	}
}
