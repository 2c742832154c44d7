package storetest

import (
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/store"
)

// Commands configures the suite of commands for one of Godwit's own backends.
type Commands struct {
	Open Open
	// Reopen and Exec have the meaning of those of Records.
	Reopen func(t testing.TB, s store.Store) store.Store
	Exec   func(t testing.TB, s store.Store, statement string) error
}

type commandCase struct {
	name  string
	test  func(t *testing.T, f *commands)
	alone bool // it needs a store without rows of other cases
}

// RunCommands tests the guarantees of store.Commands: those that RunRecords tests, with Godwit's own effects, and the result
// of each effect.
func RunCommands(t *testing.T, b Commands) {
	records := b.records()
	RunRecords(t, records)
	shared := b.Open(t)
	for _, group := range []struct {
		name  string
		cases []commandCase
	}{
		{"Godwit's effect", ownEffectCases},
		{"evidence of deliveries", deliveryEvidenceCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					s := shared
					if c.alone {
						s = b.Open(t)
					}
					c.test(t, newCommands(t, records, s))
				})
			}
		})
	}
}

func (b Commands) records() Records {
	return Records{
		Open:   func(t testing.TB) command.Store { return b.Open(t) },
		Reopen: func(t testing.TB, s command.Store) command.Store { return b.Reopen(t, s.(store.Store)) },
		Exec: func(t testing.TB, s command.Store, statement string) error {
			return b.Exec(t, s.(store.Store), statement)
		},
		Kinds: ownKinds(),
		Fails: ownFailure,
	}
}

// commands is records in one of Godwit's stores, with a tenant and an endpoint.
type commands struct{ *records }

func newCommands(t testing.TB, b Records, s store.Store) *commands {
	t.Helper()
	f := &commands{&records{fixture: newFixture(t, func(testing.TB) store.Store { return s }), cs: s, b: b}}
	f.name = f.tenant.String()
	return f
}

// in returns the fixture for a subtest.
func (f *commands) in(t testing.TB) *commands { return &commands{f.records.in(t)} }
