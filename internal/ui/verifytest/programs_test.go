// Package verifytest runs the programs that the portal shows under "how to verify", each against deliveries of a running server.
package verifytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/slowtest"
)

// One endpoint for each profile and algorithm. The path has escapes and a query, which eds signs.
var endpoints = map[string]apptest.Fields{
	"eds":              {"profile": "eds"},
	"eds-pair":         {"profile": "eds", "algorithm": "ed25519"},
	"ojs":              {"profile": "ojs"},
	"cybercube":        {"profile": "cybercube"},
	"standard":         {"profile": "standard-webhooks"},
	"standard-pair":    {"profile": "standard-webhooks", "algorithm": "ed25519"},
	"eds-rotated":      {"profile": "eds"},
	"standard-rotated": {"profile": "standard-webhooks"},
}

type settings struct {
	Profile string       `json:"profile"`
	URL     string       `json:"url"`
	Keys    []settingKey `json:"keys"`

	environment []string
}

type settingKey struct {
	ID        string `json:"id"`
	Algorithm string `json:"algorithm"`
	PublicKey string `json:"public_key,omitempty"`
}

func TestProgramsVerifyDeliveries(t *testing.T) {
	slowtest.Needs(t, "Node.js, Python and openssl")
	srv := apptest.Start(t, apptest.Options{})
	sink := apptest.NewSink(t)
	list := map[string]settings{}
	for name, fields := range endpoints {
		url := sink.URL("/" + name + "/it%20is?a=b%20c")
		ep := srv.Endpoint(url, fields, apptest.Fields{"patterns": []string{"order.paid"}})
		s := settings{Profile: fields["profile"].(string), URL: url}
		if strings.HasSuffix(name, "-rotated") {
			s.add(rotate(t, srv, ep), "WEBHOOK_SECRET")
			s.add(ep.Secret, "WEBHOOK_SECRET_2")
		} else {
			s.add(ep.Secret, "WEBHOOK_SECRET")
		}
		list[name] = s
	}
	b := newBench(t)
	b.write(list)
	b.compile(slices.Sorted(maps.Keys(list)))

	type running struct {
		name, language string
		url            string
	}
	var servers []running
	for name, s := range list {
		for language, command := range b.commands(name) {
			servers = append(servers, running{name, language, b.start(command, s.environment)})
		}
	}
	srv.Publish("order.paid", `{"order":4711,"note":"café"}`)
	for name := range list {
		sink.WaitOn("/"+name+"/it%20is", 1)
	}
	for _, r := range servers {
		t.Run(r.name+"/"+r.language, func(t *testing.T) {
			q := sink.WaitOn("/"+r.name+"/it%20is", 1)[0]
			for _, c := range forgeries(&q) {
				if status := post(t, r.url+q.Path, c.request); status/100 != 2 && c.what == "" || status != 401 && c.what != "" {
					t.Errorf("%q gets %d", c.what, status)
				}
			}
		})
	}
	for name, s := range list {
		t.Run(name+"/shell", func(t *testing.T) {
			q := sink.WaitOn("/"+name+"/it%20is", 1)[0]
			for _, c := range forgeries(&q) {
				output, err := b.shell(t, name, s, c.request)
				if (err == nil) != (c.what == "") || strings.Contains(output, "verified") != (c.what == "") {
					t.Errorf("%q: %v\n%s", c.what, err, output)
				}
			}
		})
	}
}

func rotate(t *testing.T, srv *apptest.Server, ep apptest.Endpoint) apptest.Secret {
	t.Helper()
	var s apptest.Secret
	srv.EndpointCall(ep, "POST", "/rotate-secret", map[string]any{}).JSON(t, &s)
	return s
}

func (s *settings) add(key apptest.Secret, variable string) {
	s.Keys = append(s.Keys, settingKey{key.ID, key.Algorithm, key.PublicKey})
	if key.PublicKey == "" {
		s.environment = append(s.environment, variable+"="+key.Value)
	}
}

type forgery struct {
	what    string // empty: the true delivery
	request *apptest.Request
}

