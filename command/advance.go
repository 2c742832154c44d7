package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// Advance applies steps in a transaction of a store and commits it. All stores share this step machine:
//
//	read heads and records ─► for each step: compare ─ effects ─ settle ─ link evidence ─► store records, evidence and heads
//
// Where the transaction allows it, Advance first applies the effects of all steps together. If one of them fails, Advance
// rolls back to the savepoint and applies the steps one by one.
//
// An error concerns the whole transaction: the store must roll it back, and no step is stored.
func Advance(ctx context.Context, tx Transaction, now time.Time, steps []*Step) ([]Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	m := &machine{tx: tx, now: now, steps: steps}
	if err := m.read(ctx); err != nil {
		return nil, err
	}
	results, err := m.inBulk(ctx)
	if results == nil && err == nil {
		results, err = m.oneByOne(ctx)
	}
	if err != nil {
		return nil, err
	}
	return results, tx.Commit(ctx, m.writes())
}

// machine is a batch of steps in a transaction.
type machine struct {
	tx       Transaction
	now      time.Time
	steps    []*Step
	snapshot Snapshot

	records map[RecordID]*Record // records that the steps have changed
	places  map[RecordID]int     // index of each of these records in written
	written []RecordWrite
	chains  *evidence.Chains
	effects bool
}

func (s *Step) id() RecordID { return RecordID{s.Tenant, s.Key} }

// valid reports whether every store can keep the step's tenant and key.
func (s *Step) valid() bool { return storable(s.Tenant) && storable(s.Key) }

func (m *machine) read(ctx context.Context) (err error) {
	var (
		tenants []string
		ids     []RecordID
		seen    = map[RecordID]bool{}
	)
	once := func(id RecordID) bool {
		first := !seen[id]
		seen[id] = true
		return first
	}
	for _, step := range m.steps {
		if !step.valid() {
			continue
		}
		if once(RecordID{Tenant: step.Tenant}) {
			tenants = append(tenants, step.Tenant)
		}
		if step.Key != "" && once(step.id()) {
			ids = append(ids, step.id())
		}
	}
	if m.snapshot, err = m.tx.Read(ctx, tenants, ids); err == nil {
		m.reset()
	}
	return err
}

// reset discards the results of the steps.
func (m *machine) reset() {
	m.records, m.places, m.written, m.effects = map[RecordID]*Record{}, map[RecordID]int{}, nil, false
	m.chains = evidence.NewChains(m.snapshot.Heads)
}

func (m *machine) writes() *Writes {
	return &Writes{Records: m.written, Items: m.chains.Items(), Heads: m.chains.Heads(), Effects: m.effects}
}

// inBulk applies the effects of all steps together. It returns no results if the steps have to be applied one by one:
// because fewer than two have effects, because an effect failed, or because a step refused its effects.
func (m *machine) inBulk(ctx context.Context) ([]Result, error) {
	effects, ends, ok := m.together()
	if !ok {
		return nil, nil
	}
	if err := m.tx.Savepoint(ctx); err != nil {
		return nil, err
	}
	all, refusal, err := m.tx.Apply(ctx, effects)
	if err != nil {
		return nil, err
	}
	var results []Result
	if refusal == nil {
		results = m.settleAll(all, ends)
	}
	if results == nil {
		m.reset()
		return nil, m.tx.RollBack(ctx)
	}
	m.effects = true
	return results, m.tx.Release(ctx)
}

// together lists the effects of all steps whose expected version matches, and the index at which the effects of each step
// end. It reports false if fewer than two steps have effects, or if a step depends on the result of an earlier one.
func (m *machine) together() (effects []Effect, ends []int, ok bool) {
	if !m.tx.Bulk() {
		return nil, nil, false
	}
	before, carriers := map[RecordID]bool{}, 0
	for _, step := range m.steps {
		if len(step.Effects) > 0 && step.valid() {
			if step.Key != "" && before[step.id()] {
				return nil, nil, false
			}
			if _, holds := m.holds(step); holds {
				effects = append(effects, step.Effects...)
				carriers++
			}
		}
		before[step.id()] = true
		ends = append(ends, len(effects))
	}
	return effects, ends, carriers > 1
}

