package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/receiver"
)

// A TxStore is a store with transactions, and an effect to be counted.
type TxStore struct {
	Store receiver.Transactor
	// Effect writes something in the transaction of the context.
	Effect func(ctx context.Context) error
	// OneWriter says that a transaction blocks all other writers.
	OneWriter bool
	// Count returns how often the effect was written.
	Count func(t *testing.T) int
}

// RunTx tests that an effect and the completion of its key happen together or not at all.
func RunTx(t *testing.T, open func(t *testing.T) TxStore) {
	t.Run("both are committed", func(t *testing.T) { testCommit(t, open(t)) })
	t.Run("neither is after a rollback", func(t *testing.T) { testRollback(t, open(t)) })
	t.Run("neither is after the lease was lost", func(t *testing.T) { testLostInTx(t, open(t)) })
	t.Run("no transaction for who lost the lease", func(t *testing.T) { testLostBeforeTx(t, open(t)) })
	t.Run("repeats are answered while a transaction runs", func(t *testing.T) { testRepeatDuringTx(t, open(t)) })
	t.Run("fifty at once make one effect", func(t *testing.T) { testOneEffect(t, open(t)) })
}

func begin(t *testing.T, s TxStore, h receiver.Hold) (receiver.Tx, context.Context) {
	t.Helper()
	tx, err := s.Store.Begin(t.Context(), h)
	must(t, err)
	return tx, tx.Context(t.Context())
}

func wantEffects(t *testing.T, s TxStore, want int) {
	t.Helper()
	if got := s.Count(t); got != want {
		t.Fatalf("%d effects, want %d", got, want)
	}
}

func testCommit(t *testing.T, s TxStore) {
	h := hold("k", "a")
	mustReserve(t, s.Store, reserve(h, Start), receiver.Reserved)
	tx, ctx := begin(t, s, h)
	must(t, s.Effect(ctx))
	ok, err := tx.Complete(t.Context(), completion(Start))
	if err != nil || !ok {
		t.Fatalf("complete: %t, %v", ok, err)
	}
	must(t, tx.Rollback(t.Context())) // does nothing any more
	mustReserve(t, s.Store, reserve(hold("k", "b"), Start), receiver.Completed)
	wantEffects(t, s, 1)
}

func testRollback(t *testing.T, s TxStore) {
	h := hold("k", "a")
	mustReserve(t, s.Store, reserve(h, Start), receiver.Reserved)
	tx, ctx := begin(t, s, h)
	must(t, s.Effect(ctx))
	must(t, tx.Rollback(t.Context()))
	must(t, tx.Rollback(t.Context()))
	wantEffects(t, s, 0)
	mustReserve(t, s.Store, reserve(hold("k", "b"), Start), receiver.InProgress)
	must(t, s.Store.Release(t.Context(), h))
	mustReserve(t, s.Store, reserve(hold("k", "b"), Start), receiver.Reserved)
}

// testLostInTx: the holder is so slow that another caller takes its key while its transaction runs. With one writer at a time
// this cannot happen.
func testLostInTx(t *testing.T, s TxStore) {
	if s.OneWriter {
		return
	}
	h, late := hold("k", "a"), Start.Add(lease)
	mustReserve(t, s.Store, reserve(h, Start), receiver.Reserved)
	tx, ctx := begin(t, s, h)
	must(t, s.Effect(ctx))
	mustReserve(t, s.Store, reserve(hold("k", "b"), late), receiver.Reserved)
	if ok, err := tx.Complete(t.Context(), completion(late)); ok || err != nil {
		t.Fatalf("completed %t, %v, although taken over", ok, err)
	}
	wantEffects(t, s, 0)
	mustComplete(t, s.Store, hold("k", "b"), completion(late), true)
}

func testLostBeforeTx(t *testing.T, s TxStore) {
	h := hold("k", "a")
	mustReserve(t, s.Store, reserve(h, Start), receiver.Reserved)
	mustReserve(t, s.Store, reserve(hold("k", "b"), Start.Add(lease)), receiver.Reserved)
	tx, err := s.Store.Begin(t.Context(), h)
	if err != nil {
		if !errors.Is(err, receiver.ErrLeaseLost) {
			t.Fatalf("begin: %v", err)
		}
		wantEffects(t, s, 0)
		return
	}
	must(t, s.Effect(tx.Context(t.Context()))) // detected at the end
	if ok, err := tx.Complete(t.Context(), completion(Start)); ok || err != nil {
		t.Fatalf("completed %t, %v", ok, err)
	}
	wantEffects(t, s, 0)
}

func testRepeatDuringTx(t *testing.T, s TxStore) {
	h := hold("k", "a")
	mustReserve(t, s.Store, reserve(h, Start), receiver.Reserved)
	tx, ctx := begin(t, s, h)
	must(t, s.Effect(ctx))
	mustReserve(t, s.Store, reserve(hold("k", "b"), Start), receiver.InProgress)
	ok, err := tx.Complete(t.Context(), completion(Start))
	if err != nil || !ok {
		t.Fatalf("complete: %t, %v", ok, err)
	}
}

func testOneEffect(t *testing.T, s TxStore) {
	var completed atomic.Int32
	atOnce(func(i int) {
		h := hold("k", fmt.Sprint("token", i))
		found, err := s.Store.Reserve(t.Context(), reserve(h, Start))
		if err != nil || found.State != receiver.Reserved {
			if err != nil {
				t.Errorf("reserve: %v", err)
			}
			return
		}
		tx, err := s.Store.Begin(t.Context(), h)
		if err != nil {
			t.Errorf("begin: %v", err)
			return
		}
		if err := s.Effect(tx.Context(t.Context())); err != nil {
			t.Errorf("effect: %v", err)
		}
		if ok, err := tx.Complete(t.Context(), completion(Start)); err != nil || !ok {
			t.Errorf("complete: %t, %v", ok, err)
			return
		}
		completed.Add(1)
	})
	if completed.Load() != 1 {
		t.Fatalf("%d completed", completed.Load())
	}
	wantEffects(t, s, 1)
}
