package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/trace"
)

// takes returns a step that makes the record the owner's, if it still has the version.
func takes(r command.Record, owner string, version int64) *command.Step {
	r.Owner, r.Version, r.MAC = owner, version+1, []byte(owner)
	return &command.Step{Tenant: r.Tenant, Key: r.Key, Expect: version, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Record: &r, Evidence: []evidence.Entry{told(evidence.Observation, r.CommandID)}}, nil
	}}
}

// renews returns a step like takes, without evidence.
func renews(r command.Record, owner string, version int64) *command.Step {
	step := takes(r, owner, version)
	settle := step.Settle
	step.Settle = func(a command.Applied) (command.Change, error) {
		c, err := settle(a)
		c.Evidence = nil
		return c, err
	}
	return step
}

// A node that stored a tenant's head and record itself continues without reading them.
func TestAdvanceContinuesWithoutReading(t *testing.T) {
	s := twoNodes(t)[0]
	r := reserved("t1", "key", "cmd_1")
	applied(t, s, reserve(r))
	steps := []*command.Step{takes(*r, "a", 1), reserve(reserved("t1", "other", "cmd_2")), observe("t1", "cmd_3")}
	known := s.recent.assume(suiteTime, steps)
	if known == nil || known.Heads["t1"].Seq != 1 || known.Records[command.RecordID{Tenant: "t1", Key: "key"}] == nil {
		t.Fatalf("the node assumes %+v", known)
	}
	applied(t, s, steps...)
	chained(t, s, "t1", "cmd_1", "cmd_1", "cmd_2", "cmd_3")
}

// A node's assumptions are wrong in each way in which another node can make them so. The steps get the results that they
// would have got from a node that remembers nothing, and the chain of evidence has no fork.
func TestWrongAssumptionsChangeNothing(t *testing.T) {
	trace.Covers(t, "IDS-STO-1")
	for name, c := range map[string]struct {
		other func(r *command.Record) *command.Step // what the other node does meanwhile
		step  func(r *command.Record) *command.Step
		want  string // owner of the record afterwards
		ok    bool
	}{
		"the chain has grown": {func(*command.Record) *command.Step { return observe("t1", "cmd_9") },
			func(r *command.Record) *command.Step { return takes(*r, "a", 1) }, "a", true},
		"the record was taken over": {func(r *command.Record) *command.Step { return takes(*r, "b", 1) },
			func(r *command.Record) *command.Step { return takes(*r, "a", 1) }, "b", false},
		"the record was taken over, the chain has not grown": {func(r *command.Record) *command.Step { return renews(*r, "b", 1) },
			func(r *command.Record) *command.Step { return renews(*r, "a", 1) }, "b", false},
		"the key was reserved": {func(*command.Record) *command.Step { return reserve(owned("free", "cmd_9", "b")) },
			func(*command.Record) *command.Step { return reserve(owned("free", "cmd_2", "a")) }, "b", false},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := twoNodes(t)
			r := reserved("t1", "key", "cmd_1")
			applied(t, nodes[0], reserve(r))
			applied(t, nodes[1], c.other(r))
			step := c.step(r)
			if nodes[0].recent.assume(suiteTime, []*command.Step{step}) == nil {
				t.Fatal("the node assumes nothing")
			}
			results, err := nodes[0].Advance(t.Context(), suiteTime, []*command.Step{step})
			if err != nil {
				t.Fatal(err)
			}
			if results[0].Refused == c.ok || results[0].Err != nil || results[0].Stored.Owner != c.want {
				t.Errorf("the result is %+v with %+v", results[0], results[0].Stored)
			}
			stored, err := nodes[1].Find(t.Context(), "t1", step.Key)
			if err != nil || stored.Owner != c.want {
				t.Errorf("the stored record is %+v, %v", stored, err)
			}
			items, err := nodes[1].Evidence(t.Context(), command.EvidenceQuery{Tenant: "t1"})
			if err != nil {
				t.Fatal(err)
			}
			var head evidence.Head
			for _, item := range items {
				if linked, err := evidence.Link(head, "t1", item.Entry); err != nil || linked != item {
					t.Fatalf("item %d does not follow the one before: %v", item.Seq, err)
				}
				head = item.Head()
			}
		})
	}
}

func owned(key, id, owner string) *command.Record {
	r := reserved("t1", key, id)
	r.Owner = owner
	return r
}

