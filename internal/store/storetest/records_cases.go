package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/trace"
)

var recordCases = []recordCase{
	{name: "keeps every member", test: recordMembers},
	{name: "a key is given once", test: recordReserve},
	{name: "fifty want one key", test: recordRace},
	{name: "changes by compare and set", test: recordCompare},
	{name: "steps of a batch hold each by itself", test: recordBatch},
	{name: "steps on one key see each other", test: recordSteps},
	{name: "a refusal by settle stores nothing", test: recordSettle},
	{name: "a change without a record leaves it", test: recordLeft},
	{name: "only five statuses", test: recordStatus, alone: true, exec: true},
	{name: "belongs to its tenant", test: recordTenant},
	{name: "an id is the first one's", test: recordFirstID},
	{name: "is there after a restart", test: recordReopen, alone: true, reopen: true},
}

func recordMembers(t *testing.T, f *records) {
	full := f.newRecord(key(1))
	full.KeyVersion, full.Try, full.Class = 3, 7, command.I3
	full.Substatus, full.Previous = command.NeedsReconciliation, "cmd_earlier"
	full.Actor, full.Principal, full.OutcomeRef, full.Outcome = "key_ä", "user_\"1\"", "outcome:x", []byte{0, 255, 10}
	full.CreatedAt, full.UpdatedAt = f.now.Add(time.Microsecond), f.now.Add(2*time.Microsecond)
	full.ExpiresAt, full.LeaseUntil = f.now.Add(3*time.Microsecond), f.now.Add(4*time.Microsecond)
	full.Confirmation = &command.Confirmation{
		TokenHash: []byte{9, 0, 255}, ExpiresAt: f.now.Add(5 * time.Microsecond), ConfirmedAt: f.now.Add(6 * time.Microsecond),
		StepUpHash: []byte{8}, StepUpBy: "key_2", StepUpTill: f.now.Add(7 * time.Microsecond),
	}
	full.Ledger = []command.LedgerEntry{
		// A provider's answer keeps its exact bytes: a record's MAC may cover it.
		{Name: "charge", State: command.CallDone, StartedAt: f.now, EndedAt: f.now.Add(time.Microsecond), Result: json.RawMessage("{ \"z\": 1.0,\n \"a\": \"<é>\" }")},
		{Name: "mail", State: command.CallStarted, StartedAt: f.now.Add(time.Microsecond)},
	}
	full.Version, full.MAC = 1<<40, []byte{0, 1, 2, 255}
	least := command.Record{Tenant: f.name, Key: key(2), CommandID: "cmd_least", Status: command.Executed, CreatedAt: f.now, UpdatedAt: f.now, Version: 1}
	for _, r := range []command.Record{full, least, f.newRecord(key(3))} {
		same(t, "what the step tells", f.apply(put(0, r))[0].Stored, &r)
		f.holds(r.Key, &r)
		same(t, "record by its command", got(f.cs.FindCommand(f.ctx, f.name, r.CommandID))(t), &r)
	}
	f.holds(key(4), nil)
	if r := got(f.cs.FindCommand(f.ctx, f.name, "cmd_earlier"))(t); r != nil {
		t.Errorf("found %+v by the command before it", r)
	}
	if results := f.advance(); len(results) != 0 {
		t.Errorf("no steps have results %v", results)
	}
}

func recordReserve(t *testing.T, f *records) {
	first := f.newRecord(key(1))
	f.apply(put(0, first, f.entry(evidence.Reserved, first)))
	second := f.newRecord(key(1))
	r := f.advance(put(0, second, f.entry(evidence.Reserved, second)))[0]
	same(t, "result", r, command.Result{Refused: true, Stored: &first})
	f.holds(key(1), &first)
	f.chain(f.name, 1)
	if r := got(f.cs.FindCommand(f.ctx, f.name, second.CommandID))(t); r != nil {
		t.Errorf("the second command has a record: %+v", r)
	}
}

func recordRace(t *testing.T, f *records) {
	const many = 50
	records := make([]command.Record, many)
	for i := range records {
		records[i] = f.newRecord(key(1))
	}
	var mu sync.Mutex
	var won []string
	seen := map[string]int{}
	together(t, many, func(i int) error {
		results, err := f.cs.Advance(f.ctx, f.now, []*command.Step{put(0, records[i], f.entry(evidence.Reserved, records[i]))})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if !results[0].Refused {
			won = append(won, records[i].CommandID)
		}
		seen[results[0].Stored.CommandID]++
		return nil
	})
	if len(won) != 1 || seen[won[0]] != many {
		t.Fatalf("won by %v, who was seen: %v", won, seen)
	}
	if items := f.chain(f.name, 1); items[0].CommandID != won[0] {
		t.Errorf("evidence is of %s, the key of %s", items[0].CommandID, won[0])
	}
}

