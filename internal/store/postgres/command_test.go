package postgres

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/storetest"
)

func TestCommands(t *testing.T) {
	storetest.RunCommands(t, storetest.Commands{
		Open: open, Reopen: reopen,
		Exec: func(t testing.TB, s store.Store, statement string) error {
			_, err := s.(*Store).pool.Exec(t.Context(), statement)
			return err
		},
	})
}

// reserved makes the record of a command that was just reserved.
func reserved(tenant, key, id string) *command.Record {
	return &command.Record{
		Tenant: tenant, Key: key, CommandID: id, Status: command.InProgress, CreatedAt: suiteTime, UpdatedAt: suiteTime,
		ExpiresAt: suiteTime.Add(time.Hour), LeaseUntil: suiteTime.Add(time.Minute), Version: 1,
	}
}

// reserve makes the step that stores the record, with evidence.
func reserve(r *command.Record) *command.Step {
	return &command.Step{Tenant: r.Tenant, Key: r.Key, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Record: r, Evidence: []evidence.Entry{told(evidence.Reserved, r.CommandID)}}, nil
	}}
}

// observe makes a step that only appends evidence.
func observe(tenant, id string) *command.Step {
	return &command.Step{Tenant: tenant, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Evidence: []evidence.Entry{told(evidence.Observation, id)}}, nil
	}}
}

func told(kind, id string) evidence.Entry {
	return evidence.Entry{Type: kind, At: suiteTime, CommandID: id, SubmittedID: id}
}

// applied applies steps that must all succeed.
func applied(t testing.TB, s *Store, steps ...*command.Step) {
	t.Helper()
	results, err := s.Advance(t.Context(), suiteTime, steps)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Refused || r.Err != nil {
			t.Fatalf("step %d: refused %v by %+v, error %v", i, r.Refused, r.Stored, r.Err)
		}
	}
}

// chained checks that a tenant's chain is complete, ends at its head and has these commands, in any order.
func chained(t testing.TB, s *Store, tenant string, want ...string) {
	t.Helper()
	items, err := s.Evidence(t.Context(), command.EvidenceQuery{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	var head evidence.Head
	ids := make([]string, len(items))
	for i, item := range items {
		linked, err := evidence.Link(head, tenant, item.Entry)
		if err != nil || linked != item {
			t.Fatalf("item %d of %s is %+v, want %+v, %v", i, tenant, item, linked, err)
		}
		head, ids[i] = item.Head(), item.CommandID
	}
	if got, err := s.EvidenceHead(t.Context(), tenant); err != nil || got != head {
		t.Errorf("head of %s is %+v, %v; its last item is %+v", tenant, got, err, head)
	}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		t.Errorf("evidence of %s is of %v, want %v", tenant, ids, want)
	}
}

// A transaction whose answer is lost fails with ErrUnavailable, and may be repeated whether it took effect or not.
func TestAdvanceWithUnknownOutcomeCanBeRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		cut    func(*way) *atomic.Bool
		stored bool
	}{
		"answer lost":  {func(w *way) *atomic.Bool { return &w.swallow }, true},
		"request lost": {func(w *way) *atomic.Bool { return &w.lose }, false},
	} {
		t.Run(name, func(t *testing.T) {
			direct := postgrestest.URL(t)
			w, through := newWay(t, direct)
			s, err := Open(t.Context(), through, Options{HotConnections: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			cut := c.cut(w)
			r := reserved("t1", "key", "cmd_1")
			step, whole := reserve(r), reserve(r)
			step.Settle = func(a command.Applied) (command.Change, error) {
				cut.Store(true) // everything has been read, nothing written
				return whole.Settle(a)
			}
			if _, err := s.Advance(t.Context(), suiteTime, []*command.Step{step}); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("advance on a broken way gave %v", err)
			}
			cut.Store(false)
			observer := openURL(t, direct)
			if found, err := observer.Find(t.Context(), "t1", "key"); err != nil || (found != nil) != c.stored {
				t.Fatalf("after the first try there is %+v, %v", found, err)
			}
			for range 2 {
				results, err := observer.Advance(t.Context(), suiteTime, []*command.Step{whole})
				if err != nil || results[0].Refused != c.stored || results[0].Stored.CommandID != r.CommandID {
					t.Fatalf("repeated: %+v, %v", results, err)
				}
				c.stored = true
			}
			chained(t, observer, "t1", "cmd_1")
		})
	}
}

// A transaction that has read a record to replace it has locked it: a sweep skips the record and does not wait. The node that
// replaces it remembers nothing of the tenant, so it reads.
func TestSweepLeavesWhatIsBeingReplaced(t *testing.T) {
	nodes := twoNodes(t)
	s := nodes[0]
	old, other := reserved("t1", "key", "cmd_1"), reserved("t1", "other", "cmd_2")
	for _, r := range []*command.Record{old, other} {
		r.Status, r.ExpiresAt = command.Executed, suiteTime
	}
	applied(t, s, reserve(old), reserve(other))
	swept := -1
	next := reserved("t1", "key", "cmd_3")
	step := &command.Step{Tenant: "t1", Key: "key", Settle: func(a command.Applied) (command.Change, error) {
		var err error
		if swept, err = s.SweepRecords(t.Context(), suiteTime, 10); err != nil || a.Previous == nil || a.Previous.CommandID != "cmd_1" {
			return command.Change{}, fmt.Errorf("beside %+v: %v", a.Previous, err)
		}
		return command.Change{Record: next}, nil
	}}
	applied(t, nodes[1], step)
	if found, err := s.Find(t.Context(), "t1", "key"); swept != 1 || err != nil || found == nil || found.CommandID != "cmd_3" {
		t.Errorf("swept %d, left %+v, %v", swept, found, err)
	}
}