// A record whose window is over is replaced, although the node assumed that the key had none.
func TestAssumedFreeKeyHoldsAnExpiredRecord(t *testing.T) {
	nodes := twoNodes(t)
	old := reserved("t1", "key", "cmd_1")
	old.Status, old.LeaseUntil = command.Executed, time.Time{}
	applied(t, nodes[1], reserve(old))
	applied(t, nodes[0], observe("t1", "cmd_2"))
	next := reserved("t1", "key", "cmd_3")
	var previous *command.Record
	step := reserve(next)
	step.Settle = func(a command.Applied) (command.Change, error) {
		previous = a.Previous
		return command.Change{Record: next}, nil
	}
	results, err := nodes[0].Advance(t.Context(), old.ExpiresAt, []*command.Step{step})
	if err != nil || results[0].Refused || results[0].Stored.CommandID != "cmd_3" {
		t.Fatalf("%+v, %v", results, err)
	}
	if previous == nil || previous.CommandID != "cmd_1" {
		t.Errorf("the step was told of %+v", previous)
	}
}

// A step that stores nothing under its key learns what is really there, since nothing else would check the assumption.
func TestStepThatStoresNothingSeesTheRecord(t *testing.T) {
	nodes := twoNodes(t)
	old := reserved("t1", "key", "cmd_1")
	old.Status, old.LeaseUntil = command.Executed, time.Time{}
	applied(t, nodes[1], reserve(old))
	applied(t, nodes[0], observe("t1", "cmd_2"))
	step := reserve(reserved("t1", "key", "cmd_3"))
	step.Settle = func(a command.Applied) (command.Change, error) {
		return command.Change{}, fmt.Errorf("it replaces %+v", a.Previous)
	}
	results, err := nodes[0].Advance(t.Context(), suiteTime, []*command.Step{step})
	if err != nil || !results[0].Refused || results[0].Stored.CommandID != "cmd_1" {
		t.Errorf("%+v, %v", results, err)
	}
}

// A head that was tampered with takes no evidence. Once it is mended it does again, without a restart.
func TestMendedHeadTakesEvidenceAgain(t *testing.T) {
	s := twoNodes(t)[0]
	applied(t, s, observe("t1", "cmd_1"))
	set := func(hash string) (was string) {
		t.Helper()
		err := s.pool.QueryRow(t.Context(), `UPDATE evidence_heads AS h SET hash = $1 FROM evidence_heads AS o
			WHERE h.tenant = 't1' AND o.tenant = 't1' RETURNING o.hash`, hash).Scan(&was)
		if err != nil {
			t.Fatal(err)
		}
		return was
	}
	right := set("nonsense")
	for range 3 {
		results, err := s.Advance(t.Context(), suiteTime, []*command.Step{observe("t1", "cmd_2")})
		if err != nil || results[0].Err == nil {
			t.Fatalf("a head that was tampered with took evidence: %+v, %v", results, err)
		}
	}
	set(right)
	applied(t, s, observe("t1", "cmd_3"))
	chained(t, s, "t1", "cmd_1", "cmd_3")
}

// Wrong assumptions become rarer: after each, more transactions read first. A right one ends that.
func TestWrongAssumptionsBecomeRare(t *testing.T) {
	var m recent
	head := evidence.Head{Tenant: "t1", Seq: 1}
	m.grown([]evidence.Head{head})
	steps := []*command.Step{observe("t1", "cmd")}
	reads := func() (n int) {
		for ; m.assume(suiteTime, steps) == nil; n++ {
			if n > 2*maxPenalty {
				t.Fatal("the node assumes nothing any more")
			}
		}
		return n
	}
	for _, want := range []int{1, 3, 7, 15, 31, 63, 63} {
		m.wrong(nil)
		if got := reads(); got != want {
			t.Errorf("%d transactions read first, want %d", got, want)
		}
	}
	m.stored(&transaction{known: &command.Snapshot{}, wrote: &command.Writes{}})
	m.wrong(nil)
	if got := reads(); got != 1 {
		t.Errorf("%d transactions read first after a right assumption, want 1", got)
	}
}

// The memory is bounded, and holds only records that further steps are likely to change.
func TestRecentIsBounded(t *testing.T) {
	var m recent
	for i := range 3 * maxRecent {
		m.grown([]evidence.Head{{Tenant: fmt.Sprint(i)}})
		r := reserved("t1", fmt.Sprint(i), "cmd")
		m.stored(&transaction{wrote: &command.Writes{Records: []command.RecordWrite{{Record: r}}}})
	}
	if len(m.heads) > maxRecent || len(m.records) > maxRecent || len(m.records) == 0 {
		t.Errorf("%d heads and %d records", len(m.heads), len(m.records))
	}
	ended := reserved("t1", fmt.Sprint(3*maxRecent-1), "cmd")
	ended.Status = command.Executed
	before := len(m.records)
	m.stored(&transaction{wrote: &command.Writes{Records: []command.RecordWrite{{Record: ended}}}})
	if len(m.records) != before-1 {
		t.Errorf("%d records after one has ended, %d before", len(m.records), before)
	}
}
