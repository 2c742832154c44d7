package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// scripted is a transaction that records its calls. It refuses the effects named in fails.
type scripted struct {
	bulk  bool
	fails []string
	calls []string
}

type named struct {
	EffectOf[string]
	name string
}

func (s *scripted) call(name string) error { s.calls = append(s.calls, name); return nil }

func (s *scripted) Read(_ context.Context, tenants []string, _ []RecordID) (Snapshot, error) {
	read := Snapshot{Heads: map[string]evidence.Head{}}
	for _, tenant := range tenants {
		read.Heads[tenant] = evidence.Head{}
	}
	return read, nil
}

func (s *scripted) Savepoint(context.Context) error { return s.call("savepoint") }
func (s *scripted) Release(context.Context) error   { return s.call("release") }
func (s *scripted) RollBack(context.Context) error  { return s.call("roll back") }
func (s *scripted) Bulk() bool                      { return s.bulk }

func (s *scripted) Apply(_ context.Context, effects []Effect) (results Results, refusal, err error) {
	var names []string
	for _, e := range effects {
		name := e.(named).name
		names = append(names, name)
		if slices.Contains(s.fails, name) {
			refusal = errors.New(name)
		}
		results = append(results, e.(named).Returns(name))
	}
	return results, refusal, s.call("apply " + strings.Join(names, "+"))
}

func (s *scripted) Commit(_ context.Context, w *Writes) error {
	if w.Empty() {
		return s.call("commit nothing")
	}
	return s.call("commit")
}

// TestEffectsOfABatch: the effects of a batch are applied together, and one by one only if one of them fails.
func TestEffectsOfABatch(t *testing.T) {
	const oneByOne = "savepoint, apply a, release, savepoint, apply b, %, savepoint, apply c, release, commit"
	for name, c := range map[string]struct {
		tx     scripted
		refuse string // the step that refuses its effects
		keys   string // keys of the steps
		want   string
	}{
		"all succeed":            {tx: scripted{bulk: true}, want: "savepoint, apply a+b+c, release, commit"},
		"one fails":              {tx: scripted{bulk: true, fails: []string{"b"}}, want: "savepoint, apply a+b+c, roll back, " + strings.Replace(oneByOne, "%", "roll back", 1)},
		"one is refused":         {tx: scripted{bulk: true}, refuse: "b", want: "savepoint, apply a+b+c, roll back, " + strings.Replace(oneByOne, "%", "roll back", 1)},
		"not undone by rollback": {want: strings.Replace(oneByOne, "%", "release", 1)},
		// Whether the second step's expected version matches is known only after the first.
		"on one key": {tx: scripted{bulk: true}, keys: "kkl", want: "savepoint, apply a, release, savepoint, apply c, release, commit"},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []*Step
			for i, name := range []string{"a", "b", "c"} {
				var o Outcome
				handle := Add(&o, named{name: name})
				step := &Step{Tenant: "t", Effects: o.Effects, Settle: func(a Applied) (Change, error) {
					if a.Err == nil && handle.In(a.Results) != name {
						t.Errorf("step %s was told %v", name, a.Results)
					}
					if name == c.refuse {
						return Change{}, errors.New("refused")
					}
					return Change{Evidence: []evidence.Entry{{Type: evidence.Observation, At: time.Unix(1, 0)}}}, a.Err
				}}
				if c.keys != "" {
					step.Key = c.keys[i : i+1]
					settle := step.Settle
					step.Settle = func(a Applied) (Change, error) {
						change, err := settle(a)
						change.Record = &Record{Tenant: "t", Key: step.Key, Version: 1, Status: InProgress}
						return change, err
					}
				}
				steps = append(steps, step)
			}
			results, err := Advance(t.Context(), &c.tx, time.Unix(1, 0), steps)
			if got := strings.Join(c.tx.calls, ", "); err != nil || got != c.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
			}
			for i, r := range results {
				bad := c.refuse != "" || c.tx.fails != nil
				if (r.Err != nil) != (bad && i == 1) || r.Refused != (c.keys != "" && i == 1) {
					t.Errorf("step %d: %+v", i, r)
				}
			}
		})
	}
}