// TRUNCATE of evidence and chain heads is refused.
func TestEvidenceIsNotTruncated(t *testing.T) {
	s := openAt(t, Options{})
	applied(t, s, observe("t1", "cmd_1"))
	for _, sql := range []string{`TRUNCATE evidence_items`, `TRUNCATE evidence_heads`, `DELETE FROM evidence_heads`, `TRUNCATE evidence_heads, evidence_items CASCADE`} {
		if _, err := s.pool.Exec(t.Context(), sql); sqlState(err) != "23000" {
			t.Errorf("%s gave %v", sql, err)
		}
	}
	chained(t, s, "t1", "cmd_1")
}

// A chain whose head was tampered with accepts no more evidence; other chains are not affected.
func TestTamperedHeadTakesNoEvidence(t *testing.T) {
	s := openAt(t, Options{})
	tenant := mintTenant(suiteTime)
	applied(t, s, observe(tenant.String(), "cmd_1"), observe("t2", "cmd_1"))
	if _, err := s.pool.Exec(t.Context(), `UPDATE evidence_heads SET hash = 'none' WHERE tenant = $1`, tenant.String()); err != nil {
		t.Fatal(err)
	}
	results, err := s.Advance(t.Context(), suiteTime, []*command.Step{observe(tenant.String(), "cmd_2"), observe("t2", "cmd_2")})
	if err != nil || results[0].Err == nil || results[1].Err != nil {
		t.Errorf("results %+v, %v", results, err)
	}
	b := &store.Batch{Now: suiteTime, Evidence: []store.NewEvidence{{TenantID: tenant, Entry: told(evidence.Delivered, "cmd_2")}}}
	if _, err := s.Commit(t.Context(), b); err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("commit gave %v: it would be repeated for ever", err)
	}
	chained(t, s, "t2", "cmd_1", "cmd_2")
	if n := count(t, s, `SELECT count(*) FROM evidence_items WHERE tenant = $1`, tenant.String()); n != 1 {
		t.Errorf("the chain has %d items", n)
	}
}

// A record that was tampered with can still be found and affects no other record: the executor that reads it rejects its MAC.
func TestTamperedRecordHidesNoOther(t *testing.T) {
	s := openAt(t, Options{})
	r := reserved("t1", "key", "cmd_1")
	r.Actor, r.MAC = "key_1", []byte{1}
	applied(t, s, reserve(r), reserve(reserved("t1", "other", "cmd_2")))
	if _, err := s.pool.Exec(t.Context(), `UPDATE command_records SET document = '{"actor":7}' WHERE command_id = 'cmd_1'`); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Find(t.Context(), "t1", "key"); err != nil || found.CommandID != "cmd_1" || found.Actor != "" || len(found.MAC) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
	if lost, err := s.Lost(t.Context(), suiteTime.Add(time.Hour), 9); err != nil || len(lost) != 2 {
		t.Errorf("lost are %+v, %v", lost, err)
	}
	results, err := s.Advance(t.Context(), suiteTime, []*command.Step{reserve(r), reserve(reserved("t1", "third", "cmd_3"))})
	if err != nil || !results[0].Refused || results[1].Refused {
		t.Errorf("results %+v, %v", results, err)
	}
}

// Text that the database cannot store fails only its own step, and is never taken for another key.
func TestAdvanceRefusesWhatIsNotText(t *testing.T) {
	s := openAt(t, Options{})
	results, err := s.Advance(t.Context(), suiteTime, []*command.Step{
		reserve(reserved("t1", "a\x00", "cmd_1")), reserve(reserved("t\xff", "a", "cmd_2")), reserve(reserved("t1", "a\ufffd", "cmd_3")),
	})
	if err != nil || results[0].Err == nil || results[1].Err == nil || results[2].Err != nil {
		t.Errorf("results %+v, %v", results, err)
	}
	chained(t, s, "t1", "cmd_3")
}

// Commands work in a database that an earlier release created.
func TestUpgradeTakesCommands(t *testing.T) {
	s := openUpgraded(t, "")
	tenant := old[godwit.TenantID](1).String()
	applied(t, s, reserve(reserved(tenant, "key", "cmd_1")), observe(tenant, "cmd_2"))
	chained(t, s, tenant, "cmd_1", "cmd_2")
	all, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Describe(t.Context()); err != nil || d.SchemaVersion != len(all) {
		t.Errorf("it describes itself as %+v, %v", d, err)
	}
}
