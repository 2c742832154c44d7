package storetest

import (
	"errors"
	"reflect"
	"testing"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
)

var effectCases = []recordCase{
	{name: "is stored with the outcome", test: effectApplied},
	{name: "is undone when a later one fails", test: effectUndone},
	{name: "is undone when settle refuses", test: effectRefused},
	{name: "does not happen when the step is refused", test: effectFenced},
	{name: "that nobody knows fails its step alone", test: effectUnknown},
}

// eachKind runs fn for every kind of effect, on a record in progress.
func eachKind(t *testing.T, f *records, fn func(t *testing.T, f *records, r command.Record, effect command.Effect, state func() any)) {
	for i, k := range f.b.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			f := f.in(t)
			effect, state := k.Make(t, f.cs)
			r := f.newRecord(key(i))
			r.CommandID = "cmd_" + k.Name
			f.apply(put(0, r))
			fn(t, f, r, effect, state)
		})
	}
}

// outcome is the last step of a command: executed if its effects were applied, rejected else.
func (f *records) outcome(r command.Record, effects ...command.Effect) *command.Step {
	return &command.Step{Tenant: r.Tenant, Key: r.Key, Expect: r.Version, Effects: effects, Settle: func(a command.Applied) (command.Change, error) {
		done, kind := f.ended(r, command.Executed), evidence.ExecutedOK
		if a.Err != nil {
			done, kind = f.ended(r, command.Rejected), evidence.RejectedTy
			if a.Results != nil {
				return command.Change{}, errors.New("results beside a failure")
			}
		} else if len(a.Results) != len(effects) {
			return command.Change{}, errors.New("not as many results as effects")
		}
		return command.Change{Record: &done, Evidence: []evidence.Entry{f.entry(kind, done)}}, nil
	}}
}

func effectApplied(t *testing.T, f *records) {
	eachKind(t, f, func(t *testing.T, f *records, r command.Record, effect command.Effect, state func() any) {
		before := state()
		result := f.apply(f.outcome(r, effect))[0]
		same(t, "results", len(result.Applied), 1)
		same(t, "status", result.Stored.Status, command.Executed)
		if reflect.DeepEqual(before, state()) {
			t.Errorf("nothing changed: %+v", before)
		}
		done := f.ended(r, command.Executed)
		f.holds(r.Key, &done)
	})
	f.chain(f.name, len(f.b.Kinds))
}

func effectUndone(t *testing.T, f *records) {
	fails, failure := f.b.Fails(t, f.cs)
	eachKind(t, f, func(t *testing.T, f *records, r command.Record, effect command.Effect, state func() any) {
		before := state()
		left, right := f.newRecord(r.Key[1:]+"a"), f.newRecord(r.Key[1:]+"b")
		left.CommandID, right.CommandID = r.CommandID+"a", r.CommandID+"b"
		var told error
		step := f.outcome(r, effect, fails)
		settle := step.Settle
		step.Settle = func(a command.Applied) (command.Change, error) { told = a.Err; return settle(a) }
		results := f.apply(put(0, left), step, put(0, right))
		f.is(told, failure)
		same(t, "what the effects returned", results[1].Applied, command.Results(nil))
		same(t, "state", state(), before)
		done := f.ended(r, command.Rejected)
		f.holds(r.Key, &done)
		f.holds(left.Key, &left)
		f.holds(right.Key, &right)
	})
	f.chain(f.name, len(f.b.Kinds))
}

func effectRefused(t *testing.T, f *records) {
	no := errors.New("no")
	eachKind(t, f, func(t *testing.T, f *records, r command.Record, effect command.Effect, state func() any) {
		before := state()
		step := f.outcome(r, effect)
		step.Settle = func(a command.Applied) (command.Change, error) {
			done := f.ended(r, command.Executed)
			return command.Change{Record: &done, Evidence: []evidence.Entry{f.entry(evidence.ExecutedOK, done)}}, no
		}
		other := f.newRecord(r.Key[1:] + "a")
		other.CommandID = r.CommandID + "a"
		results := f.advance(step, put(0, other))
		f.is(results[0].Err, no)
		same(t, "state", state(), before)
		f.holds(r.Key, &r)
		f.holds(other.Key, &other)

		// The same effect, once more: nothing of the first is left that could be in its way.
		f.apply(f.outcome(r, effect))
	})
	f.chain(f.name, len(f.b.Kinds))
}

func effectFenced(t *testing.T, f *records) {
	eachKind(t, f, func(t *testing.T, f *records, r command.Record, effect command.Effect, state func() any) {
		before := state()
		late := r
		late.Version = 7
		same(t, "result", f.advance(f.outcome(late, effect))[0], command.Result{Refused: true, Stored: &r})
		same(t, "state", state(), before)
	})
	f.chain(f.name, 0)
}

func effectUnknown(t *testing.T, f *records) {
	r, other := f.newRecord(key(1)), f.newRecord(key(2))
	f.apply(put(0, r))
	effect, state := f.b.Kinds[0].Make(t, f.cs)
	before := state()
	type unheard struct {
		command.EffectOf[command.Nothing]
	}
	results := f.advance(f.outcome(r, effect, unheard{}), put(0, other))
	done := f.ended(r, command.Rejected)
	same(t, "stored", results[0].Stored, &done)
	f.holds(other.Key, &other)
	same(t, "state", state(), before)
}
