package command_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/internal/keyring"
)

const (
	oldKey = "old:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	newKey = "new:OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg="
)

func ring(t *testing.T, text string) *keyring.Ring {
	t.Helper()
	r, err := keyring.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// executing runs an executor with one command until the test ends or stop is called.
func executing(t *testing.T, store command.Store, sealer command.Sealer) (x *command.Executor, stop func()) {
	t.Helper()
	reg := command.NewRegistry()
	touch := command.HandlerFunc(func(context.Context, *command.Call) (*command.Outcome, error) {
		return &command.Outcome{Summary: "Touched.", Result: map[string]any{"value": 42}}, nil
	})
	err := errors.Join(reg.Register(command.Declaration{Entity: "thing", Action: "touch", Description: "Touches."}, touch),
		reg.Register(command.Declaration{Entity: "thing", Action: "drop", Description: "Drops.", Confirmation: true}, touch))
	if err != nil {
		t.Fatal(err)
	}
	x, err = command.New(command.Config{Store: store, Registry: reg, Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); x.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return x, stop
}

func envelope(id, action string) *command.Envelope {
	return &command.Envelope{CommandID: "cmd_018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e" + id, TenantID: "ten_1", ActorID: "key_1",
		Intent: command.Intent{Entity: "thing", Action: action, Target: id}, IssuedAt: time.Now()}
}

var caller = command.Caller{Tenant: "ten_1", Actor: "key_1"}

// After a change of keys and a resealing the old key is not needed, and repeats get the first answer.
func TestResealLetsTheOldKeyGo(t *testing.T) {
	ctx := context.Background()
	store := command.NewMemoryStore()
	x, stop := executing(t, store, ring(t, oldKey))
	var first []*command.Answer
	for _, id := range []string{"01", "02", "03"} {
		a, err := x.Submit(ctx, caller, envelope(id, "touch"))
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, a)
	}
	asked, err := x.Submit(ctx, caller, envelope("04", "drop"))
	if err != nil || asked.Token == "" {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	stop()

	both := ring(t, newKey+"\n"+oldKey)
	done, err := command.Reseal(ctx, store, both, time.Now)
	if err != nil || done.Seen != 4 || done.Resealed != 3 || done.UnderWay != 1 || len(done.Broken) != 0 {
		t.Fatalf("resealed %+v, %v", done, err)
	}
	// A command that was under way ends under both keys, which seals its record anew.
	x, stop = executing(t, store, both)
	if a, err := x.Confirm(ctx, caller, asked.CommandID, asked.Token, ""); err != nil || a.Status != command.Executed {
		t.Fatalf("confirmed %+v, %v", a, err)
	}
	stop()
	if done, err = command.Reseal(ctx, store, both, time.Now); err != nil || done.Seen != 4 || done.Resealed != 0 || done.UnderWay != 0 {
		t.Fatalf("resealed again %+v, %v", done, err)
	}

	x, _ = executing(t, store, ring(t, newKey))
	for i, id := range []string{"01", "02", "03"} {
		a, err := x.Submit(ctx, caller, envelope(id, "touch"))
		if err != nil || a.Decision != command.DuplicateReplayed || string(a.Outcome.Result) != string(first[i].Outcome.Result) || !a.UpdatedAt.Equal(first[i].UpdatedAt) {
			t.Errorf("repeat of %s: %+v, %v", id, a, err)
		}
	}
}

// Resealing does not make a tampered record genuine.
func TestResealLeavesBrokenRecordsBroken(t *testing.T) {
	ctx := context.Background()
	store := command.NewMemoryStore()
	x, stop := executing(t, store, ring(t, oldKey))
	a, err := x.Submit(ctx, caller, envelope("01", "touch"))
	if err != nil {
		t.Fatal(err)
	}
	stop()
	rec, err := store.Find(ctx, "ten_1", a.Key)
	if err != nil {
		t.Fatal(err)
	}
	forged := *rec
	forged.Actor = "key_2"
	_, err = store.Advance(ctx, time.Now(), []*command.Step{{Tenant: rec.Tenant, Key: rec.Key, Expect: rec.Version,
		Settle: func(command.Applied) (command.Change, error) { return command.Change{Record: &forged}, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	done, err := command.Reseal(ctx, store, ring(t, newKey+"\n"+oldKey), time.Now)
	if err != nil || done.Resealed != 0 || !slices.Equal(done.Broken, []string{a.CommandID}) {
		t.Errorf("resealed %+v, %v", done, err)
	}
}

// raced is a store in which another writer changes every record just before it is sealed anew.
type raced struct {
	*command.MemoryStore
	change func(tenant, key string)
}

func (r *raced) Advance(ctx context.Context, now time.Time, steps []*command.Step) ([]command.Result, error) {
	if r.change != nil {
		change := r.change
		r.change = nil
		change(steps[0].Tenant, steps[0].Key)
	}
	return r.MemoryStore.Advance(ctx, now, steps)
}

func TestResealGivesWayToChanges(t *testing.T) {
	ctx := context.Background()
	store := &raced{MemoryStore: command.NewMemoryStore()}
	old := ring(t, oldKey)
	x, stop := executing(t, store, old)
	if _, err := x.Submit(ctx, caller, envelope("01", "touch")); err != nil {
		t.Fatal(err)
	}
	stop()
	both := ring(t, newKey+"\n"+oldKey)
	store.change = func(string, string) {
		// Another process reseals first.
		if done, err := command.Reseal(ctx, store.MemoryStore, both, time.Now); err != nil || done.Resealed != 1 {
			t.Errorf("the other: %+v, %v", done, err)
		}
	}
	if done, err := command.Reseal(ctx, store, both, time.Now); err != nil || done.Resealed != 0 || len(done.Broken) != 0 {
		t.Errorf("resealed %+v, %v", done, err)
	}
}