// signatures finds each signature of a header field, in base64 or hexadecimal digits.
var signatures = regexp.MustCompile(`[A-Za-z0-9+/]{32,}`)

// otherFirst changes the first digit, and with it the decoded bytes.
func otherFirst(digits string) string {
	if digits[0] == '0' {
		return "1" + digits[1:]
	}
	return "0" + digits[1:]
}

var times = regexp.MustCompile(`^\d{10}$|created=\d{10}`)

// forgeries returns changed deliveries, and at last the true one. An id that is remembered would hide what comes after it.
func forgeries(q *apptest.Request) []forgery {
	change := func(what string, f func(*apptest.Request)) forgery {
		copied := *q
		copied.Header = q.Header.Clone()
		f(&copied)
		return forgery{what, &copied}
	}
	return []forgery{
		change("another body", func(r *apptest.Request) { r.Body = bytes.Replace(q.Body, []byte("4711"), []byte("4712"), 1) }),
		change("an older time", func(r *apptest.Request) {
			for _, values := range r.Header {
				for i := range values {
					values[i] = times.ReplaceAllStringFunc(values[i], func(s string) string { return s[:len(s)-10] + "1700000000" })
				}
			}
		}),
		change("no signature", func(r *apptest.Request) {
			for name := range r.Header {
				if strings.HasSuffix(name, "Signature") {
					r.Header.Del(name)
				}
			}
		}),
		change("another signature", func(r *apptest.Request) {
			for name, values := range r.Header {
				if strings.HasSuffix(name, "Signature") {
					values[0] = signatures.ReplaceAllStringFunc(values[0], otherFirst)
				}
			}
		}),
		{"", q},
	}
}

func post(t *testing.T, url string, q *apptest.Request) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), q.Method, url, bytes.NewReader(q.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = q.Header.Clone()
	req.Header.Del("Content-Length")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// A bench has the programs: in dir/programs/NAME, and what is compiled from them.
type bench struct {
	t          *testing.T
	dir        string
	repository string
	tsc        string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir(), repository: repository}
	packages := filepath.Join(repository, "sdk", "typescript")
	b.tsc = filepath.Join(packages, "node_modules", "typescript", "bin", "tsc")
	if _, err := os.Stat(b.tsc); err != nil {
		t.Fatalf("%v; run npm ci in sdk/typescript", err)
	}
	return b
}

func (b *bench) run(dir, program string, args ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), program, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s %v: %v\n%s", program, args, err, output)
	}
}

func (b *bench) file(name string, content []byte) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) json(name string, value any) string {
	b.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.file(name, text)
}

const makePrograms = `
import { languages } from "./verify/index.js";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
for (const [name, settings] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  mkdirSync("programs/" + name, { recursive: true });
  for (const l of languages) writeFileSync("programs/" + name + "/" + l.file, l.program(settings));
}
`

// write makes the programs with the portal's own module.
func (b *bench) write(list map[string]settings) {
	b.t.Helper()
	b.file("package.json", []byte(`{"type": "module"}`))
	source := filepath.Join(b.repository, "ui", "src", "portal", "verify")
	b.json("verify.json", map[string]any{
		"compilerOptions": map[string]any{
			"target": "es2023", "module": "esnext", "moduleResolution": "bundler", "lib": []string{"es2023", "dom"}, "types": []string{}, "strict": true,
			"rewriteRelativeImportExtensions": true, "rootDir": source, "outDir": filepath.Join(b.dir, "verify"),
		},
		"files": []string{filepath.Join(source, "index.ts")},
	})
	b.run(b.dir, "node", b.tsc, "-p", "verify.json")
	input, err := json.Marshal(list)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "node", b.file("make.js", []byte(makePrograms)))
	cmd.Dir, cmd.Stdin = b.dir, bytes.NewReader(input)
	if output, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("make the programs: %v\n%s", err, output)
	}
	for name, s := range list {
		for _, program := range []string{"main.go", "receive.ts", "receive.py", "verify.sh"} {
			text, err := os.ReadFile(filepath.Join(b.dir, "programs", name, program))
			if err != nil {
				b.t.Fatal(err)
			}
			for _, variable := range s.environment {
				if _, secret, _ := strings.Cut(variable, "="); strings.Contains(string(text), secret) {
					b.t.Errorf("%s of %s holds the secret", program, name)
				}
			}
		}
	}
}

