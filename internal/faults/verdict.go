package faults

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A verdict is a test that says at its very end, after the logs of the nodes, why it failed: often the end of an output is all that is kept of it.
type verdict struct {
	testing.TB
	seed uint64

	mu      sync.Mutex
	reasons []string
}

// withVerdict must be called before anything else registers a cleanup: what is registered first comes last.
func withVerdict(t testing.TB, seed uint64) testing.TB {
	v := &verdict{TB: t, seed: seed}
	t.Cleanup(v.tell)
	return v
}

const (
	reasonsTold  = 6
	reasonLength = 400
)

func (v *verdict) tell() {
	v.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.reasons) == 0 {
		return
	}
	var told strings.Builder
	for _, reason := range v.reasons[:min(reasonsTold, len(v.reasons))] {
		line := strings.Join(strings.Fields(reason), " ")
		if len(line) > reasonLength {
			line = strings.ToValidUTF8(line[:reasonLength], "") + "…"
		}
		told.WriteString("\n" + line)
	}
	v.Logf("failed with seed %d, errors: %d%s", v.seed, len(v.reasons), told.String())
}

func (v *verdict) remember(reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reasons = append(v.reasons, reason)
}

func (v *verdict) Error(args ...any) {
	v.Helper()
	v.remember(fmt.Sprintln(args...))
	v.TB.Error(args...)
}

func (v *verdict) Errorf(format string, args ...any) {
	v.Helper()
	v.remember(fmt.Sprintf(format, args...))
	v.TB.Errorf(format, args...)
}

func (v *verdict) Fatal(args ...any) {
	v.Helper()
	v.remember(fmt.Sprintln(args...))
	v.TB.Fatal(args...)
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Helper()
	v.remember(fmt.Sprintf(format, args...))
	v.TB.Fatalf(format, args...)
}

// tailLength is how much is shown of a node's log. All tails and the verdict fit in the 12 KB that a reader may see of an output.
const tailLength = 2 << 10

var (
	attemptLine = regexp.MustCompile(` msg=attempt `)
	faultLine   = regexp.MustCompile(` level=(WARN|ERROR) `)
	varying     = regexp.MustCompile(`^time=\S+|[0-9]+|\w+_[0-9a-z-]+`)
)

// tail is the end of a node's log. It leaves out attempts, of which there are so many, and all warnings and errors but the last of a kind.
func tail(log []byte) string {
	var kept []string
	size, seen := 0, map[string]bool{}
	for _, line := range slices.Backward(bytes.Split(log, []byte("\n"))) {
		if len(line) == 0 || attemptLine.Match(line) {
			continue
		}
		if faultLine.Match(line) {
			kind := string(varying.ReplaceAll(line, nil))
			if seen[kind] {
				continue
			}
			seen[kind] = true
		}
		if size += len(line) + 1; size > tailLength {
			break
		}
		kept = append(kept, string(line))
	}
	slices.Reverse(kept)
	return strings.Join(kept, "\n")
}
