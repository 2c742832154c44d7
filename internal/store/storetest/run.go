// Package storetest is the test suite for store backends: Run tests the behaviour that package store documents, RunConcurrency
// tests it under concurrent use, RunLeases tests the ownership of shards,
// RunNodes tests node names under several processes, and RunCrash tests that acknowledged writes survive kill -9.
//
//	func TestStore(t *testing.T)       { storetest.Run(t, open) }
//	func TestConcurrency(t *testing.T) { storetest.RunConcurrency(t, open) }
//	func TestLeases(t *testing.T)      { storetest.RunLeases(t, openWithClock) }
//	func TestNodes(t *testing.T)       { storetest.RunNodes(t, storetest.Nodes{Open: open, …}) }
//	func TestCrash(t *testing.T)       { storetest.RunCrash(t, storetest.Crash{Location: …, Open: …}) }
//
// open returns an empty store for each case and closes it when the test ends. The suite knows no backend: it uses only
// store.Store, and expects only the behaviour that package store documents.
package storetest

import (
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
)

// Open returns an empty store for a test and closes it when the test ends.
type Open func(t testing.TB) store.Store

type testCase struct {
	name string
	test func(t *testing.T, f *fixture)
}

// Run tests every method.
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
		{"node", nodeCases},
		{"delivery", deliveryCases},
		{"attempt", attemptCases},
		{"requeue", requeueCases},
		{"dead letter", deadLetterCases},
		{"event", eventCases},
		{"event range", eventRangeCases},
		{"endpoint", endpointCases},
		{"secret", secretCases},
		{"environment", environmentCases},
		{"broadcast", broadcastCases},
		{"tenant", tenantCases},
		{"key", keyCases},
		{"session", sessionCases},
		{"idempotency", idempotencyCases},
		{"notice", noticeCases},
		{"event type", eventTypeCases},
		{"source", sourceCases},
		{"sweep", sweepCases},
		{"sealed", sealedCases},
		{"allowance", allowanceCases},
		{"usage", usageCases},
		{"stats", statsCases},
		{"key check", keyCheckCases},
		{"config", configCases},
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