// compile builds all programs that are compiled, each compiler called once.
func (b *bench) compile(names []string) {
	b.t.Helper()
	sdk := filepath.Join(b.repository, "sdk", "typescript")
	module := filepath.Join(b.dir, "node_modules", "@godwit", "receiver")
	b.run(sdk, "node", b.tsc, "-p", "tsconfig.json", "--outDir", filepath.Join(module, "dist"))
	about, err := os.ReadFile(filepath.Join(sdk, "package.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.file("node_modules/@godwit/receiver/package.json", about)
	overlay := map[string]string{}
	packages := []string{"build", "-trimpath", "-overlay", "", "-o", filepath.Join(b.dir, "bin") + "/"}
	for _, name := range names {
		folder := "internal/ui/verifytest/programs/" + name
		overlay[filepath.Join(b.repository, folder, "main.go")] = filepath.Join(b.dir, "programs", name, "main.go")
		packages = append(packages, "./"+folder)
	}
	packages[3] = b.json("overlay.json", map[string]any{"Replace": overlay})
	b.run(b.repository, "go", packages...)
	b.json("programs.json", map[string]any{
		"compilerOptions": map[string]any{
			"target": "es2022", "module": "nodenext", "lib": []string{"es2023"}, "types": []string{"node"}, "typeRoots": []string{filepath.Join(sdk, "node_modules", "@types")},
			"strict": true, "noUnusedLocals": true, "skipLibCheck": true, "rootDir": b.dir,
		},
		"include": []string{"programs/*/receive.ts"},
	})
	b.run(b.dir, "node", b.tsc, "-p", "programs.json")
}

func (b *bench) commands(name string) map[string]*exec.Cmd {
	folder := filepath.Join(b.dir, "programs", name)
	python := exec.CommandContext(b.t.Context(), "python3", filepath.Join(folder, "receive.py"))
	python.Env = []string{"PYTHONPATH=" + filepath.Join(b.repository, "sdk", "python", "src"), "PYTHONDONTWRITEBYTECODE=1"}
	return map[string]*exec.Cmd{
		"go":         exec.CommandContext(b.t.Context(), filepath.Join(b.dir, "bin", name)),
		"typescript": exec.CommandContext(b.t.Context(), "node", filepath.Join(folder, "receive.js")),
		"python":     python,
	}
}

var listening = regexp.MustCompile(`listening on (?:\S+:)?(\d+)$`)

// start runs a program until the test ends, and returns its address, which it prints.
func (b *bench) start(cmd *exec.Cmd, environment []string) string {
	b.t.Helper()
	output, input := io.Pipe()
	cmd.Env = append(append(os.Environ(), cmd.Env...), append(environment, "PORT=0")...)
	cmd.Stdout, cmd.Stderr = input, input
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		_ = input.CloseWithError(cmd.Wait()) // it is killed when the test ends
	}()
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, output)
	})
	lines := bufio.NewScanner(output)
	var said []string
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return "http://127.0.0.1:" + m[1]
		}
		said = append(said, lines.Text())
	}
	b.t.Fatalf("%s ended: %v\n%s", cmd, lines.Err(), strings.Join(said, "\n"))
	return ""
}

func (b *bench) shell(t *testing.T, name string, s settings, q *apptest.Request) (string, error) {
	t.Helper()
	var fields strings.Builder
	for field, values := range q.Header {
		for _, value := range values {
			fields.WriteString(field + ": " + value + "\r\n")
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(b.dir, "programs", name, "verify.sh"), b.file("headers", []byte(fields.String())), b.file("body", q.Body))
	cmd.Env = append(os.Environ(), s.environment...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}
