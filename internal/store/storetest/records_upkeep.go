package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

var recordUpkeepCases = []recordCase{
	{name: "when a key is free", test: recordFree},
	{name: "the record before is told", test: recordPrevious},
	{name: "lost ones", test: recordLost, alone: true},
	{name: "lost ones, some at a time", test: recordLostLimit, alone: true},
	{name: "listed", test: recordsListed, alone: true},
	{name: "a tampered one hides no others", test: recordTampered, alone: true, exec: true},
	{name: "sweep", test: recordSweep, alone: true},
	{name: "sweep, some at a time", test: recordSweepLimit, alone: true},
}

// An ending is a record with the time from which its key is free or its executor counts as lost.
type ending struct {
	name string
	make func(r *command.Record, at time.Time)
	free bool
	lost bool
}

var endings = []ending{
	{name: "executed", free: true, make: func(r *command.Record, at time.Time) { r.Status, r.ExpiresAt = command.Executed, at }},
	{name: "failed", free: true, make: func(r *command.Record, at time.Time) { r.Status, r.ExpiresAt = command.Failed, at }},
	{name: "rejected", free: true, make: func(r *command.Record, at time.Time) { r.Status, r.ExpiresAt = command.Rejected, at }},
	{name: "compensated", free: true, make: func(r *command.Record, at time.Time) { r.Status, r.ExpiresAt = command.Compensated, at }},
	{name: "executed, without an end", make: func(r *command.Record, at time.Time) {
		r.Status, r.ExpiresAt, r.LeaseUntil = command.Executed, time.Time{}, at
	}},
	{name: "unconfirmed", free: true, make: func(r *command.Record, at time.Time) {
		r.Substatus, r.LeaseUntil, r.ExpiresAt = command.AwaitingConfirmation, at, at.Add(time.Hour)
	}},
	{name: "running", lost: true, make: func(r *command.Record, at time.Time) { r.LeaseUntil, r.ExpiresAt = at, at }},
	{name: "running, its window over long ago", lost: true, make: func(r *command.Record, at time.Time) {
		r.LeaseUntil, r.ExpiresAt = at, at.Add(-time.Hour)
	}},
	{name: "to be reconciled", lost: true, make: func(r *command.Record, at time.Time) {
		r.Substatus, r.LeaseUntil, r.ExpiresAt = command.NeedsReconciliation, at, at
	}},
}

// atEnd calls fn with each ending, just before, at and after its time.
func atEnd(t *testing.T, f *records, fn func(t *testing.T, f *records, e *ending, r command.Record, over bool)) {
	n := 0
	for _, e := range endings {
		for name, off := range map[string]time.Duration{"before": -time.Microsecond, "at": 0, "after": time.Microsecond, "long after": 1000 * time.Hour} {
			n++
			r := f.newRecord(key(n))
			end := f.now.Add(-off)
			e.make(&r, end)
			t.Run(e.name+"/"+name, func(t *testing.T) {
				f := f.in(t)
				f.apply(put(0, r))
				fn(t, f, &e, r, off >= 0)
			})
		}
	}
}

func recordFree(t *testing.T, f *records) {
	atEnd(t, f, func(t *testing.T, f *records, e *ending, r command.Record, over bool) {
		next := f.newRecord(r.Key)
		next.CommandID = "cmd_next_" + r.CommandID
		want := command.Result{Stored: &next}
		if free := e.free && over; !free {
			want = command.Result{Refused: true, Stored: &r}
		}
		if r.FreeAt(f.now) == want.Refused {
			t.Fatalf("FreeAt says %v", r.FreeAt(f.now))
		}
		same(t, "result", f.advance(put(0, next))[0], want)
		f.holds(r.Key, want.Stored)
		old := got(f.cs.FindCommand(f.ctx, f.name, r.CommandID))(t)
		if (old == nil) == want.Refused {
			t.Errorf("the command before is found: %+v", old)
		}
	})
}

func recordPrevious(t *testing.T, f *records) {
	old := f.ended(f.newRecord(key(1)), command.Executed)
	old.ExpiresAt = f.now.Add(time.Minute)
	f.apply(put(0, old))
	next := f.newRecord(key(1))
	var told []*command.Record
	reserve := put(0, next)
	reserve.Settle = func(a command.Applied) (command.Change, error) {
		told = append(told, a.Previous)
		stored := next
		stored.Previous = old.CommandID
		return command.Change{Record: &stored}, nil
	}
	if r := f.advance(reserve)[0]; !r.Refused || r.Stored.CommandID != old.CommandID {
		t.Fatalf("a step on a taken key was not refused: %+v", r)
	}
	f.holds(old.Key, &old)
	f.tick(time.Minute)
	next.CreatedAt = f.now
	f.apply(reserve)
	same(t, "told", told[len(told)-1], &old)
	next.Previous = old.CommandID
	f.holds(key(1), &next)

	told = nil
	reserve.Key, next.Key, next.Previous = key(2), key(2), ""
	f.apply(reserve)
	if told[len(told)-1] != nil {
		t.Errorf("a new key replaces %+v", told)
	}
}

