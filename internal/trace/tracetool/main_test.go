package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run's inputs that need no change in most cases.
func fixture(t *testing.T) (options, func(name string, lines ...string)) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, lines ...string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Join(append(lines, ""), "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const header = "id,level,role,statement"
	write("spec/eds.csv", header,
		"EDS-A-1,MUST,sender,first",
		"EDS-A-2,MUST NOT,sender,second",
		"EDS-A-3,REQUIRED,sender,third",
		"EDS-A-4,SHOULD,sender,a | b")
	write("spec/ikh.csv", header, "IKH-A-1,MUST,server,only")
	for _, empty := range []string{"ojs", "ids", "ccw"} {
		write("spec/"+empty+".csv", header)
	}
	write("spec/not-applicable.csv", "id,reason", "EDS-A-3,no such part")
	write("spec/covered.csv", "id", "EDS-A-1")
	write("run/1.claims", "EDS-A-1\tp\tTestOne", "EDS-A-4\tp\tTestTwo/x")
	write("run/2.claims", "EDS-A-1\ta\tTestOther", "EDS-A-1\tp\tTestOne")
	write("run/passed")
	return options{
		run:          filepath.Join(dir, "run"),
		requirements: filepath.Join(dir, "spec"),
		report:       filepath.Join(dir, "conformance.md"),
	}, write
}

func TestRunWritesReportAndEndsWithSummary(t *testing.T) {
	o, _ := fixture(t)
	var stdout, stderr strings.Builder
	if err := run(o, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	const summary = `
EDS covered=2 na=1 open=1 open-must=1
IKH covered=0 na=0 open=1 open-must=1
OJS covered=0 na=0 open=0 open-must=0
IDS covered=0 na=0 open=0 open-must=0
CCW covered=0 na=0 open=0 open-must=0
`
	if !strings.HasSuffix(stdout.String(), summary) {
		t.Errorf("output ends otherwise:\n%s", &stdout)
	}
	if stderr.Len() > 0 {
		t.Errorf("unexpected problems: %s", &stderr)
	}
	page := read(t, o.report)
	for _, line := range []string{
		"| EDS-A-1 | MUST | sender | first | covered | `a.TestOther`<br>`p.TestOne` |\n",
		"| EDS-A-2 | MUST NOT | sender | second | open |  |\n",
		"| EDS-A-3 | REQUIRED | sender | third | n/a | no such part |\n",
		"| EDS-A-4 | SHOULD | sender | a \\| b | covered | `p.TestTwo/x` |\n",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("page lacks %q", line)
		}
	}
}

func TestRunFailsNamingTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o options, write func(string, ...string))
		want  string
	}{
		"covered row lost": {func(_ options, write func(string, ...string)) {
			write("spec/covered.csv", "id", "EDS-A-1", "EDS-A-2")
		}, "claimed by no passing test now: EDS-A-2"},
		"claimed and not applicable": {func(_ options, write func(string, ...string)) {
			write("run/3.claims", "EDS-A-3\tp\tTestThree")
		}, "EDS-A-3 is listed as not applicable, yet claimed by p.TestThree"},
		"unknown id": {func(_ options, write func(string, ...string)) {
			write("run/3.claims", "EDS-Z-9\tp\tTestZ")
		}, "EDS-Z-9 is no known row, claimed by p.TestZ"},
		"a test failed": {func(o options, _ func(string, ...string)) {
			os.Remove(filepath.Join(o.run, passedFile))
		}, "did not pass"},
		"no run": {func(o options, _ func(string, ...string)) {
			os.RemoveAll(o.run)
		}, "run `make test` first"},
		"faulty tables": {func(_ options, write func(string, ...string)) {
			write("spec/ojs.csv", "nonsense")
		}, "ojs.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			o, write := fixture(t)
			c.spoil(o, write)
			var stdout, stderr strings.Builder
			if err := run(o, &stdout, &stderr); err == nil {
				t.Error("did not fail")
			}
			if !strings.Contains(stderr.String(), c.want) {
				t.Errorf("problems %q, want one about %q", &stderr, c.want)
			}
			if _, err := os.Stat(o.report); err == nil {
				t.Error("wrote a report nevertheless")
			}
		})
	}
}

func TestCheckComparesAndWritesNothing(t *testing.T) {
	o, write := fixture(t)
	var discard strings.Builder
	o.check = true
	if err := run(o, &discard, &discard); err == nil {
		t.Error("passed without a page")
	}
	o.check = false
	if err := run(o, &discard, &discard); err != nil {
		t.Fatal(err)
	}
	before := read(t, o.report)

	o.check = true
	if err := run(o, &discard, &discard); err != nil {
		t.Errorf("an up-to-date page is refused: %v", err)
	}
	write("run/3.claims", "EDS-A-2\tp\tTestNew")
	if err := run(o, &discard, &discard); err == nil || !strings.Contains(err.Error(), "out of date") {
		t.Errorf("a stale page gives %v", err)
	}
	if read(t, o.report) != before {
		t.Error("check changed the page")
	}
}

func TestRecordOnlyAddsUnlessToldToPrune(t *testing.T) {
	o, write := fixture(t)
	write("spec/covered.csv", "id", "IKH-A-1", "EDS-A-1")
	file := filepath.Join(o.requirements, "covered.csv")
	var discard strings.Builder

	o.record = true
	if err := run(o, &discard, &discard); err == nil {
		t.Error("a lost row is forgiven by recording")
	}
	if got, want := read(t, file), "id\nEDS-A-1\nEDS-A-4\nIKH-A-1\n"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
	o.prune = true
	if err := run(o, &discard, &discard); err != nil {
		t.Error(err)
	}
	if got, want := read(t, file), "id\nEDS-A-1\nEDS-A-4\n"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestRecordRefusesRunThatDidNotPass(t *testing.T) {
	o, _ := fixture(t)
	os.Remove(filepath.Join(o.run, passedFile))
	o.record, o.prune = true, true
	var discard strings.Builder
	if err := run(o, &discard, &discard); err == nil {
		t.Error("did not fail")
	}
	if got, want := read(t, filepath.Join(o.requirements, "covered.csv")), "id\nEDS-A-1\n"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct {
		a, b    string
		line    int
		differs bool
	}{
		{"", "", 0, false},
		{"a\nb\n", "a\nb\n", 0, false},
		{"", "a\n", 1, true},
		{"a\nb\n", "a\nc\n", 2, true},
		{"a\nb", "a\nb\nc", 2, true},
	} {
		if line, differs := firstDifference([]byte(c.a), []byte(c.b)); line != c.line || differs != c.differs {
			t.Errorf("%q, %q: line %d, %v", c.a, c.b, line, differs)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
