package apply

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes files below a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Mistakes in files are reported with their places, and with what to do.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"no YAML":             {"tenants: [", []string{"a.yaml: is not YAML"}},
		"nothing":             {"# only a comment\n", []string{"there are no objects; a file has environments, event_types or tenants"}},
		"a list":              {"- tenants\n", []string{"a.yaml:1:1: got array, want object"}},
		"unknown section":     {"tenant:\n  acme: {}\n", []string{`a.yaml:1:1: unknown member "tenant"; did you mean "tenants"?`}},
		"unknown member":      {"tenants:\n  acme:\n    nmae: Acme\n", []string{`a.yaml:3:5: tenants.acme: unknown member "nmae"; did you mean "name"?`}},
		"unknown, of a list":  {"tenants:\n  acme:\n    sources:\n      a: {scheme: basic, credentials: [{identity: a}]}\n", []string{`a.yaml:4:41: tenants.acme.sources.a.credentials.0: unknown member "identity"`}},
		"uid as a member":     {"tenants:\n  acme: {uid: other}\n", []string{`a.yaml:2:10: tenants.acme: unknown member "uid"`}},
		"wrong type":          {"tenants:\n  acme:\n    endpoints:\n      a: {url: 5}\n", []string{"a.yaml:4:11: tenants.acme.endpoints.a.url: got number, want string"}},
		"wrong value":         {"environments:\n  a: {event_validation: loose}\n", []string{"a.yaml:2:7: environments.a.event_validation: value must be one of '', 'known', 'strict'"}},
		"missing member":      {"tenants:\n  acme:\n    endpoints:\n      a: {}\n", []string{"a.yaml:4:7: tenants.acme.endpoints.a: missing property 'url'"}},
		"two mistakes":        {"tenants:\n  acme: {name: 1}\n  other: {name: 2}\n", []string{"a.yaml:2:10: tenants.acme.name: got number", "a.yaml:3:11: tenants.other.name: got number"}},
		"twice in a mapping":  {"tenants:\n  acme: {}\n  acme: {}\n", []string{`a.yaml:3:3: "acme" is given twice; it is also at line 2`}},
		"twice in a file":     {"tenants:\n  acme: {}\n---\ntenants:\n  acme: {}\n", []string{"a.yaml:5:3: tenant acme is given twice; it is also at", "a.yaml:2:3"}},
		"merge":               {"tenants:\n  a: &a {name: A}\n  b: {<<: *a}\n", []string{"a.yaml:3:7: << is not supported"}},
		"alias of itself":     {"tenants: &a\n  acme: *a\n", []string{"a.yaml:2:9: the alias *a contains itself"}},
		"secret in the file":  {"tenants:\n  acme:\n    endpoints:\n      a: {url: 'https://a.example', secret: whsec_abc}\n", []string{"a.yaml:4:37: tenants.acme.endpoints.a.secret: a secret must not stand in the file: write {env: NAME}"}},
		"token in the file":   {"tenants:\n  acme:\n    endpoints:\n      a: {url: 'https://a.example', auth: {kind: bearer, token: abc}}\n", []string{"a.yaml:4:58: tenants.acme.endpoints.a.auth.token: a secret must not stand in the file"}},
		"header in the file":  {"tenants:\n  acme:\n    endpoints:\n      a: {url: 'https://a.example', headers: {X-Key: abc}}\n", []string{"a.yaml:4:47: tenants.acme.endpoints.a.headers.X-Key: write {env: NAME} or {file: PATH}", "{text: VALUE}"}},
		"credential in it":    {"tenants:\n  acme:\n    sources:\n      a: {scheme: github, credentials: [{secret: abc}]}\n", []string{"a.yaml:4:42: tenants.acme.sources.a.credentials.0.secret: a secret must not stand in the file"}},
		"other reference":     {"tenants:\n  acme:\n    endpoints:\n      a: {url: 'https://a.example', secret: {vault: abc}}\n", []string{`a.yaml:4:46: tenants.acme.endpoints.a.secret: a secret is given as {env: NAME} or {file: PATH}, not by "vault"`}},
		"number for a name":   {"tenants:\n  acme:\n    endpoints:\n      a: {url: 'https://a.example', auth: {kind: basic, username: 5}}\n", []string{"username: must be text, {env: NAME} or {file: PATH}"}},
		"no schema file":      {"event_types:\n  a.b: {schema: {file: none.json}}\n", []string{"a.yaml:2:18: schema: open", "none.json"}},
		"schema is not JSON":  {"event_types:\n  a.b: {schema: {file: a.yaml}}\n", []string{"a.yaml:2:18: schema:", "is not JSON"}},
		"not a number":        {"tenants:\n  acme:\n    endpoints:\n      a: {url: 'https://a.example', policy: {timeout_seconds: .nan}}\n", []string{`a.yaml:4:63: !!float ".nan" is not supported`}},
		"environments nested": {"tenants:\n  acme:\n    environments: {}\n", []string{`a.yaml:3:5: tenants.acme: unknown member "environments"`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{"a.yaml": c.file})
			_, err := Load([]string{dir}, nil)
			if err == nil {
				t.Fatal("no mistake was found")
			}
			text := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("got\n%s\nwant %q", text, part)
				}
			}
			if strings.Contains(text, "whsec_abc") || strings.Contains(text, "abc}") {
				t.Errorf("a secret is shown: %s", text)
			}
		})
	}
}

