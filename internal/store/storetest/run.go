// Package storetest is the one suite that every store backend passes: Run shows the behaviour that package store
// promises, RunConcurrency that it holds when many work at once, RunCrash that what was acknowledged survives kill -9.
//
//	func TestStore(t *testing.T)       { storetest.Run(t, open) }
//	func TestConcurrency(t *testing.T) { storetest.RunConcurrency(t, open) }
//	func TestCrash(t *testing.T)       { storetest.RunCrash(t, storetest.Crash{Location: …, Open: …}) }
//
// open gives each case an empty store of its own and closes it when the test ends. The suite knows no backend: it speaks
// through store.Store alone, and asks for nothing that package store does not say.
package storetest

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
)

// Open gives a test an empty store and closes it with the test.
type Open func(t testing.TB) store.Store

type testCase struct {
	name string
	test func(t *testing.T, f *fixture)
}

// Run shows the behaviour of every method.
func Run(t *testing.T, open func(t testing.TB) store.Store) {
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"accept", acceptCases},
		{"result", resultCases},
		{"fan-out", fanoutCases},
		{"handover", handoverCases},
		{"engine", engineCases},
		{"claim", claimCases},
		{"lease", leaseCases},
		{"delivery", deliveryCases},
		{"attempt", attemptCases},
		{"requeue", requeueCases},
		{"dead letter", deadLetterCases},
		{"event", eventCases},
		{"event range", eventRangeCases},
		{"endpoint", endpointCases},
		{"secret", secretCases},
		{"tenant", tenantCases},
		{"key", keyCases},
		{"idempotency", idempotencyCases},
		{"notice", noticeCases},
		{"event type", eventTypeCases},
		{"source", sourceCases},
		{"sweep", sweepCases},
		{"sealed", sealedCases},
		{"upkeep", upkeepCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.test(t, newFixture(t, open))
				})
			}
		})
	}
}
