package faults

import (
	"fmt"
	"strings"
	"testing"
)

// failing is a test that fails without failing the real one.
type failing struct {
	testing.TB
	output   []string
	cleanups []func()
}

func (f *failing) Helper()              {}
func (f *failing) Cleanup(clean func()) { f.cleanups = append(f.cleanups, clean) }
func (f *failing) Logf(format string, args ...any) {
	f.output = append(f.output, fmt.Sprintf(format, args...))
}
func (f *failing) Error(args ...any)                 { f.output = append(f.output, fmt.Sprintln(args...)) }
func (f *failing) Errorf(format string, args ...any) { f.Logf(format, args...) }
func (f *failing) Fatal(args ...any)                 { f.Error(args...) }
func (f *failing) Fatalf(format string, args ...any) { f.Logf(format, args...) }

func (f *failing) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

func TestVerdictComesLast(t *testing.T) {
	f := &failing{TB: t}
	v := withVerdict(f, 42)
	v.Cleanup(func() { v.Logf("end of the log of node-1") })
	v.Error("lost", 1)
	v.Errorf("lost %d:\n  again", 2)
	v.Fatal(strings.Repeat("x", 2*reasonLength))
	v.Fatalf("gave %s", "up")
	f.end()
	last := f.output[len(f.output)-1]
	if want := "failed with seed 42, errors: 4\nlost 1\nlost 2: again\nx"; !strings.HasPrefix(last, want) || !strings.HasSuffix(last, "x…\ngave up") {
		t.Errorf("the last output is %q", last)
	}
	if len(f.output) != 6 {
		t.Errorf("output: %q", f.output)
	}
}

func TestNoVerdictOnSuccess(t *testing.T) {
	f := &failing{TB: t}
	withVerdict(f, 42).Logf("fine")
	f.end()
	if len(f.output) != 1 {
		t.Errorf("output: %q", f.output)
	}
}

func TestTailLeavesOutWhatRepeats(t *testing.T) {
	log := "time=1 level=INFO msg=ready\n" +
		"time=2 level=ERROR msg=\"commit failed\" requests=1 error=\"no space\"\n" +
		"time=3 level=INFO msg=attempt status=200\n" +
		"time=4 level=INFO msg=ready\n" +
		"time=5 level=ERROR msg=\"commit failed\" requests=12 error=\"no space\"\n" +
		"time=6 level=ERROR msg=\"commit failed\" requests=12 error=\"no connection\"\n"
	want := "time=1 level=INFO msg=ready\n" +
		"time=4 level=INFO msg=ready\n" +
		"time=5 level=ERROR msg=\"commit failed\" requests=12 error=\"no space\"\n" +
		"time=6 level=ERROR msg=\"commit failed\" requests=12 error=\"no connection\""
	if got := tail([]byte(log)); got != want {
		t.Errorf("tail:\n%s", got)
	}
	if long := tail([]byte(strings.Repeat(log, 100))); len(long) > tailLength || !strings.HasSuffix(long, want) {
		t.Errorf("tail of %d bytes:\n%s", len(long), long)
	}
}
