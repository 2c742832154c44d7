package config

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

type command struct {
	FileFlag `embed:""`
	Config   `embed:""`
}

func parse(t *testing.T, env map[string]string, args ...string) (*command, map[string]Origin, error) {
	t.Helper()
	var c command
	s := NewSource(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	k, err := kong.New(&c, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return nil, nil, err
	}
	origins, err := s.Origins(ctx)
	return &c, origins, err
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "godwit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrecedence(t *testing.T) {
	path := write(t, "listen: :1\nnode: file\ntls:\n  cert: file.pem\nallow-address: [10.0.0.0/8, 127.0.0.1]\nretention:\n  events: 7d\n")
	env := map[string]string{"GODWIT_CONFIG": path, "GODWIT_LISTEN": ":2", "GODWIT_NODE": "env"}
	c, from, err := parse(t, env, "--listen=:3")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ flag, value, origin string }{
		{"listen", ":3", "flag --listen"},
		{"node", "env", "environment GODWIT_NODE"},
		{"tls-cert", "file.pem", "file " + path + ":4"},
		{"allow-address", "10.0.0.0/8,127.0.0.1/32", "file " + path + ":5"},
		{"retention-events", "7d", "file " + path + ":7"},
		{"retention-attempts", "30d", "default"},
		{"max-body", "1MiB", "default"},
		{"log-level", "info", "default"},
	} {
		set, ok := byFlag(tc.flag)
		if !ok {
			t.Fatalf("no setting %s", tc.flag)
		}
		if got := set.Show(&c.Config); got != tc.value || string(from[tc.flag]) != tc.origin {
			t.Errorf("%s is %q from %q, want %q from %q", tc.flag, got, from[tc.flag], tc.value, tc.origin)
		}
	}
}

