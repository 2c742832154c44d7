package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/godwit-hq/godwit/internal/store"
)

var keyCheckCases = []testCase{
	{"is written once", keyCheckOnce},
	{"is replaced by a caller that knows it", keyCheckReplace},
}

func keyCheckIs(f *fixture, name, want string) {
	f.t.Helper()
	same(f.t, "check "+name, string(got(f.s.KeyCheck(f.ctx, name))(f.t)), want)
}

func keyCheckOnce(t *testing.T, f *fixture) {
	_, err := f.s.KeyCheck(f.ctx, "ring")
	f.is(err, store.ErrNotFound)
	f.must(f.s.SetKeyCheck(f.ctx, "ring", nil, []byte("first \x00\xff")))
	f.is(f.s.SetKeyCheck(f.ctx, "ring", nil, []byte("second")), store.ErrConflict)
	f.is(f.s.SetKeyCheck(f.ctx, "ring", nil, []byte("first \x00\xff")), store.ErrConflict)
	keyCheckIs(f, "ring", "first \x00\xff")

	_, err = f.s.KeyCheck(f.ctx, "evidence")
	f.is(err, store.ErrNotFound)
	f.must(f.s.SetKeyCheck(f.ctx, "evidence", nil, []byte("third")))
	keyCheckIs(f, "evidence", "third")
	keyCheckIs(f, "ring", "first \x00\xff")
}

func keyCheckReplace(t *testing.T, f *fixture) {
	f.is(f.s.SetKeyCheck(f.ctx, "ring", []byte("first"), []byte("second")), store.ErrConflict)
	_, err := f.s.KeyCheck(f.ctx, "ring")
	f.is(err, store.ErrNotFound)

	f.must(f.s.SetKeyCheck(f.ctx, "ring", nil, []byte("first")))
	f.must(f.s.SetKeyCheck(f.ctx, "evidence", nil, []byte("first")))
	f.must(f.s.SetKeyCheck(f.ctx, "ring", []byte("first"), []byte("second")))
	f.is(f.s.SetKeyCheck(f.ctx, "ring", []byte("first"), []byte("third")), store.ErrConflict)
	keyCheckIs(f, "ring", "second")
	keyCheckIs(f, "evidence", "first")
}

// Nodes that start for the first time at the same moment agree on one value.
func concurrentKeyCheck(t *testing.T, f *fixture) {
	var won atomic.Int32
	together(t, 20, func(i int) error {
		err := f.s.SetKeyCheck(f.ctx, "ring", nil, fmt.Append(nil, i))
		switch {
		case err == nil:
			won.Add(1)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
		return nil
	})
	if n := won.Load(); n != 1 {
		t.Errorf("the check was written %d times", n)
	}
}
