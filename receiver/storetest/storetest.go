// Package storetest has the tests that every store of a receiver passes. Run them on your own store as well.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) receiver.Store { return open(t) })
//		storetest.RunConcurrency(t, func(t *testing.T) receiver.Store { return open(t) })
//	}
//
// Run tests one caller, RunConcurrency fifty at once, RunProcesses processes that share a store or die while they hold a key.
// RunTx and RunInbox are for stores that are a [receiver.Transactor] or a [receiver.Inbox].
//
// Stores are given the time, so the tests set it and wait for nothing.
package storetest

import (
	"context"
	"crypto/sha256"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/receiver"
)

// Start is the time at which tests begin. It is in the future, so that stores that also expire by their own clock do not do so
// within a test.
var Start = time.Now().Add(time.Hour).Truncate(time.Second)

const (
	lease  = time.Minute
	window = 24 * time.Hour
)

// ScopeOf makes a scope of a name.
func ScopeOf(name string) receiver.Digest { return sha256.Sum256([]byte(name)) }

func hold(scope, token string) receiver.Hold {
	return receiver.Hold{Scope: ScopeOf(scope), Fingerprint: ScopeOf("payload"), Token: token}
}

func reserve(h receiver.Hold, now time.Time) receiver.Reserve {
	return receiver.Reserve{Hold: h, Now: now, LeaseUntil: now.Add(lease)}
}

func completion(now time.Time) receiver.Completion {
	return receiver.Completion{
		Outcome: receiver.Outcome{
			Status: 201, Header: http.Header{"Content-Type": {"text/plain"}, "X-Receipt": {"r1"}}, Body: []byte("done \x00\xff"),
		},
		Now: now, Until: now.Add(window),
	}
}

func mustReserve(t *testing.T, s receiver.Store, r receiver.Reserve, want receiver.State) receiver.Reservation {
	t.Helper()
	got, err := s.Reserve(t.Context(), r)
	if err != nil {
		t.Fatalf("reserve: %v", err)
	}
	if got.State != want {
		t.Fatalf("reserve found state %d, want %d", got.State, want)
	}
	return got
}

