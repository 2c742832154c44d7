package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

var ownEffectCases = []commandCase{
	{name: "sees those before it", test: effectOrder},
	{name: "change endpoint", test: effectChangeEndpoint},
	{name: "issue secret", test: effectIssueSecret},
	{name: "revoke secret", test: effectRevokeSecret},
	{name: "requeue dead letters", test: effectRequeue},
	{name: "requeue deliveries", test: effectRequeueDeliveries},
	{name: "purge dead letters", test: effectPurge},
	{name: "remove tenant", test: effectRemoveTenant},
	{name: "publish", test: effectPublish, alone: true},
}

// ownKinds returns Godwit's effects. Each one uses a new tenant.
func ownKinds() []Kind {
	all := make([]Kind, len(kinds))
	for i, k := range kinds {
		all[i] = Kind{Name: k.name, Make: func(t testing.TB, s command.Store) (command.Effect, func() any) {
			return k.make(newCommands(t, Records{}, s.(store.Store)))
		}}
	}
	return all
}

func ownFailure(testing.TB, command.Store) (command.Effect, error) {
	return store.RemoveTenant{ID: mint[godwit.TenantID](base), Now: base}, store.ErrNotFound
}

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
		f.must(IssueSecret(f.ctx, f.s, makeSecret(f.fixture, id), store.Expiry{}))
		s := makeSecret(f.fixture, id)
		return store.IssueSecret{TenantID: f.tenant, Secret: s, Others: store.Expiry{At: f.now.Add(time.Hour)}}, f.secrets(id)
	}},
	{"revoke secret", func(f *commands) (command.Effect, func() any) {
		id := f.newEndpoint()
		old := makeSecret(f.fixture, id)
		f.must(IssueSecret(f.ctx, f.s, old, store.Expiry{}))
		f.must(IssueSecret(f.ctx, f.s, makeSecret(f.fixture, id), store.Expiry{}))
		return store.RevokeSecret{TenantID: f.tenant, EndpointID: id, SecretID: old.ID, Now: f.now}, f.secrets(id)
	}},
	{"requeue dead letters", func(f *commands) (command.Effect, func() any) {
		f.die("order.requeued")
		return store.RequeueDead{Filter: store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.requeued"}, Page: store.Page{Limit: 10}, Actor: "key_1", Now: f.now}, f.letters
	}},
	{"requeue deliveries", func(f *commands) (command.Effect, func() any) {
		id := f.die("order.again")
		return store.Requeue{TenantID: f.tenant, Deliveries: []godwit.DeliveryID{id}, Trigger: godwit.TriggerReplay, Actor: "key_1", Now: f.now}, func() any {
			return f.delivery(id).Status
		}
	}},
	{"purge dead letters", func(f *commands) (command.Effect, func() any) {
		f.die("order.purged")
		return store.PurgeDead{Filter: store.DeadLetterFilter{TenantID: f.tenant, EventType: "order.purged"}, Limit: 10}, f.letters
	}},
	{"remove tenant", func(f *commands) (command.Effect, func() any) {
		own := f.tenant
		defer func() { f.tenant = own }()
		f.tenant = f.newTenant()
		doomed, id, key := f.tenant, f.newEndpoint(), makeKey(f.fixture)
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

// letters returns all dead letters, open and replayed, with their deliveries.
func (f *commands) letters() any {
	letters := got(f.s.ListDeadLetters(f.ctx, store.DeadLetterFilter{TenantID: f.tenant, Replayed: true}, store.Page{Limit: 100}))(f.t)
	return []any{letters, got(f.s.ListDeliveries(f.ctx, store.DeliveryFilter{TenantID: f.tenant}, store.Page{Limit: 100}))(f.t)}
}

func effectOrder(t *testing.T, f *commands) {
	second := got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t)
	second.URL, second.Version = "https://second.example/", 2
	third := *second
	third.URL, third.Version = "https://third.example/", 3
	secret := makeSecret(f.fixture, f.endpoint)
	r := f.newRecord(key(1))
	f.apply(put(0, r), f.outcome(r, store.ChangeEndpoint{Endpoint: second}, store.IssueSecret{TenantID: f.tenant, Secret: secret}, store.ChangeEndpoint{Endpoint: &third}))
	same(t, "endpoint", got(f.s.Endpoint(f.ctx, f.tenant, f.endpoint))(t), &third)
	same(t, "secrets", got(f.s.Secrets(f.ctx, f.tenant, f.endpoint))(t), []godwit.Secret{*secret})

	// A step sees the changes of earlier steps, but not those that were undone.
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

	// An error that Settle does not turn into a change is the step's error.
	silent := bare(&fifth)
	silent.Settle = func(command.Applied) (command.Change, error) { return command.Change{}, nil }
	f.is(f.advance(silent)[0].Err, store.ErrConflict)
}
