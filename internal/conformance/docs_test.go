package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/trace"
)

const repository = "../.."

// pages are the texts that users read: the Markdown files of the repository. The list of requirement rows quotes the
// documents and promises nothing of its own.
func pages(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != repository && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "vectors" || name == "bin" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" || name == "conformance.md" {
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no page found")
	}
	return found
}

// sentences are the parts of a text that stand for themselves.
func sentences(text string) []string {
	return regexp.MustCompile(`[.!?:;]\s|\n\s*\n|\n\s*[-*|#]`).Split(text, -1)
}

// wantSentence fails unless some page has a sentence that holds all the words.
func wantSentence(t *testing.T, what string, words ...string) {
	t.Helper()
	for _, text := range pages(t) {
		for _, s := range sentences(text) {
			s = strings.Join(strings.Fields(s), " ")
			if !slices.ContainsFunc(words, func(w string) bool { return !mentions(s, w) }) {
				return
			}
		}
	}
	t.Errorf("no page says that %s", what)
}

// TestNoStrongerPromise: the pages promise at-least-once delivery and nothing stronger on the basis of the draft.
func TestNoStrongerPromise(t *testing.T) {
	trace.Covers(t, "EDS-SCP-1")
	texts := pages(t)
	r := newRig(t, apptest.Options{})
	for _, path := range []string{"/openapi.json", "/docs/idempotency", "/docs/problems"} {
		texts[path] = string(r.Must(apptest.Call{Path: path}, nil).Body)
	}
	promise := regexp.MustCompile(`(?i)exactly[- ]once|at[- ]most[- ]once|effectively[- ]once|only[- ]once|guarantee[sd]? (?:of )?(?:end[- ]to[- ]end )?delivery|delivery (?:is )?guaranteed|end-to-end guarantee`)
	denial := regexp.MustCompile(`(?i)\b(?:no|not|never|nor|neither|nothing|none|without|cannot)\b`)
	for name, text := range texts {
		for _, s := range sentences(text) {
			if promise.MatchString(s) && !denial.MatchString(s) {
				t.Errorf("%s promises too much: %q", name, strings.TrimSpace(s))
			}
		}
	}
	wantSentence(t, "delivery is at least once", "at least once")
}

// TestVendorsDocumentationDecides: the pages do not present survey figures as promises of a vendor.
func TestVendorsDocumentationDecides(t *testing.T) {
	trace.Covers(t, "EDS-SRV-1")
	text, err := os.ReadFile(filepath.Join(repository, "docs", "third-party.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	if !mentions(page, "current documentation") || !mentions(page, "illustrat") {
		t.Error("docs/third-party.md does not send readers to the vendor's current documentation")
	}
}

// TestEarlyDataHasNoSwitch: 0-RTT data can be replayed below any signature, so no setting enables it, and the documentation
// says why.
func TestEarlyDataHasNoSwitch(t *testing.T) {
	trace.Covers(t, "EDS-VER-5")
	for _, s := range config.Settings() {
		if mentions(s.Flag+" "+s.Doc, "0-rtt", "0rtt", "early data", "early-data") {
			t.Errorf("setting %s: %s", s.Flag, s.Doc)
		}
	}
	r := newRig(t, apptest.Options{})
	for _, member := range []string{"early_data", "zero_rtt", "allow_0rtt"} {
		answer := r.Call(apptest.Call{Path: "/v1/endpoints", Body: apptest.Fields{"url": r.sink.URL("/"), "policy": apptest.Fields{member: true}}})
		if answer.Status != 400 && answer.Status != 422 {
			t.Errorf("policy.%s: %d", member, answer.Status)
		}
	}
	wantSentence(t, "0-RTT data can be replayed", "0-rtt", "never", "replayed")
}