func mustComplete(t *testing.T, s receiver.Store, h receiver.Hold, c receiver.Completion, want bool) {
	t.Helper()
	got, err := s.Complete(t.Context(), h, c)
	if err != nil {
		t.Fatalf("complete: %v", err)
	}
	if got != want {
		t.Fatalf("complete reported %t, want %t", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Run tests a store with one caller.
func Run(t *testing.T, open func(t *testing.T) receiver.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, receiver.Store)
	}{
		{"a new key is reserved, and then in progress", testReserve},
		{"a completed key gives its outcome", testOutcome},
		{"an outcome without a body", testNoBody},
		{"a released key is free", testRelease},
		{"a lease ends", testLease},
		{"who lost the lease completes nothing", testFence},
		{"who completed cannot release", testCompletedStays},
		{"a window ends", testWindow},
		{"scopes are apart", testScopes},
		{"a value is new once", testRemember},
		{"purging goes in steps", testPurge},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func testReserve(t *testing.T, s receiver.Store) {
	a, b := hold("k", "a"), hold("k", "b")
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	found := mustReserve(t, s, reserve(b, Start), receiver.InProgress)
	if found.Fingerprint != a.Fingerprint {
		t.Error("the fingerprint is not there while the key is in progress")
	}
	b.Fingerprint = receiver.Digest{}
	mustComplete(t, s, a, completion(Start), true)
	if found := mustReserve(t, s, reserve(b, Start), receiver.Completed); found.Fingerprint != a.Fingerprint {
		t.Error("the fingerprint is not there after the key was completed")
	}
	none := hold("none", "a")
	none.Fingerprint = receiver.Digest{}
	mustReserve(t, s, reserve(none, Start), receiver.Reserved)
	if found := mustReserve(t, s, reserve(hold("none", "b"), Start), receiver.InProgress); !found.Fingerprint.IsZero() {
		t.Error("a fingerprint came out of nothing")
	}
}

func testOutcome(t *testing.T, s receiver.Store) {
	a, want := hold("k", "a"), completion(Start)
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	mustComplete(t, s, a, want, true)
	for range 3 {
		found := mustReserve(t, s, reserve(hold("k", "b"), Start.Add(time.Hour)), receiver.Completed)
		if !reflect.DeepEqual(found.Outcome, want.Outcome) {
			t.Fatalf("outcome %+v, want %+v", found.Outcome, want.Outcome)
		}
	}
	mustComplete(t, s, a, want, false) // it is completed already
}

func testNoBody(t *testing.T, s receiver.Store) {
	a, c := hold("k", "a"), completion(Start)
	c.Body, c.Header = nil, nil
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	mustComplete(t, s, a, c, true)
	if found := mustReserve(t, s, reserve(hold("k", "b"), Start), receiver.Completed); found.Outcome.Status != 201 || len(found.Outcome.Body) > 0 {
		t.Fatalf("outcome %+v", found.Outcome)
	}
}

func testRelease(t *testing.T, s receiver.Store) {
	a, b := hold("k", "a"), hold("k", "b")
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	must(t, s.Release(t.Context(), b)) // not the holder: nothing happens
	mustReserve(t, s, reserve(b, Start), receiver.InProgress)
	must(t, s.Release(t.Context(), a))
	mustComplete(t, s, a, completion(Start), false)
	mustReserve(t, s, reserve(b, Start), receiver.Reserved)
	must(t, s.Release(t.Context(), a)) // no longer the holder
	mustReserve(t, s, reserve(hold("k", "c"), Start), receiver.InProgress)
	mustComplete(t, s, b, completion(Start), true)
}

func testLease(t *testing.T, s receiver.Store) {
	a, b := hold("k", "a"), hold("k", "b")
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	mustReserve(t, s, reserve(b, Start.Add(lease-time.Millisecond)), receiver.InProgress)
	b.Fingerprint = ScopeOf("another payload")
	mustReserve(t, s, reserve(b, Start.Add(lease)), receiver.Reserved)
	if found := mustReserve(t, s, reserve(a, Start.Add(lease)), receiver.InProgress); found.Fingerprint != b.Fingerprint {
		t.Error("the fingerprint is not that of the new holder")
	}
}

func testFence(t *testing.T, s receiver.Store) {
	a, b := hold("k", "a"), hold("k", "b")
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	mustReserve(t, s, reserve(b, Start.Add(lease)), receiver.Reserved)
	mustComplete(t, s, a, completion(Start.Add(lease)), false)
	must(t, s.Release(t.Context(), a))
	mustReserve(t, s, reserve(hold("k", "c"), Start.Add(lease)), receiver.InProgress)
	c := completion(Start.Add(lease))
	c.Status = 202
	mustComplete(t, s, b, c, true)
	mustComplete(t, s, a, completion(Start.Add(lease)), false)
	if found := mustReserve(t, s, reserve(a, Start.Add(lease)), receiver.Completed); found.Outcome.Status != 202 {
		t.Errorf("the outcome is %d, not that of the holder", found.Outcome.Status)
	}
}

func testCompletedStays(t *testing.T, s receiver.Store) {
	a := hold("k", "a")
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	mustComplete(t, s, a, completion(Start), true)
	must(t, s.Release(t.Context(), a))
	mustReserve(t, s, reserve(hold("k", "b"), Start), receiver.Completed)
}

func testWindow(t *testing.T, s receiver.Store) {
	a, b := hold("k", "a"), hold("k", "b")
	mustReserve(t, s, reserve(a, Start), receiver.Reserved)
	mustComplete(t, s, a, completion(Start), true)
	mustReserve(t, s, reserve(b, Start.Add(window-time.Millisecond)), receiver.Completed)
	mustReserve(t, s, reserve(b, Start.Add(window)), receiver.Reserved)
	if found := mustReserve(t, s, reserve(a, Start.Add(window)), receiver.InProgress); found.Outcome.Status != 0 {
		t.Error("the old outcome is still there")
	}
	mustComplete(t, s, b, completion(Start.Add(window)), true)
}

func testScopes(t *testing.T, s receiver.Store) {
	for _, scope := range []string{"a", "b", "c"} {
		mustReserve(t, s, reserve(hold(scope, "x"), Start), receiver.Reserved)
	}
	mustComplete(t, s, hold("a", "x"), completion(Start), true)
	mustReserve(t, s, reserve(hold("b", "y"), Start), receiver.InProgress)
}

func testRemember(t *testing.T, s receiver.Store) {
	ctx, value, until := t.Context(), ScopeOf("nonce"), Start.Add(5*time.Minute)
	for _, c := range []struct {
		value receiver.Digest
		now   time.Time
		fresh bool
	}{
		{value, Start, true}, {value, Start, false}, {ScopeOf("other"), Start, true},
		{value, until.Add(-time.Millisecond), false}, {value, until, true},
	} {
		fresh, err := s.Remember(ctx, c.value, c.now.Add(5*time.Minute), c.now)
		if err != nil || fresh != c.fresh {
			t.Fatalf("at %s: new is %t, %v; want %t", c.now, fresh, err, c.fresh)
		}
	}
}

// testPurge requires of stores that expire entries by themselves only that they drop nothing that is alive.
func testPurge(t *testing.T, s receiver.Store) {
	ctx := t.Context()
	for _, scope := range []string{"a", "b", "c", "d", "e"} {
		mustReserve(t, s, reserve(hold(scope, "x"), Start), receiver.Reserved)
		mustComplete(t, s, hold(scope, "x"), completion(Start), true)
	}
	mustReserve(t, s, reserve(hold("crashed", "x"), Start), receiver.Reserved)
	_, err := s.Remember(ctx, ScopeOf("nonce"), Start.Add(time.Minute), Start)
	must(t, err)
	n, err := s.Purge(ctx, Start.Add(time.Second), 100)
	if err != nil || n != 0 {
		t.Fatalf("dropped %d that are alive, %v", n, err)
	}
	end, total := Start.Add(window), 0
	for {
		n, err := s.Purge(ctx, end, 2)
		must(t, err)
		if n > 2 {
			t.Fatalf("dropped %d in one step of 2", n)
		}
		if n == 0 {
			break
		}
		total += n
	}
	if total != 7 && total != 0 {
		t.Errorf("dropped %d of 7", total)
	}
	mustReserve(t, s, reserve(hold("a", "y"), end), receiver.Reserved)
}

// closed is a context that has ended, for stores to fail on.
func closed() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
