package storetest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var effectCases = []commandCase{
	{name: "is stored with the outcome", test: effectApplied},
	{name: "is undone when a later one fails", test: effectUndone},
	{name: "is undone when settle refuses", test: effectRefused},
	{name: "does not happen when the step is refused", test: effectFenced},
	{name: "sees those before it", test: effectOrder},
	{name: "that nobody knows fails its step alone", test: effectUnknown},
	{name: "change endpoint", test: effectChangeEndpoint},
	{name: "issue secret", test: effectIssueSecret},
	{name: "revoke secret", test: effectRevokeSecret},
	{name: "requeue dead letters", test: effectRequeue},
	{name: "purge dead letters", test: effectPurge},
	{name: "remove tenant", test: effectRemoveTenant},
	{name: "publish", test: effectPublish, alone: true},
}

// A kind makes an effect that must succeed, and says how to look at what it changes.
type kind struct {
	name string
	make func(f *commands) (effect command.Effect, state func() any)
}

var kinds = []kind{
	{"change endpoint", func(f *commands) (command.Effect, func() any) {
		id := f.newEndpoint()
		e := got(f.s.Endpoint(f.ctx, f.tenant, id))(f.t)
		e.URL, e.Version = "https://moved.example/", 2
		return store.ChangeEndpoint{Endpoint: e}, func() any { return *got(f.s.Endpoint(f.ctx, f.tenant, id))(f.t) }
	}},
	{"issue secret", func(f *commands) (command.Effect, func() any) {
		id := f.newEndpoint()
		f.must(f.s.AddSecret(f.ctx, f.makeSecret(id), store.Expiry{}))
		s := f.makeSecret(id)
		return store.IssueSecret{TenantID: f.tenant, Secret: s, Others: store.Expiry{At: f.now.Add(time.Hour)}}, f.secrets(id)
	}},
	{"revoke secret", func(f *commands) (command.Effect, func() any) {
		id := f.newEndpoint()
		old := f.makeSecret(id)
		f.must(f.s.AddSecret(f.ctx, old, store.Expiry{}))
		f.must(f.s.AddSecret(f.ctx, f.makeSecret(id), store.Expiry{}))
		return store.RevokeSecret{TenantID: f.tenant, EndpointID: id, SecretID: old.ID, Now: f.now}, f.secrets(id)
	}},
	{"requeue dead letters", func(f *commands) (command.Effect, func() any) {
		f.die("order.requeued")
		return store.RequeueDead{Filter: store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.requeued"}, Page: store.Page{Limit: 10}, Actor: "key_1", Now: f.now}, f.letters
	}},
	{"purge dead letters", func(f *commands) (command.Effect, func() any) {
		f.die("order.purged")
		return store.PurgeDead{Filter: store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.purged"}, Limit: 10}, f.letters
	}},
	{"remove tenant", func(f *commands) (command.Effect, func() any) {
		own := f.tenant
		defer func() { f.tenant = own }()
		f.tenant = f.newTenant()
		doomed, id, key := f.tenant, f.newEndpoint(), f.makeKey()
		f.must(f.s.CreateKey(f.ctx, key))
		return store.RemoveTenant{ID: doomed, Now: f.now}, func() any {
			_, err := f.s.Tenant(f.ctx, doomed)
			return []any{errors.Is(err, store.ErrNotFound), *got(f.s.LoadEndpoint(f.ctx, id))(f.t), *got(f.s.KeyByHash(f.ctx, key.Hash))(f.t)}
		}
	}},
	{"publish", func(f *commands) (command.Effect, func() any) {
		id := f.newEndpoint()
		n := f.fanOut(f.makeEvent(), id)
		return store.Publish{Events: []store.NewEvent{n}}, func() any {
			_, err := f.s.Event(f.ctx, f.tenant, n.Event.ID)
			_, there := f.waiting(id)
			return []any{errors.Is(err, store.ErrNotFound), there, got(f.s.CountPending(f.ctx, id))(f.t)}
		}
	}},
}

func (f *commands) secrets(id godwit.EndpointID) func() any {
	return func() any { return got(f.s.Secrets(f.ctx, f.tenant, id))(f.t) }
}

// die makes a dead letter of an event of a type.
func (f *commands) die(eventType string) godwit.DeliveryID {
	f.t.Helper()
	e := f.makeEvent()
	e.Type = eventType
	id := f.newEndpoint()
	n := f.fanOut(e, id)
	f.accept(n)
	f.fixture.record(f.attempted(f.claimOne(id), godwit.DeliveryTerminal))
	f.tick(time.Second)
	return n.Deliveries[0].ID
}

// letters is all that is dead or was, with its deliveries.
func (f *commands) letters() any {
	letters := got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant, Replayed: true}, store.Page{Limit: 100}))(f.t)
	return []any{letters, got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant}, store.Page{Limit: 100}))(f.t)}
}

