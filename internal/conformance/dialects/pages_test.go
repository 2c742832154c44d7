//go:build unix

package dialects

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/slowtest"
	"github.com/godwit-hq/godwit/internal/trace"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestPagesRun runs every shell block of the pages that introduce a dialect or the platform, in order, against a live server. A failing line
// fails the page.
func TestPagesRun(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("this test runs the pages' curl lines: install %s", program)
		}
	}
	for page, paths := range map[string][]string{
		"ojs.md":               {"/ojs"},
		"cybercube.md":         {"/cybercube"},
		"standard-webhooks.md": {"/standard"},
		"commands.md":          {"/commands"},
		"platform.md":          {"/customer-2"},
	} {
		t.Run(page, func(t *testing.T) {
			if page == "platform.md" {
				slowtest.Needs(t, "the program, which takes long to build")
				bin := t.TempDir()
				if err := os.Symlink(apptest.Binary(t), filepath.Join(bin, "godwit")); err != nil {
					t.Fatal(err)
				}
				t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			}
			srv := apptest.Start(t, apptest.Options{})
			sink := apptest.NewSink(t)
			output := paste(t, page, srv, sink.URL(""))
			for _, path := range paths {
				if len(sink.WaitOn(path, 1)) == 0 {
					t.Errorf("nothing arrived at %s", path)
				}
			}
			if strings.Contains(output, `"error"`) {
				t.Errorf("an answer tells of an error:\n%s", output)
			}
		})
	}
}

// paste runs a page's shell blocks as one script.
func paste(t *testing.T, page string, srv *apptest.Server, hook string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		script.WriteString(block[1] + "\n")
	}
	if script.Len() == 0 {
		t.Fatal("the page has no shell block")
	}
	dir := t.TempDir()
	// A refusal makes curl and thus the script fail, so the pages need no such option on every line.
	if err := os.WriteFile(filepath.Join(dir, ".curlrc"), []byte("fail-with-body\nsilent\nshow-error\nwrite-out=\"\\n\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GODWIT="+srv.URL, "KEY="+srv.Key, "HOOK="+hook, "CURL_HOME="+dir, "HOME="+dir)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", page, err, output)
	}
	t.Logf("%s", output)
	return string(output)
}

// TestPagesSayWhatIsNotThere: the pages do not promise features that the documents leave out.
func TestPagesSayWhatIsNotThere(t *testing.T) {
	trace.Covers(t, "OJS-CON-10")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "ojs.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{"No transports but HTTP", "no batching of several events into one request", "no receiver"} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), claim) {
			t.Errorf("docs/ojs.md does not say: %s", claim)
		}
	}
}
