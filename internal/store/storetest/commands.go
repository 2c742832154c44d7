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
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// Commands is what the suite of commands needs of a backend.
type Commands struct {
	Open Open
	// Reopen closes a store that Open gave, and opens what it has stored, as a process would that starts again.
	Reopen func(t testing.TB, s store.Store) store.Store
	// Exec runs a statement on the store's database, past the store: as somebody would who tampers with it. It returns the
	// database's error.
	Exec func(t testing.TB, s store.Store, statement string) error
}

type commandCase struct {
	name  string
	test  func(t *testing.T, f *commands)
	alone bool // it needs a store that nobody else has written to, or opens it anew
}

// RunCommands shows what store.Commands promises. Most cases share a store, each with a tenant of its own.
func RunCommands(t *testing.T, b Commands) {
	shared := newCommands(t, b)
	for _, group := range []struct {
		name  string
		cases []commandCase
	}{
		{"record", recordCases},
		{"upkeep of records", recordUpkeepCases},
		{"effect", effectCases},
		{"evidence", evidenceCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					if c.alone {
						c.test(t, newCommands(t, b))
					} else {
						c.test(t, shared.another(t))
					}
				})
			}
		})
	}
}

// commands is a fixture with what commands need.
type commands struct {
	*fixture
	cs   store.Commands
	b    Commands
	name string // the tenant's
	ids  int
}

func newCommands(t testing.TB, b Commands) *commands {
	t.Helper()
	f := &commands{fixture: newFixture(t, b.Open), b: b}
	f.name = f.tenant.String()
	f.use(f.s)
	return f
}

func (f *commands) use(s store.Store) {
	f.t.Helper()
	cs, ok := s.(store.Commands)
	if !ok {
		f.t.Fatalf("%T keeps no commands", s)
	}
	f.s, f.cs = s, cs
}

// another is a fixture with a tenant and endpoint of its own in the same store.
func (f *commands) another(t testing.TB) *commands {
	t.Helper()
	sub := f.in(t)
	sub.tenant = sub.newTenant()
	sub.name, sub.endpoint = sub.tenant.String(), sub.newEndpoint()
	return sub
}

// in is the fixture for a subtest.
func (f *commands) in(t testing.TB) *commands {
	sub := *f
	sub.fixture = f.fixture.in(t)
	return &sub
}

// key makes one as long as they are.
func key(n int) string { return fmt.Sprintf("%064x", n) }

// newRecord is a command that was just reserved.
func (f *commands) newRecord(key string) command.Record {
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

// ended is the next version of a record, in its last state.
func (f *commands) ended(r command.Record, status command.Status) command.Record {
	r.Status, r.UpdatedAt, r.Version = status, f.now, r.Version+1
	r.OutcomeRef, r.Outcome, r.Envelope = "outcome:"+r.CommandID, []byte{0, 1, 254}, nil
	r.Owner, r.LeaseUntil = "", time.Time{}
	return r
}

// put is a step that stores a record with evidence.
func put(expect int64, r command.Record, entries ...evidence.Entry) *command.Step {
	return &command.Step{Tenant: r.Tenant, Key: r.Key, Expect: expect, Settle: func(command.Applied) (command.Change, error) {
		stored := r
		return command.Change{Record: &stored, Evidence: entries}, nil
	}}
}

// observe is a step that appends evidence and nothing else.
func observe(tenant string, entries ...evidence.Entry) *command.Step {
	return &command.Step{Tenant: tenant, Settle: func(command.Applied) (command.Change, error) {
		return command.Change{Evidence: entries}, nil
	}}
}

func (f *commands) advance(steps ...*command.Step) []command.Result {
	f.t.Helper()
	results := got(f.cs.Advance(f.ctx, f.now, steps))(f.t)
	if len(results) != len(steps) {
		f.t.Fatalf("%d results for %d steps", len(results), len(steps))
	}
	return results
}

// apply advances by steps that must all hold.
func (f *commands) apply(steps ...*command.Step) []command.Result {
	f.t.Helper()
	results := f.advance(steps...)
	for i, r := range results {
		if r.Refused || r.Err != nil {
			f.t.Fatalf("step %d: refused %v by %+v, error %v", i, r.Refused, r.Stored, r.Err)
		}
	}
	return results
}

// holds looks for what is stored under a key; nil wants nothing.
func (f *commands) holds(key string, want *command.Record) {
	f.t.Helper()
	same(f.t, "record under "+key, got(f.cs.Find(f.ctx, f.name, key))(f.t), want)
}

var recordCases = []commandCase{
	{name: "keeps every member", test: recordMembers},
	{name: "a key is given once", test: recordReserve},
	{name: "fifty want one key", test: recordRace},
	{name: "changes by compare and set", test: recordCompare},
	{name: "steps of a batch hold each by itself", test: recordBatch},
	{name: "steps on one key see each other", test: recordSteps},
	{name: "a refusal by settle stores nothing", test: recordSettle},
	{name: "a change without a record leaves it", test: recordLeft},
	{name: "only five statuses", test: recordStatus, alone: true},
	{name: "belongs to its tenant", test: recordTenant},
	{name: "is there after a restart", test: recordReopen, alone: true},
}

func recordMembers(t *testing.T, f *commands) {
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
		// What a provider said is kept to the byte: a record's MAC may be over it.
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

func recordReserve(t *testing.T, f *commands) {
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

func recordRace(t *testing.T, f *commands) {
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

func recordCompare(t *testing.T, f *commands) {
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

func recordBatch(t *testing.T, f *commands) {
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

func recordSteps(t *testing.T, f *commands) {
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

func recordSettle(t *testing.T, f *commands) {
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

func recordLeft(t *testing.T, f *commands) {
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

func recordStatus(t *testing.T, f *commands) {
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
		if err := f.b.Exec(t, f.s, fmt.Sprintf("UPDATE command_records SET status = '%s'", status)); err == nil {
			t.Errorf("the database takes status %q", status)
		}
	}
	f.holds(key(9), nil)
	f.must(f.b.Exec(t, f.s, "UPDATE command_records SET status = 'failed' WHERE status = 'executed'"))
	f.must(f.b.Exec(t, f.s, "SELECT idempotency_key, command_id, status, outcome_ref, created_at, updated_at, ttl_expires_at FROM command_records"))
}

func recordTenant(t *testing.T, f *commands) {
	r := f.newRecord(key(1))
	f.apply(put(0, r, f.entry(evidence.Reserved, r)))
	theirs := f.newRecord(key(1))
	theirs.Tenant, theirs.CommandID = f.newTenant().String(), r.CommandID
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

func recordReopen(t *testing.T, f *commands) {
	r, done := f.newRecord(key(1)), f.newRecord(key(2))
	f.apply(put(0, r, f.entry(evidence.Reserved, r)), put(0, done, f.entry(evidence.Reserved, done)))
	done = f.ended(done, command.Executed)
	f.apply(put(1, done, f.entry(evidence.ExecutedOK, done)))
	before := f.chain(f.name, 3)
	f.use(f.b.Reopen(t, f.s))
	f.holds(key(1), &r)
	f.holds(key(2), &done)
	same(t, "evidence", f.chain(f.name, 3), before)
	next := f.ended(r, command.Failed)
	f.apply(put(1, next, f.entry(evidence.FailedType, next)))
	f.holds(key(1), &next)
	f.chain(f.name, 4)
}