func TestFileRefusesWhatItDoesNotKnow(t *testing.T) {
	for text, want := range map[string]string{
		"listn: :1":                         `:1: unknown key "listn"; did you mean "listen"?`,
		"tls:\n  crt: x":                    `:2: unknown key "tls.crt"; did you mean "tls.cert"?`,
		"tls-cert: x":                       `did you mean "tls.cert"?`,
		"cert: x":                           `did you mean "tls.cert"?`,
		"events: 3d":                        `did you mean "retention.events"?`,
		"tls: x":                            `"tls" must hold keys and values`,
		"listen: [a]":                       `"listen" must be a plain value`,
		"listen: a\nlisten: b":              `listen`,
		"acme:\n  domains:\n    - a: b":     `"acme.domains" must be a list of plain values`,
		"- a":                               `the file must hold keys and values`,
		"listen: 'x":                        `config file`,
		"max-body: lots":                    `"lots" is not a size`,
		"drain-timeout: soon":               `"soon" is not a duration`,
		"allow-address: [10.0.0.1/8]":       `did you mean 10.0.0.0/8?`,
		"limits:\n  window: many":           `many`,
		"log:\n  level: loud":               `loud`,
		"allow-http: perhaps":               `allow-http`,
		"retention:\n  events: 999999999d":  `not a number of days`,
		"max-body: 99999999999999999999MiB": `is not a size`,
	} {
		_, _, err := parse(t, map[string]string{"GODWIT_CONFIG": write(t, text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want …%s", text, err, want)
		}
	}
	if _, _, err := parse(t, nil, "--config=/does/not/exist"); err == nil {
		t.Error("a missing file was passed over")
	}
	if _, _, err := parse(t, map[string]string{"GODWIT_CONFIG": write(t, "# nothing\nlisten:\n")}); err != nil {
		t.Errorf("an empty file was refused: %v", err)
	}
}

func TestSecretsStayHidden(t *testing.T) {
	env := map[string]string{"GODWIT_KEYRING": "k1:sesame", "GODWIT_STORE": "postgres://u:sesame@h/d?password=sesame", "GODWIT_PROXY": "http://u:sesame@p:1"}
	c, _, err := parse(t, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range Settings() {
		if shown := set.Show(&c.Config); strings.Contains(shown, "sesame") {
			t.Errorf("%s shows %s", set.Flag, shown)
		}
	}
	if _, _, err := parse(t, nil, "--keyring=k1:sesame"); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("key ring on the command line: %v", err)
	}
}

func TestCheckNamesEverySettingThatIsWrong(t *testing.T) {
	good := Default()
	if err := good.Check(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	for flag, spoil := range map[string]func(*Config){
		"listen":               func(c *Config) { c.Listen = "here" },
		"metrics-listen":       func(c *Config) { c.MetricsListen = "x:y:z" },
		"data":                 func(c *Config) { c.Data = "" },
		"store":                func(c *Config) { c.Store = "mysql://x" },
		"public-url":           func(c *Config) { c.PublicURL = "hooks.example.com" },
		"node":                 func(c *Config) { c.Node = "a b" },
		"max-body":             func(c *Config) { c.MaxBody = 0 },
		"tls-cert":             func(c *Config) { c.TLS.Cert = "x" },
		"acme-domains":         func(c *Config) { c.ACME.Domains = []string{"*.example.com"} },
		"proxy":                func(c *Config) { c.Proxy = "ftp://x" },
		"idempotency-window":   func(c *Config) { c.IdempotencyWindow = 0 },
		"retention-events":     func(c *Config) { c.Retention.Events = 1 },
		"limits-in-flight":     func(c *Config) { c.Limits.InFlight = 0 },
		"log-format":           func(c *Config) { c.Log.Format = "xml" },
		"metrics-series":       func(c *Config) { c.MetricsSeries = 0 },
		"meta-events":          func(c *Config) { c.MetaEvents = "some" },
		"smtp-url":             func(c *Config) { c.SMTP.URL, c.SMTP.From = "http://mail.example.com", "a@example.com" },
		"smtp-from":            func(c *Config) { c.SMTP.URL = "smtp://mail.example.com" },
		"smtp-url: without":    func(c *Config) { c.SMTP.From = "a@example.com" },
		"smtp-url: path":       func(c *Config) { c.SMTP.URL, c.SMTP.From = "smtp://mail.example.com/inbox", "a@example.com" },
		"smtp-per-minute":      func(c *Config) { c.SMTP.PerMinute = 0 },
		"listen: must\nmax-bo": func(c *Config) { c.Listen, c.MaxBody = "x", -1 },
	} {
		c := Default()
		spoil(&c)
		err := c.Check()
		name, _, _ := strings.Cut(flag, ":")
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

// The comment is the help text; it must agree with the tag.
func TestEveryCommentTellsTheDefault(t *testing.T) {
	form := regexp.MustCompile(`Defaults to (.+)\.$`)
	for _, s := range Settings() {
		m := form.FindStringSubmatch(s.Doc)
		if m == nil {
			t.Errorf("%s: comment %q does not end with its default", s.Flag, s.Doc)
			continue
		}
		if s.Default != "" && m[1] != s.Default {
			t.Errorf("%s: comment says %q, tag says %q", s.Flag, m[1], s.Default)
		}
	}
}

func TestValuesComeBackAsWritten(t *testing.T) {
	for _, text := range []string{"1m30s", "24h", "30d", "1h30m", "1ms", "20s", "0s", "2d"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != text {
			t.Errorf("%s reads as %s, %v", text, d, err)
		}
	}
	for _, text := range []string{"1MiB", "512KiB", "1", "1500", "2GiB", "0"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s reads as %s, %v", text, s, err)
		}
	}
}

func TestUnknownEnvironmentIsFound(t *testing.T) {
	got := UnknownEnv([]string{"GODWIT_LISTN=:1", "GODWIT_LISTEN=:1", "PATH=/bin", "GODWIT_KEY=x", "GODWIT_CONTEXT=x", "GODWIT_TENANT=x"})
	if len(got) != 1 || got[0] != "GODWIT_LISTN" {
		t.Errorf("got %v", got)
	}
}

func TestReferencePageIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		if err := os.WriteFile(path, []byte(Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != Reference() {
		t.Errorf("docs/configuration.md is not current (%v): run `go test ./internal/config -update`", err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("listen: :1\ntls: {cert: x}\nacme: {domains: [a.b]}"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? [x]\n: y"))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, err := parseFile("f", text)
		if err != nil {
			return
		}
		for key := range values {
			if kind(key) != isSetting {
				t.Errorf("key %q came through", key)
			}
		}
	})
}