// eachKind runs fn for every kind of effect, on a record in progress.
func eachKind(t *testing.T, f *commands, fn func(t *testing.T, f *commands, r command.Record, effect command.Effect, state func() any)) {
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			f := f.in(t)
			effect, state := k.make(f)
			r := f.newRecord(key(i))
			r.CommandID = "cmd_" + k.name
			f.apply(put(0, r))
			fn(t, f, r, effect, state)
		})
	}
}

// outcome is the last step of a command: executed if its effects were applied, rejected else.
func (f *commands) outcome(r command.Record, effects ...command.Effect) *command.Step {
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

func effectApplied(t *testing.T, f *commands) {
	eachKind(t, f, func(t *testing.T, f *commands, r command.Record, effect command.Effect, state func() any) {
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
	f.chain(f.name, len(kinds))
}

func effectUndone(t *testing.T, f *commands) {
	fails := store.RemoveTenant{ID: mint[godwit.TenantID](f.now), Now: f.now}
	eachKind(t, f, func(t *testing.T, f *commands, r command.Record, effect command.Effect, state func() any) {
		before := state()
		left, right := f.newRecord(r.Key[1:]+"a"), f.newRecord(r.Key[1:]+"b")
		left.CommandID, right.CommandID = r.CommandID+"a", r.CommandID+"b"
		var told error
		step := f.outcome(r, effect, fails)
		settle := step.Settle
		step.Settle = func(a command.Applied) (command.Change, error) { told = a.Err; return settle(a) }
		results := f.apply(put(0, left), step, put(0, right))
		f.is(told, store.ErrNotFound)
		same(t, "what the effects returned", results[1].Applied, []any(nil))
		same(t, "state", state(), before)
		done := f.ended(r, command.Rejected)
		f.holds(r.Key, &done)
		f.holds(left.Key, &left)
		f.holds(right.Key, &right)
	})
	f.chain(f.name, len(kinds))
}

func effectRefused(t *testing.T, f *commands) {
	no := errors.New("no")
	eachKind(t, f, func(t *testing.T, f *commands, r command.Record, effect command.Effect, state func() any) {
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
	f.chain(f.name, len(kinds))
}

func effectFenced(t *testing.T, f *commands) {
	eachKind(t, f, func(t *testing.T, f *commands, r command.Record, effect command.Effect, state func() any) {
		before := state()
		late := r
		late.Version = 7
		same(t, "result", f.advance(f.outcome(late, effect))[0], command.Result{Refused: true, Stored: &r})
		same(t, "state", state(), before)
	})
	f.chain(f.name, 0)
}

func effectOrder(t *testing.T, f *commands) {
	second := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	second.URL, second.Version = "https://second.example/", 2
	third := *second
	third.URL, third.Version = "https://third.example/", 3
	secret := f.makeSecret(f.endpoint)
	r := f.newRecord(key(1))
	f.apply(put(0, r), f.outcome(r, store.ChangeEndpoint{Endpoint: second}, store.IssueSecret{TenantID: f.tenant, Secret: secret}, store.ChangeEndpoint{Endpoint: &third}))
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &third)
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{*secret})

	// A step sees what one before it has done, and not what was undone.
	fourth, fifth := third, third
	fourth.Version, fifth.Version = 4, 5
	bare := func(es ...*godwit.Endpoint) *command.Step {
		step := &command.Step{Tenant: f.name, Settle: func(a command.Applied) (command.Change, error) { return command.Change{}, a.Err }}
		for _, e := range es {
			step.Effects = append(step.Effects, store.ChangeEndpoint{Endpoint: e})
		}
		return step
	}
	results := f.advance(bare(&fourth, &third), bare(&fourth), bare(&fifth), bare(&fifth))
	f.is(results[0].Err, store.ErrConflict)
	f.is(results[3].Err, store.ErrConflict)
	if results[1].Err != nil || results[2].Err != nil {
		t.Errorf("results are %+v", results)
	}
	same(t, "version", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t).Version, int64(5))

	// What settle does not turn into a change is the step's error.
	silent := bare(&fifth)
	silent.Settle = func(command.Applied) (command.Change, error) { return command.Change{}, nil }
	f.is(f.advance(silent)[0].Err, store.ErrConflict)
}

func effectUnknown(t *testing.T, f *commands) {
	r, other := f.newRecord(key(1)), f.newRecord(key(2))
	f.apply(put(0, r))
	id := f.endpoint
	e := got(f.s.Endpoint(f.ctx, f.tenant, id))(t)
	e.Version = 2
	type unheard struct{}
	results := f.advance(f.outcome(r, store.ChangeEndpoint{Endpoint: e}, unheard{}), put(0, other))
	done := f.ended(r, command.Rejected)
	same(t, "stored", results[0].Stored, &done)
	f.holds(other.Key, &other)
	same(t, "version", got(f.s.Endpoint(f.ctx, f.tenant, id))(t).Version, int64(1))
}
