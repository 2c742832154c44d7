package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is when the golden tables are shown.
var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// Each file of testdata/tables has items of a noun, as the API shows them. The tables of several terminals are beside it.
func TestTablesFitTheTerminal(t *testing.T) {
	files, err := filepath.Glob("testdata/tables/*.ndjson")
	if err != nil || len(files) != len(resources) {
		t.Fatalf("%d files for %d nouns, %v", len(files), len(resources), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ndjson")
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var items []json.RawMessage
		for line := range bytes.Lines(content) {
			items = append(items, line)
		}
		var shown strings.Builder
		for _, width := range []int{60, 80, 120, 0} {
			var b strings.Builder
			s := &Session{Stdout: &b, Width: width, Now: func() time.Time { return noon }}
			if err := s.printTable(resources[name].columns, items); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&shown, "width %d\n%s\n", width, b.String())
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
					t.Errorf("%s: %d columns at width %d: %s", name, n, width, line)
				}
			}
		}
		golden := strings.TrimSuffix(file, ".ndjson") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(shown.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || shown.String() != string(want) {
			t.Errorf("%s: run go test ./internal/cli -update and look at the difference; now\n%s", golden, shown.String())
		}
	}
}

func TestTimesAreRelativeIfNear(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", 5 * time.Second: "5s ago", 90 * time.Second: "1m ago", 26 * time.Hour: "26h ago", -10 * time.Minute: "in 10m", 100 * time.Hour: "2026-11-12 08:00",
	} {
		if got := ago(noon.Add(-d), noon.UTC()); got != want && !strings.Contains(want, "-") {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestMoments(t *testing.T) {
	for text, want := range map[string]time.Time{"2h": noon.Add(-2 * time.Hour), "30d": noon.AddDate(0, 0, -30), "2026-11-16T09:00:00Z": noon.Add(-3 * time.Hour)} {
		if got, err := moment(text).resolve(noon); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	if _, err := moment("yesterday").resolve(noon); err == nil || !strings.Contains(err.Error(), "2h") {
		t.Errorf("yesterday: %v", err)
	}
}