// settleAll settles steps whose effects are applied. It returns nil if one of those with effects cannot be settled.
func (m *machine) settleAll(applied Results, ends []int) []Result {
	results := make([]Result, len(m.steps))
	begin := 0
	for i, step := range m.steps {
		end := ends[i]
		there, refused := m.compare(step)
		if refused != nil {
			results[i] = *refused
			continue
		}
		a := Applied{Previous: copied(there)}
		if end > begin {
			a.Results = applied[begin:end:end]
		}
		results[i] = m.settle(step, a)
		if results[i].Err != nil && end > begin {
			return nil
		}
		begin = end
	}
	return results
}

// oneByOne applies the steps, the effects of each behind a savepoint.
func (m *machine) oneByOne(ctx context.Context) ([]Result, error) {
	results := make([]Result, len(m.steps))
	for i, step := range m.steps {
		there, refused := m.compare(step)
		if refused != nil {
			results[i] = *refused
			continue
		}
		applied := Applied{Previous: copied(there)}
		if len(step.Effects) == 0 {
			results[i] = m.settle(step, applied)
			continue
		}
		var err error
		if results[i], err = m.withEffects(ctx, step, applied); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// withEffects applies the effects of one step and settles it. If the step is not stored, neither are its effects.
func (m *machine) withEffects(ctx context.Context, step *Step, a Applied) (r Result, err error) {
	if err := m.tx.Savepoint(ctx); err != nil {
		return r, err
	}
	if a.Results, a.Err, err = m.tx.Apply(ctx, step.Effects); err != nil {
		return r, err
	}
	if a.Err != nil {
		a.Results = nil
		if err := m.tx.RollBack(ctx); err != nil {
			return r, err
		}
		return m.settle(step, a), nil
	}
	if r = m.settle(step, a); r.Err != nil {
		return r, m.tx.RollBack(ctx)
	}
	m.effects = true
	return r, m.tx.Release(ctx)
}

// compare returns the record under the step's key, or the result of a step whose expected version does not match.
func (m *machine) compare(step *Step) (*Record, *Result) {
	if !step.valid() {
		return nil, &Result{Err: fmt.Errorf("advance command: tenant %q or key %q is not text", step.Tenant, step.Key)}
	}
	there, holds := m.holds(step)
	if !holds {
		return nil, &Result{Refused: true, Stored: copied(there)}
	}
	return there, nil
}

// holds returns the record under the step's key, and whether its version is the one that the step expects.
func (m *machine) holds(step *Step) (there *Record, holds bool) {
	there = m.at(step.id())
	switch {
	case step.Key == "":
		return nil, true
	case step.Expect == 0:
		return there, there == nil || there.FreeAt(m.now)
	}
	return there, there != nil && there.Version == step.Expect
}

// at returns the record with the given id, as the steps so far have left it.
func (m *machine) at(id RecordID) *Record {
	if r, changed := m.records[id]; changed {
		return r
	}
	return m.snapshot.Records[id]
}

// settle asks the step for its change, and keeps the change for the commit.
func (m *machine) settle(step *Step, a Applied) Result {
	change, err := step.Settle(a)
	if err == nil && change.Record == nil && len(change.Evidence) == 0 {
		err = a.Err
	}
	if err == nil {
		err = m.keep(step, change)
	}
	r := Result{Err: err, Applied: a.Results}
	if step.Key != "" {
		r.Stored = copied(m.at(step.id()))
	}
	if err != nil {
		r.Applied = nil
	}
	return r
}

var errStrayRecord = errors.New("advance command: a step stores the record of its own key alone")

// keep adds a change to the writes of the commit. If it returns an error, it has added no part of the change.
func (m *machine) keep(step *Step, change Change) error {
	var (
		id = step.id()
		r  = change.Record
		w  RecordWrite
	)
	if r != nil {
		if step.Key == "" || r.Tenant != id.Tenant || r.Key != id.Key {
			return errStrayRecord
		}
		document, err := r.document()
		if err != nil {
			return err
		}
		w = RecordWrite{Record: copied(r), Document: document, Exists: m.snapshot.Records[id] != nil}
	}
	if err := m.chains.Link(step.Tenant, change.Evidence...); err != nil {
		return err
	}
	if r == nil {
		return nil
	}
	place, again := m.places[id]
	if !again {
		place = len(m.written)
		m.written = append(m.written, w)
	}
	m.places[id], m.written[place], m.records[id] = place, w, w.Record
	return nil
}

// copied returns a copy, so that a caller that changes its record does not change the stored one.
func copied(r *Record) *Record {
	if r == nil {
		return nil
	}
	c := r.next()
	c.Version--
	return c
}