func TestTwoFilesWithOneTenant(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": "tenants: {acme: {}}\n", "b/c.yml": "tenants:\n  acme:\n"})
	_, err := Load([]string{dir}, nil)
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].At != (Position{filepath.Join(dir, "b", "c.yml"), 2, 3}) ||
		!strings.Contains(err.Error(), filepath.Join(dir, "a.yaml")+":1:11") {
		t.Errorf("got %v", err)
	}
}

func TestPathsThatCannotBeRead(t *testing.T) {
	empty := t.TempDir()
	if _, err := Load([]string{empty}, nil); err == nil || !strings.Contains(err.Error(), "no files that end in .yaml or .yml") {
		t.Errorf("got %v", err)
	}
	if _, err := Load([]string{filepath.Join(empty, "none")}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Values of YAML arrive as a decoder of JSON reads them, aliases too; hidden files are not read.
func TestLoad(t *testing.T) {
	dir := write(t, map[string]string{
		"z.yaml":   "environment: staging\ntenants:\n  acme:\n    alert_emails: &mail [a@example.com]\n  other: {alert_emails: *mail, name: 2024-01-01}\n",
		"a/t.yml":  "environment: staging\nevent_types:\n  a.b:\n  c.d: {schema: {file: c.json}, example: {at: 2024-01-01, n: 1.50, hex: 0x10, yes: no, nothing: }}\n",
		"a/c.json": `{"type": "object"}`, ".hidden/x.yaml": "tenants: [", "a/notes.txt": "tenants: [",
	})
	f, err := Load([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range f.Objects {
		names = append(names, o.String())
	}
	if got := strings.Join(names, ", "); got != "event type staging/a.b, event type staging/c.d, tenant staging/acme, tenant staging/other" {
		t.Errorf("objects are %s", got)
	}
	other := f.byName[Address{tenants, "staging", "", "other"}]
	if !equal(other.document, map[string]any{"alert_emails": []any{"a@example.com"}, "name": "2024-01-01"}) {
		t.Errorf("got %v", other.document)
	}
	if acme := f.byName[Address{tenants, "staging", "", "acme"}]; acme.document["name"] != "acme" {
		t.Errorf("the name does not default to the uid: %v", acme.document)
	}
	typed := f.byName[Address{eventTypes, "staging", "", "c.d"}]
	want, err := decode([]byte(`{"at":"2024-01-01","n":1.5,"hex":16,"yes":"no","nothing":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if !equal(typed.document["example"], want) || string(typed.raw["schema"]) != `{"type": "object"}` {
		t.Errorf("got %v and %s", typed.document, typed.raw["schema"])
	}
}

func TestSchemaOfFiles(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"timeout_seconds"`, `"$defs"`, `"Reference"`, `"event_validation"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the schema has no %s", part)
		}
	}
	if strings.Contains(string(text), "#/components") {
		t.Error("the schema refers to the API's document")
	}
	if len(inheritable()) == 0 {
		t.Error("no setting of a tenant can be inherited: the API's document has changed its form")
	}
	for _, k := range []*Kind{environments, eventTypes, tenants, endpoints, sources} {
		if len(k.members()) < 2 {
			t.Errorf("%s has the members %v: the API's document has changed its form", k.noun, k.members())
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("tenants:\n  acme: {endpoints: {a: {url: 'https://a.example'}}}\n")
	f.Add("environment: a\nevent_types: &a\n  b.c: {schema: {type: object}}\n---\nenvironments: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 || strings.Contains(text, "file") { // of any name on this machine
			t.Skip()
		}
		_, _ = Load([]string{"-"}, strings.NewReader(text))
	})
}
