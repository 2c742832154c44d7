package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
)

// check runs the page's module on deliveries in standard input, and on each with a changed body. It prints the keyid of each.
const check = `
import { verifyDelivery } from "./verify.mjs";
import { readFileSync } from "node:fs";
for (const d of JSON.parse(readFileSync(0, "utf8"))) {
  const body = Buffer.from(d.body, "base64");
  console.log(verifyDelivery({ ...d, body }).keyid);
  for (const wrong of [{ body: Buffer.concat([body, Buffer.from(" ")]) }, { url: d.url + "x" }, { keys: {} }, { now: Date.now() / 1000 + 301 }]) {
    let refused = false;
    try { verifyDelivery({ ...d, body, ...wrong }); } catch { refused = true; }
    if (!refused) throw new Error("a forged delivery verifies: " + Object.keys(wrong));
  }
}
`

// The example of docs/eds.md verifies what a running server delivers: with a shared secret, with a key pair, during a rotation,
// and with the key as the directory shows it.
func TestExampleVerifiesLiveDeliveries(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "eds.md"))
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(page)
	if module == nil {
		t.Fatal("docs/eds.md has no example")
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"verify.mjs": module[1], "check.mjs": []byte(check)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := apptest.Start(t, apptest.Options{})
	sink := apptest.NewSink(t)
	shared := srv.Endpoint(sink.URL("/shared?a=b%20c"))
	pair := srv.Endpoint(sink.URL("/pair"), apptest.Fields{"algorithm": "ed25519"})
	rotated := srv.Endpoint(sink.URL("/rotated"))
	srv.EndpointCall(rotated, "POST", "/rotate-secret", map[string]any{})
	srv.Publish("order.paid", `{"order":4711}`)
	var directory struct {
		Keys []struct{ Keyid, X string }
	}
	srv.Must(apptest.Call{Path: "/.well-known/http-message-signatures-directory?keyid=" + pair.Secret.ID}, &directory)
	if len(directory.Keys) != 1 || directory.Keys[0].Keyid != pair.Secret.ID {
		t.Fatalf("directory %+v", directory)
	}
	type delivery struct {
		Method  string            `json:"method"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Body    []byte            `json:"body"`
		Keys    any               `json:"keys"`
	}
	var list []delivery
	var want []string
	for _, c := range []struct {
		path string
		ep   apptest.Endpoint
		key  map[string]string
	}{
		{"/shared?a=b%20c", shared, map[string]string{"value": shared.Secret.Value}},
		{"/pair", pair, map[string]string{"public_key": pair.Secret.PublicKey}},
		{"/pair", pair, map[string]string{"public_key": directory.Keys[0].X}}, // Node reads both alphabets of base64
		{"/rotated", rotated, map[string]string{"value": rotated.Secret.Value}},
	} {
		path, _, _ := strings.Cut(c.path, "?")
		r := sink.WaitOn(path, 1)[0]
		d := delivery{Method: r.Method, URL: sink.URL(c.path), Headers: map[string]string{}, Body: r.Body, Keys: map[string]any{c.ep.Secret.ID: c.key}}
		for name := range r.Header {
			d.Headers[strings.ToLower(name)] = strings.Join(r.Header.Values(name), ", ")
		}
		list, want = append(list, d), append(want, c.ep.Secret.ID)
	}
	input, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "check.mjs"))
	node.Stdin = strings.NewReader(string(input))
	out, err := node.CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("node: %v\n%s", err, out)
	}
}