func recordCompare(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	same(t, "a record that is not there", f.advance(put(1, r))[0], command.Result{Refused: true})
	f.holds(key(1), nil)
	f.apply(put(0, r))
	f.tick(time.Second)
	next := r
	next.LeaseUntil, next.Version = f.now.Add(time.Minute), 2
	f.apply(put(1, next))
	for _, expect := range []int64{0, 1, 3, -1} {
		late := f.ended(r, command.Failed)
		same(t, fmt.Sprintf("expected %d", expect), f.advance(put(expect, late))[0], command.Result{Refused: true, Stored: &next})
	}
	f.holds(key(1), &next)
	f.tick(time.Second)
	done := f.ended(next, command.Executed)
	f.apply(put(2, done))
	f.holds(key(1), &done)
	done.Status, done.Version = command.Compensated, 4
	f.apply(put(3, done))
	f.holds(key(1), &done)
}

func recordBatch(t *testing.T, f *records) {
	taken := f.newRecord(key(1))
	f.apply(put(0, taken))
	fresh, late, failing, last := f.newRecord(key(2)), f.newRecord(key(1)), f.newRecord(key(3)), f.newRecord(key(4))
	no := errors.New("no")
	refusing := put(0, failing)
	refusing.Settle = func(command.Applied) (command.Change, error) { return command.Change{Record: &failing}, no }
	results := f.advance(put(0, fresh), put(0, late), refusing, put(0, last), put(7, f.newRecord(key(5))))
	same(t, "results", results, []command.Result{
		{Stored: &fresh}, {Refused: true, Stored: &taken}, {Err: no}, {Stored: &last}, {Refused: true},
	})
	for k, want := range map[string]*command.Record{key(1): &taken, key(2): &fresh, key(3): nil, key(4): &last, key(5): nil} {
		f.holds(k, want)
	}
}

func recordSteps(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	done := f.ended(r, command.Executed)
	var previous *command.Record
	finish := put(1, done)
	finish.Settle = func(a command.Applied) (command.Change, error) {
		previous = a.Previous
		stored := done
		return command.Change{Record: &stored}, nil
	}
	twin := f.newRecord(key(1))
	results := f.advance(put(0, r), put(0, twin), finish, put(1, f.ended(r, command.Failed)))
	same(t, "results", results, []command.Result{
		{Stored: &r}, {Refused: true, Stored: &r}, {Stored: &done}, {Refused: true, Stored: &done},
	})
	same(t, "what was replaced", previous, &r)
	f.holds(key(1), &done)
}

func recordSettle(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	f.apply(put(0, r, f.entry(evidence.Reserved, r)))
	no := errors.New("no")
	step := &command.Step{Tenant: f.name, Key: key(1), Expect: 1, Settle: func(command.Applied) (command.Change, error) {
		done := f.ended(r, command.Executed)
		return command.Change{Record: &done, Evidence: []evidence.Entry{f.entry(evidence.ExecutedOK, r)}}, no
	}}
	bare := observe(f.name, f.entry(evidence.Observation, r))
	bare.Settle = func(command.Applied) (command.Change, error) {
		return command.Change{Evidence: []evidence.Entry{f.entry(evidence.Observation, r)}}, no
	}
	for i, result := range f.advance(step, bare) {
		if !errors.Is(result.Err, no) || result.Refused || result.Applied != nil {
			t.Errorf("step %d became %+v", i, result)
		}
	}
	f.holds(key(1), &r)
	f.chain(f.name, 1)
}

