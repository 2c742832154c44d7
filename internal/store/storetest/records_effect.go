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
	{name: "of an unknown kind fails its step alone", test: effectUnknown},
	{name: "of many steps are applied together", test: effectsTogether},
	{name: "that fails among those of many steps fails its step alone", test: effectFailsAmongMany},
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

// outcome returns the last step of a command: executed if its effects were applied, otherwise rejected.
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

		// The same effect succeeds again: nothing of the first one remains.
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

// batch makes a record in progress for each kind of effect, and the steps that end them.
func (f *records) batch(t *testing.T) (ended []command.Record, steps []*command.Step, states []func() any) {
	for i, k := range f.b.Kinds {
		effect, state := k.Make(t, f.cs)
		r := f.newRecord(key(i))
		f.apply(put(0, r))
		ended = append(ended, f.ended(r, command.Executed))
		steps, states = append(steps, f.outcome(r, effect)), append(states, state)
	}
	return ended, steps, states
}

func effectsTogether(t *testing.T, f *records) {
	ended, steps, states := f.batch(t)
	var before []any
	for _, state := range states {
		before = append(before, state())
	}
	fresh, late := f.newRecord(key(100)), f.newRecord(key(0))
	effect, untouched := f.b.Kinds[0].Make(t, f.cs)
	unapplied := untouched()
	results := f.advance(append(steps, put(0, fresh), f.outcome(late, effect))...)
	for i := range ended {
		if results[i].Err != nil || results[i].Refused || len(results[i].Applied) != 1 {
			t.Errorf("step %d: %+v", i, results[i])
		}
		f.holds(key(i), &ended[i])
		if reflect.DeepEqual(before[i], states[i]()) {
			t.Errorf("%s: nothing changed", f.b.Kinds[i].Name)
		}
	}
	same(t, "a step that expects another version", results[len(results)-1], command.Result{Refused: true, Stored: &ended[0]})
	same(t, "what it would have changed", untouched(), unapplied)
	f.holds(fresh.Key, &fresh)
	f.chain(f.name, len(ended))
}

func effectFailsAmongMany(t *testing.T, f *records) {
	fails, failure := f.b.Fails(t, f.cs)
	no := errors.New("no")
	for name, spoil := range map[string]func(step *command.Step) (want command.Status, err error){
		"by itself": func(step *command.Step) (command.Status, error) {
			step.Effects = append(step.Effects, fails)
			return command.Rejected, nil
		},
		"unnoticed": func(step *command.Step) (command.Status, error) {
			step.Effects = append(step.Effects, fails)
			step.Settle = func(command.Applied) (command.Change, error) { return command.Change{}, nil }
			return command.InProgress, failure
		},
		"by its outcome": func(step *command.Step) (command.Status, error) {
			step.Settle = func(command.Applied) (command.Change, error) { return command.Change{}, no }
			return command.InProgress, no
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.name = f.anotherTenant()
			ended, steps, states := f.batch(t)
			victim := f.newRecord(key(100))
			f.apply(put(0, victim))
			effect, state := f.b.Kinds[0].Make(t, f.cs)
			before := state()
			spoiled := f.outcome(victim, effect)
			want, err := spoil(spoiled)
			results := f.advance(append([]*command.Step{steps[0], spoiled}, steps[1:]...)...)
			f.is(results[1].Err, err)
			same(t, "what the failed step changed", state(), before)
			same(t, "status", got(f.cs.Find(f.ctx, f.name, victim.Key))(t).Status, want)
			for i := range ended {
				f.holds(key(i), &ended[i])
				states[i]()
			}
			items := len(ended)
			if want == command.Rejected {
				items++
			}
			f.chain(f.name, items)
		})
	}
}
