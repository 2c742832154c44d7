package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
)

// Records configures the suite of command.Store for a backend. Every shipped backend passes it, Godwit's own and those for
// applications (IDS-DLV-7).
type Records struct {
	Open func(t testing.TB) command.Store
	// Reopen closes a store made by Open and opens its data again, as a restarted process would. Nil: the data does not
	// outlive the process.
	Reopen func(t testing.TB, s command.Store) command.Store
	// Exec runs a statement directly on the store's database, to tamper with it. It returns the database's error. Nil: there
	// is no database.
	Exec func(t testing.TB, s command.Store, statement string) error
	// Kinds are effects that the store knows.
	Kinds []Kind
	// Fails makes an effect that the store refuses, and returns the expected error.
	Fails func(t testing.TB, s command.Store) (command.Effect, error)
}

// A Kind makes an effect that must succeed, and reads the state that it changes.
type Kind struct {
	Name string
	Make func(t testing.TB, s command.Store) (effect command.Effect, state func() any)
}

type recordCase struct {
	name   string
	test   func(t *testing.T, f *records)
	alone  bool // it needs a store without rows of other cases, or reopens it
	reopen bool // it needs Reopen
	exec   bool // it needs Exec
}

// RunRecords tests the guarantees of command.Store. Most cases share a store, each with its own tenant.
func RunRecords(t *testing.T, b Records) {
	shared := b.Open(t)
	for _, group := range []struct {
		name  string
		cases []recordCase
	}{
		{"record", recordCases},
		{"upkeep of records", recordUpkeepCases},
		{"effect", effectCases},
		{"evidence", evidenceCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				if c.reopen && b.Reopen == nil || c.exec && b.Exec == nil {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					s := shared
					if c.alone {
						s = b.Open(t)
					}
					c.test(t, newRecords(t, b, s))
				})
			}
		})
	}
}

// records is a store of commands with a tenant. Its fixture has a clock and no store.
type records struct {
	*fixture
	cs   command.Store
	b    Records
	name string // the tenant's
	ids  int
}

func newRecords(t testing.TB, b Records, s command.Store) *records {
	f := &records{fixture: &fixture{t: t, ctx: t.Context(), now: base}, cs: s, b: b}
	f.name = f.anotherTenant()
	return f
}

// in returns the fixture for a subtest.
func (f *records) in(t testing.TB) *records {
	sub := *f
	sub.fixture = f.fixture.in(t)
	return &sub
}

// anotherTenant returns the name of a new tenant. Records need only the name.
func (f *records) anotherTenant() string { return mint[godwit.TenantID](f.now).String() }

// key makes a key of the usual length.
func key(n int) string { return fmt.Sprintf("%064x", n) }

// newRecord returns the record of a command that was just reserved.
func (f *records) newRecord(key string) command.Record {
	f.ids++
	return command.Record{
		Tenant: f.name, Key: key, KeyVersion: 1, CommandID: fmt.Sprintf("cmd_%d", f.ids),
		Intent: command.Intent{Entity: "invoice", Action: "refund", Target: "inv_1"}, Class: command.I1,
		Actor: "key_1", Principal: "key_1", Fingerprint: "sha256:abc", Status: command.InProgress,
		CreatedAt: f.now, UpdatedAt: f.now, ExpiresAt: f.now.Add(24 * time.Hour),
		Owner: "node-a", LeaseUntil: f.now.Add(time.Minute), Try: 1, Envelope: []byte("sealed \x00\xff"),
		Version: 1, MAC: []byte{1, 0, 255},
	}
}

// ended returns the next version of a record, in its final state.
func (f *records) ended(r command.Record, status command.Status) command.Record {
	r.Status, r.UpdatedAt, r.Version = status, f.now, r.Version+1
	r.OutcomeRef, r.Outcome, r.Envelope = "outcome:"+r.CommandID, []byte{0, 1, 254}, nil
	r.Owner, r.LeaseUntil = "", time.Time{}
	return r
}

// put returns a step that stores a record with evidence.
func put(expect int64, r command.Record, entries ...evidence.Entry) *command.Step {
	return &command.Step{Tenant: r.Tenant, Key: r.Key, Expect: expect, Settle: func(command.Applied) (command.Change, error) {
		stored := r
		return command.Change{Record: &stored, Evidence: entries}, nil
	}}
}

// observe returns a step that only appends evidence.
func observe(tenant string, entries ...evidence.Entry) *command.Step {
	return &command.Step{Tenant: tenant, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Evidence: entries}, nil
	}}
}

func (f *records) advance(steps ...*command.Step) []command.Result {
	f.t.Helper()
	results := got(f.cs.Advance(f.ctx, f.now, steps))(f.t)
	if len(results) != len(steps) {
		f.t.Fatalf("%d results for %d steps", len(results), len(steps))
	}
	return results
}

// apply applies steps that must all succeed.
func (f *records) apply(steps ...*command.Step) []command.Result {
	f.t.Helper()
	results := f.advance(steps...)
	for i, r := range results {
		if r.Refused || r.Err != nil {
			f.t.Fatalf("step %d: refused %v by %+v, error %v", i, r.Refused, r.Stored, r.Err)
		}
	}
	return results
}

// holds checks the record stored under a key; nil means none.
func (f *records) holds(key string, want *command.Record) {
	f.t.Helper()
	same(f.t, "record under "+key, got(f.cs.Find(f.ctx, f.name, key))(f.t), want)
}
