package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	known   = "EDS-STA-503"
	another = "IKH-SYN-1"
)

func TestCoversRecordsPassingTests(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(DirVariable, dir)
	t.Run("passing", func(t *testing.T) { Covers(t, known, another) })

	got := readAll(t, dir)
	want := []string{
		known + "\tinternal/trace\tTestCoversRecordsPassingTests/passing",
		another + "\tinternal/trace\tTestCoversRecordsPassingTests/passing",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestCoversRecordsOnlyTheOutcomePassed(t *testing.T) {
	for name, outcome := range map[string]stub{
		"failed":  {failed: true},
		"skipped": {skipped: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(DirVariable, dir)
			outcome.TB = t
			Covers(&outcome, known)
			outcome.finish()
			if got := readAll(t, dir); len(got) != 0 {
				t.Errorf("recorded %q", got)
			}
		})
	}
}

func TestCoversRefusesUnknownIDs(t *testing.T) {
	for name, ids := range map[string][]string{
		"unknown":            {"EDS-STA-999"},
		"known then unknown": {known, "eds-sta-503"},
		"empty":              {""},
		"none":               nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := &stub{TB: t}
			if !s.fatal(func() { Covers(s, ids...) }) {
				t.Error("accepted")
			}
		})
	}
}

func TestCoversWithoutDirectoryOnlyChecks(t *testing.T) {
	t.Setenv(DirVariable, "")
	s := &stub{TB: t}
	Covers(s, known)
	if len(s.cleanups) != 0 {
		t.Error("registered a cleanup")
	}
}

func TestCoversRefusesRelativeDirectory(t *testing.T) {
	t.Setenv(DirVariable, "somewhere")
	s := &stub{TB: t}
	Covers(s, known)
	s.finish()
	if !strings.Contains(s.message, "absolute") {
		t.Errorf("message %q does not ask for an absolute path", s.message)
	}
}

func TestClaimsOfParallelTestsStayWhole(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(DirVariable, dir)
	const tests = 200
	done := make(chan struct{})
	for i := range tests {
		go func() {
			defer func() { done <- struct{}{} }()
			if err := record(dir, "p", fmt.Sprint("Test", i), []string{known, another}); err != nil {
				t.Error(err)
			}
		}()
	}
	for range tests {
		<-done
	}
	if got := readAll(t, dir); len(got) != 2*tests {
		t.Errorf("read %d claims, want %d", len(got), 2*tests)
	}
}

func TestReadClaimsRefusesWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/1"+claimSuffix, []byte("EDS-STA-503 spaces only\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadClaims(dir); err == nil {
		t.Error("accepted a malformed line")
	}
	if _, err := ReadClaims(dir + "/missing"); err == nil {
		t.Error("accepted a missing directory")
	}
}

func readAll(t *testing.T, dir string) []string {
	t.Helper()
	claims, err := ReadClaims(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range claims {
		lines = append(lines, c.String())
	}
	return lines
}

// stub is a test whose outcome is chosen.
type stub struct {
	testing.TB
	failed, skipped bool
	message         string
	cleanups        []func()
}

type fatalCall struct{}

func (s *stub) Failed() bool                 { return s.failed }
func (s *stub) Skipped() bool                { return s.skipped }
func (s *stub) Cleanup(f func())             { s.cleanups = append(s.cleanups, f) }
func (s *stub) Fatal(args ...any)            { s.message = fmt.Sprint(args...); panic(fatalCall{}) }
func (s *stub) Fatalf(f string, args ...any) { s.Fatal(fmt.Sprintf(f, args...)) }
func (s *stub) Errorf(f string, args ...any) { s.message = fmt.Sprintf(f, args...) }
func (s *stub) finish() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// fatal reports whether f ended the test.
func (s *stub) fatal(f func()) (ended bool) {
	defer func() {
		if r := recover(); r != nil {
			_, ended = r.(fatalCall)
			if !ended {
				panic(r)
			}
		}
	}()
	f()
	return false
}

func TestReadClaimsOfOtherLanguages(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "python.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"covered":{"EDS-DEF-3":["a test\tof  theirs"]}}`)
	claims, err := ReadClaims(dir)
	if want := (Claim{ID: "EDS-DEF-3", Package: "sdk/python", Test: "a test of theirs"}); err != nil || len(claims) != 1 || claims[0] != want {
		t.Errorf("read %v, %v", claims, err)
	}
	for _, bad := range []string{`{"covered":{"EDS-NO-1":["x"]}}`, `{`} {
		write(bad)
		if _, err := ReadClaims(dir); err == nil {
			t.Errorf("took %s", bad)
		}
	}
}
