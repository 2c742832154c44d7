// Package trace lets a test claim the requirement rows that it shows.
//
//	func TestRetryAfterHoldsEndpoint(t *testing.T) {
//		trace.Covers(t, "EDS-BKO-7", "EDS-STA-503")
//		...
//
// A claim is a promise: the test would fail if the row were broken.
//
//	Covers ─► id known? (no: the test fails at once)
//	   └─► test passed, GODWIT_TRACE_DIR set ─► a line in that directory ─► tracetool ─► docs/conformance.md
//
// Without GODWIT_TRACE_DIR only the ids are checked. The package does not judge
// coverage and knows nothing of levels: counting is tracetool's.
package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/spec/requirements"
)

// DirVariable names the environment variable with the absolute path of the
// directory that collects claims.
const DirVariable = "GODWIT_TRACE_DIR"

// Covers claims that the test shows the rows with these ids. Call it in the first line of the test or subtest: cleanups run in
// reverse, so that a failure in any later cleanup still withdraws the claim.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	tables, err := requirements.Embedded()
	if err != nil {
		t.Fatalf("load requirements: %v", err)
	}
	if len(ids) == 0 {
		t.Fatal("trace.Covers: no requirement id given")
	}
	for _, id := range ids {
		if !tables.Known(id) {
			t.Fatalf("trace.Covers: no row %q in spec/requirements", id)
		}
	}
	dir := os.Getenv(DirVariable)
	if dir == "" {
		return
	}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		if err := record(dir, testPackage(), t.Name(), ids); err != nil {
			t.Errorf("trace.Covers: %v", err)
		}
	})
}

// record appends the claims of one test in a single write, which the kernel keeps whole among parallel tests. Every process has
// its own file.
func record(dir, pkg, test string, ids []string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%s must be an absolute path, is %q", DirVariable, dir)
	}
	var lines strings.Builder
	for _, id := range ids {
		fmt.Fprintln(&lines, Claim{ID: id, Package: pkg, Test: test})
	}
	f, err := os.OpenFile(filepath.Join(dir, processFile()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("open claims: %w", err)
	}
	if _, err := f.WriteString(lines.String()); err != nil {
		f.Close()
		return fmt.Errorf("write claims: %w", err)
	}
	return f.Close()
}

// testPackage is the package under test, relative to the module. It comes from the test binary and not from the caller, so that
// a shared suite is attributed to the package that ran it.
var testPackage = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	pkg := strings.TrimSuffix(info.Path, ".test")
	return strings.TrimPrefix(pkg, info.Main.Path+"/")
})