func recordLost(t *testing.T, f *records) {
	var all []command.Record
	atEnd(t, f, func(t *testing.T, f *records, e *ending, r command.Record, over bool) {
		found := got(f.cs.Lost(f.ctx, f.now, 1000))(t)
		var there bool
		for i := range found {
			if found[i].Key == r.Key {
				there = true
				same(t, "lost", found[i], r)
			}
		}
		if there != (e.lost && over) {
			t.Errorf("listed: %v", there)
		}
		all = found
	})
	for i := 1; i < len(all); i++ {
		if all[i].LeaseUntil.Before(all[i-1].LeaseUntil) {
			t.Errorf("lease %v is listed after %v", all[i].LeaseUntil, all[i-1].LeaseUntil)
		}
	}
}

func recordLostLimit(t *testing.T, f *records) {
	for i, age := range []time.Duration{3, 1, 5, 4, 2} {
		r := f.newRecord(key(i))
		r.LeaseUntil = f.now.Add(-age * time.Second)
		if i == 2 { // of any tenant
			r.Tenant = f.anotherTenant()
		}
		f.apply(put(0, r))
	}
	var ages []time.Duration
	for _, r := range got(f.cs.Lost(f.ctx, f.now, 3))(t) {
		ages = append(ages, f.now.Sub(r.LeaseUntil)/time.Second)
	}
	same(t, "lost", ages, []time.Duration{5, 4, 3})
}

func recordSweep(t *testing.T, f *records) {
	atEnd(t, f, func(t *testing.T, f *records, e *ending, r command.Record, over bool) {
		f.apply(observe(f.name, f.entry(evidence.Observation, r)))
		n := got(f.cs.SweepRecords(f.ctx, f.now, 1000))(t)
		if e.free && over {
			same(t, "removed", n, 1)
			f.holds(r.Key, nil)
		} else {
			same(t, "removed", n, 0)
			f.holds(r.Key, &r)
		}
	})
	f.chain(f.name, 4*len(endings)) // evidence is never swept
}

func recordSweepLimit(t *testing.T, f *records) {
	for i := range 7 {
		r := f.ended(f.newRecord(key(i)), command.Executed)
		r.ExpiresAt = f.now
		if i%2 == 0 {
			r = f.newRecord(key(i))
			r.Substatus, r.LeaseUntil = command.AwaitingConfirmation, f.now
		}
		f.apply(put(0, r))
	}
	kept := f.newRecord(key(8))
	f.apply(put(0, kept))
	var removed []int
	for range 4 {
		removed = append(removed, got(f.cs.SweepRecords(f.ctx, f.now, 3))(t))
	}
	same(t, "removed", removed, []int{3, 3, 1, 0})
	f.holds(key(8), &kept)
}

// recordsListed applies to stores whose records can be re-encrypted.
func recordsListed(t *testing.T, f *records) {
	lister, ok := f.cs.(command.Lister)
	if !ok {
		return
	}
	var want []command.Record
	tenants := []string{f.anotherTenant(), f.anotherTenant()}
	slices.Sort(tenants)
	for _, tenant := range tenants {
		for n := range 5 {
			r := f.newRecord(key(n))
			r.Tenant = tenant
			f.apply(put(0, r))
			want = append(want, r)
		}
	}
	var list []command.Record
	for after := (command.Record{}); ; after = list[len(list)-1] {
		page, err := lister.Records(f.ctx, after.Tenant, after.Key, 3)
		f.must(err)
		if len(page) == 0 {
			break
		}
		list = append(list, page...)
	}
	// Each store has its own order.
	slices.SortFunc(list, func(a, b command.Record) int { return strings.Compare(a.Tenant+a.Key, b.Tenant+b.Key) })
	same(t, "records", list, want)
}

// A record that was tampered with can still be found and affects no other record: the executor that reads it rejects its MAC.
func recordTampered(t *testing.T, f *records) {
	bad, good := f.newRecord(key(1)), f.newRecord(key(2))
	f.apply(put(0, bad), put(0, good))
	f.must(f.b.Exec(t, f.cs, "UPDATE command_records SET document = '{\"actor\":7}' WHERE command_id = '"+bad.CommandID+"'"))
	found, err := f.cs.Find(f.ctx, f.name, bad.Key)
	if err != nil || found == nil || found.Actor != "" || len(found.MAC) != len(bad.MAC) {
		t.Errorf("found %+v, %v", found, err)
	}
	if lost, err := f.cs.Lost(f.ctx, f.now.Add(time.Hour), 9); err != nil || len(lost) != 2 {
		t.Errorf("lost are %+v, %v", lost, err)
	}
	next := good
	next.Version++
	third := f.newRecord(key(3))
	results, err := f.cs.Advance(f.ctx, f.now, []*command.Step{put(0, bad), put(1, next), put(0, third)})
	if err != nil || !results[0].Refused || results[1].Refused || results[2].Refused {
		t.Errorf("results %+v, %v", results, err)
	}
}
