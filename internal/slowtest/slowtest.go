// Package slowtest marks tests that `make test-fast` leaves out.
//
// A test is left out because of what it needs (a database server, other processes), not because of its name: the function
// that provides it calls Needs. `make test` runs every test; there Needs does nothing.
package slowtest

import "testing"

// Needs skips the test in short mode (go test -short). need completes "needs …".
func Needs(t testing.TB, need string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs %s; make test runs it", need)
	}
}
