package command_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/store/storetest"
	"github.com/godwit-hq/godwit/internal/trace"
)

// TestMemoryStore runs the suite of all stores. A store in memory does not promise that its content survives the process,
// or that a database refuses tampering.
func TestMemoryStore(t *testing.T) {
	trace.Covers(t, "IDS-DLV-7")
	soldOut := errors.New("sold out")
	storetest.RunRecords(t, storetest.Records{
		Open: func(testing.TB) command.Store { return command.NewMemoryStore() },
		Kinds: []storetest.Kind{{Name: "memory", Make: func(testing.TB, command.Store) (command.Effect, func() any) {
			var (
				mu sync.Mutex
				n  int
			)
			add := func(d int) { mu.Lock(); defer mu.Unlock(); n += d }
			return command.MemoryEffect[command.Nothing]{Do: func() (command.Nothing, error) { add(1); return command.Nothing{}, nil }, Undo: func() { add(-1) }},
				func() any { mu.Lock(); defer mu.Unlock(); return n }
		}}},
		Fails: func(testing.TB, command.Store) (command.Effect, error) {
			return command.InMemory(func() (command.Nothing, error) { return command.Nothing{}, soldOut }), soldOut
		},
	})
}