func recordLeft(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	f.apply(put(0, r))
	look := &command.Step{Tenant: f.name, Key: key(1), Expect: 1, Settle: func(a command.Applied) (command.Change, error) {
		if a.Previous == nil || a.Previous.CommandID != r.CommandID || a.Err != nil || len(a.Results) != 0 {
			return command.Change{}, fmt.Errorf("settle was told %+v", a)
		}
		return command.Change{Evidence: []evidence.Entry{f.entry(evidence.Observation, r)}}, nil
	}}
	same(t, "a step that leaves the record", f.apply(look)[0].Stored, &r)
	f.holds(key(1), &r)
	bare := observe(f.name, f.entry(evidence.Observation, r))
	if got := f.apply(bare)[0]; got.Stored != nil {
		t.Errorf("a step without a key has a record: %+v", got.Stored)
	}
	f.chain(f.name, 2)
}

func recordStatus(t *testing.T, f *records) {
	trace.Covers(t, "IDS-STO-3", "IDS-STO-4")
	for i, status := range []command.Status{command.InProgress, command.Executed, command.Failed, command.Rejected, command.Compensated} {
		r := f.newRecord(key(i))
		r.Status = status
		f.apply(put(0, r))
		f.holds(key(i), &r)
	}
	for _, status := range []command.Status{"", "done", "EXECUTED", "awaiting_confirmation"} {
		r := f.newRecord(key(9))
		r.Status = status
		if _, err := f.cs.Advance(f.ctx, f.now, []*command.Step{put(0, r)}); err == nil {
			t.Errorf("status %q was stored", status)
		}
		if err := f.b.Exec(t, f.cs, fmt.Sprintf("UPDATE command_records SET status = '%s'", status)); err == nil {
			t.Errorf("the database takes status %q", status)
		}
	}
	f.holds(key(9), nil)
	f.must(f.b.Exec(t, f.cs, "UPDATE command_records SET status = 'failed' WHERE status = 'executed'"))
	f.must(f.b.Exec(t, f.cs, "SELECT idempotency_key, command_id, status, outcome_ref, created_at, updated_at, ttl_expires_at FROM command_records"))
}

// A caller that reuses the id of another command does not replace it; otherwise a confirmation or resolution would apply to
// the wrong command.
func recordFirstID(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	f.apply(put(0, r))
	f.now = f.now.Add(time.Second)
	again := f.newRecord(key(2))
	again.CommandID = r.CommandID
	f.apply(put(0, again))
	same(t, "by its id", got(f.cs.FindCommand(f.ctx, f.name, r.CommandID))(t), &r)
}

func recordTenant(t *testing.T, f *records) {
	r := f.newRecord(key(1))
	f.apply(put(0, r, f.entry(evidence.Reserved, r)))
	theirs := f.newRecord(key(1))
	theirs.Tenant, theirs.CommandID = f.anotherTenant(), r.CommandID
	for _, id := range []string{theirs.Tenant, ""} {
		if found := got(f.cs.Find(f.ctx, id, key(1)))(t); found != nil {
			t.Errorf("tenant %q finds %+v", id, found)
		}
		if found := got(f.cs.FindCommand(f.ctx, id, r.CommandID))(t); found != nil {
			t.Errorf("tenant %q finds %+v by its command", id, found)
		}
		if items := got(f.cs.Evidence(f.ctx, command.EvidenceQuery{Tenant: id, Key: key(1)}))(t); len(items) != 0 {
			t.Errorf("tenant %q sees %+v", id, items)
		}
	}
	f.apply(put(0, theirs, f.entry(evidence.Reserved, theirs)))
	same(t, "theirs", got(f.cs.Find(f.ctx, theirs.Tenant, key(1)))(t), &theirs)
	same(t, "theirs by its command", got(f.cs.FindCommand(f.ctx, theirs.Tenant, r.CommandID))(t), &theirs)
	f.holds(key(1), &r)
	f.chain(f.name, 1)
	f.chain(theirs.Tenant, 1)
}

func recordReopen(t *testing.T, f *records) {
	r, done := f.newRecord(key(1)), f.newRecord(key(2))
	f.apply(put(0, r, f.entry(evidence.Reserved, r)), put(0, done, f.entry(evidence.Reserved, done)))
	done = f.ended(done, command.Executed)
	f.apply(put(1, done, f.entry(evidence.ExecutedOK, done)))
	before := f.chain(f.name, 3)
	f.cs = f.b.Reopen(t, f.cs)
	f.holds(key(1), &r)
	f.holds(key(2), &done)
	same(t, "evidence", f.chain(f.name, 3), before)
	next := f.ended(r, command.Failed)
	f.apply(put(1, next, f.entry(evidence.FailedType, next)))
	f.holds(key(1), &next)
	f.chain(f.name, 4)
}
