package requirements

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root      = "../.."
	decisions = root + "/docs/decisions.md"
)

var (
	decisionID = regexp.MustCompile(`\b[Dd]ecisions? ([0-9]+)(?: and ([0-9]+))?\b`)
	tensionID  = regexp.MustCompile(`\b(?:OT|CT|IT|K|T)-[0-9]+\b`)
	rowID      = regexp.MustCompile(`\b(?:EDS|IKH|OJS|IDS|CCW)-[A-Z]+-[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*`)
)

// Every decision, tension and row cited in the repository is written down in it.
func TestCitationsResolve(t *testing.T) {
	tables, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	areas := map[string]bool{}
	for _, d := range tables.Documents {
		for _, r := range d.Rows {
			areas[strings.Split(r.ID, "-")[1]] = true
		}
	}
	short := shortRowID(areas)
	entries := headings(t)
	eachText(t, func(path string, line int, text string) {
		if !strings.ContainsRune(text, '-') && !strings.Contains(text, "ecision") {
			return
		}
		for _, m := range decisionID.FindAllStringSubmatch(text, -1) {
			for _, n := range m[1:] {
				if n != "" && !entries["Decision "+n] {
					t.Errorf("%s:%d: decision %s is not in docs/decisions.md", path, line, n)
				}
			}
		}
		for _, id := range tensionID.FindAllString(text, -1) {
			if !entries[id] {
				t.Errorf("%s:%d: %s is not in docs/decisions.md", path, line, id)
			}
		}
		for _, id := range rowID.FindAllString(text, -1) {
			if !tables.Known(id) {
				t.Errorf("%s:%d: %s is not a row of spec/requirements", path, line, id)
			}
		}
		for _, m := range short.FindAllStringSubmatch(text, -1) {
			t.Errorf("%s:%d: %s lacks the prefix of its document, such as EDS-%s", path, line, m[1], m[1])
		}
	})
}

// shortRowID matches the id of a row without its document.
func shortRowID(areas map[string]bool) *regexp.Regexp {
	names := make([]string, 0, len(areas))
	for area := range areas {
		names = append(names, area)
	}
	slices.Sort(names)
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9-])((?:` + strings.Join(names, "|") + `)-[0-9]+[a-z]?)(?:[^A-Za-z0-9-]|$)`)
}

// headings are the ids of the entries in docs/decisions.md: "Decision 15", "T-6".
func headings(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(decisions)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "### ")
		switch {
		case !ok:
			continue
		case !strings.HasPrefix(name, "Decision "):
			_, name, _ = strings.Cut(name, " ") // without the document
		}
		if found[name] {
			t.Errorf("docs/decisions.md has %s twice", name)
		}
		found[name] = true
	}
	return found
}

// eachText calls f for every line of the repository's sources, pages and scripts.
func eachText(t *testing.T, f func(path string, line int, text string)) {
	t.Helper()
	endings := []string{".go", ".md", ".ts", ".mts", ".js", ".mjs", ".py", ".sql", ".json", ".yaml", ".yml", ".html", ".css", ".txtar", ""}
	skipped := []string{".git", ".cache", ".ci", "node_modules", "dist", "bin", ".venv", "__pycache__", "testdata"}
	invented := []string{ // ids of no document
		"spec/requirements/citations_test.go", "spec/requirements/requirements_test.go", "internal/trace/trace_test.go", "internal/trace/tracetool/main_test.go",
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(endings, filepath.Ext(path)) || slices.Contains(invented, name):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			f(name, n, line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
