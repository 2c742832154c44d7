package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
)

// After reencrypt the old key can be removed: outcomes of commands are replayed without it.
func TestReencryptCoversCommands(t *testing.T) {
	apptest.Backends(t, func(t *testing.T, o apptest.Options) {
		data := t.TempDir()
		file := filepath.Join(data, "keyring")
		older, newer := app.GenerateRing(), app.GenerateRing()
		write := func(lines ...string) {
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o.Data = data
		o.Configure = func(c *config.Config) { c.Keyring, c.KeyringFile = "", file }
		write(older)
		srv := apptest.Start(t, o)
		submit := func() *client.CommandAnswer {
			t.Helper()
			c, err := client.New(srv.URL, srv.Key)
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Commands().Submit(t.Context(), client.Command{Entity: "dead_letters", Action: "replay", Args: json.RawMessage(`{"all":true}`)})
			if err != nil || a.Status != "executed" {
				t.Fatalf("%+v, %v", a, err)
			}
			return a
		}
		key := srv.Key
		first := submit()
		if err := srv.Stop(); err != nil {
			t.Fatal(err)
		}
		write(newer, older)
		var out strings.Builder
		env := &environment{ctx: t.Context(), stdout: &out, stderr: &out, stdin: strings.NewReader(""), lookup: func(string) (string, bool) { return "", false }}
		if code := run([]string{"keys", "reencrypt", "--data", data, "--keyring-file", file, "--store", srv.Config.Store}, env); code != exitOK || !strings.Contains(out.String(), "all 1 values") {
			t.Fatalf("ended with %d: %s", code, out.String())
		}
		write(newer)
		o.Store = srv.Config.Store
		srv = apptest.Start(t, o)
		srv.Key = key
		if again := submit(); again.CommandID != first.CommandID || again.Decision != "duplicate_replayed" || string(again.Outcome.Result) != string(first.Outcome.Result) {
			t.Errorf("again %+v", again)
		}
	})
}
