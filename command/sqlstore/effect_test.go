package sqlstore_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/command/sqlstore"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/trace"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// step changes no record: it has effects, and evidence of them.
func step(effects ...command.Effect) *command.Step {
	return &command.Step{Tenant: "t", Effects: effects, Settle: func(a command.Applied) (command.Change, error) {
		return command.Change{Evidence: []evidence.Entry{{Type: evidence.Observation, At: noon}}}, a.Err
	}}
}

func each(t *testing.T, test func(t *testing.T, b backend)) {
	for name, b := range backends {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

func TestFatalErrorIsTheTransactions(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		o := b.open(t, b.place(t), "")
		cause := errors.New("the replica is behind")
		fatal := sqlstore.Effect(func(context.Context, *sql.Tx) (int, error) {
			return 0, fmt.Errorf("read stock: %w", sqlstore.Fatal(cause))
		})
		results, err := o.Advance(t.Context(), noon, []*command.Step{step(mark("left")), step(mark("right"), fatal)})
		if !errors.Is(err, cause) || results != nil {
			t.Fatalf("advance gave %+v, %v", results, err)
		}
		if n := o.marks(t, "%"); n != 0 {
			t.Errorf("%d marks of a transaction that failed", n)
		}
		// A panic, and a statement that the database refuses, fail only the step.
		panics := sqlstore.Effect(func(context.Context, *sql.Tx) (int, error) { panic("no such thing") })
		wrong := sqlstore.Exec("INSERT INTO nowhere VALUES (1)")
		results, err = o.Advance(t.Context(), noon, []*command.Step{
			step(mark("a"), panics), step(mark("b"), wrong), step(mark("c"), mark("c")), step(mark("d")), step(sqlstore.Exec("DELETE FROM marks WHERE name = 'none'")),
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if (r.Err == nil) != (i == 3) {
				t.Errorf("step %d: %+v", i, r)
			}
		}
		if !errors.Is(results[4].Err, sql.ErrNoRows) {
			t.Errorf("a statement that changes nothing: %v", results[4].Err)
		}
		if head, err := o.EvidenceHead(t.Context(), "t"); err != nil || head.Seq != 1 || o.marks(t, "d") != 1 || o.marks(t, "%") != 1 {
			t.Errorf("head %+v, %v, marks %d", head, err, o.marks(t, "%"))
		}
	})
}

// TestDeferredConstraintRefusesTheCommand: a refusal at the commit is a failure of the effect, not a temporary failure of
// the store.
func TestDeferredConstraintRefusesTheCommand(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		o := b.open(t, b.place(t), "")
		_, err := o.db.ExecContext(t.Context(), "CREATE TABLE labels (mark varchar(80) REFERENCES marks (name) DEFERRABLE INITIALLY DEFERRED)")
		if err != nil {
			t.Fatal(err)
		}
		orphan := sqlstore.Exec("INSERT INTO labels (mark) VALUES ('nowhere')")
		x := execute(t, o, command.HandlerFunc(func(_ context.Context, c *command.Call) (*command.Outcome, error) {
			out := &command.Outcome{Summary: "Paid.", Effects: []command.Effect{mark(c.Intent.Target)}}
			if c.Intent.Target == "O-1" {
				out.Effects = append(out.Effects, orphan)
				out.Refused = func(error) error { return command.Reject("no_such_mark", "the label has no mark") }
			}
			return out, nil
		}))
		var wg sync.WaitGroup
		for n := range 4 { // steps in the same transaction are not affected
			wg.Go(func() {
				want := command.Executed
				if n == 1 {
					want = command.Rejected
				}
				if a, err := x.Submit(t.Context(), shop, order(n, n)); err != nil || a.Status != want {
					t.Errorf("order %d: %+v, %v", n, a, err)
				}
			})
		}
		wg.Wait()
		if o.marks(t, "O-1") != 0 || o.marks(t, "O-%") != 3 {
			t.Errorf("%d marks, %d of the one refused", o.marks(t, "O-%"), o.marks(t, "O-1"))
		}
	})
}

// TestDeadlockIsTakenAnew: the victim of a deadlock is retried, not rejected.
func TestDeadlockIsTakenAnew(t *testing.T) {
	b := backends["PostgreSQL"]
	o := b.open(t, b.place(t), "")
	for _, name := range []string{"one", "two"} {
		if r, err := o.Advance(t.Context(), noon, []*command.Step{step(mark(name))}); err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
	}
	touch := func(ctx context.Context, tx *sql.Tx, name string) (sql.Result, error) {
		return tx.ExecContext(ctx, "UPDATE marks SET name = name WHERE name = '"+name+"'")
	}
	other, err := o.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.ExecContext(t.Context(), "SET LOCAL deadlock_timeout = '60s'"); err != nil { // makes our step the victim
		t.Fatal(err)
	}
	if _, err := touch(t.Context(), other, "two"); err != nil {
		t.Fatal(err)
	}
	circle := sync.OnceValue(func() <-chan error {
		ended := make(chan error, 1)
		go func() { _, err := touch(t.Context(), other, "one"); ended <- err }()
		return ended
	})
	cross := sqlstore.Effect(func(ctx context.Context, tx *sql.Tx) (sql.Result, error) {
		if _, err := tx.ExecContext(ctx, "SET LOCAL deadlock_timeout = '10ms'"); err != nil {
			return nil, err
		}
		if _, err := touch(ctx, tx, "one"); err != nil {
			return nil, err
		}
		circle()
		return touch(ctx, tx, "two")
	})
	_, err = o.Advance(t.Context(), noon, []*command.Step{step(cross)})
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || state.SQLState() != "40P01" {
		t.Fatalf("advance ended with %v, not with a deadlock", err)
	}
	if err := <-circle(); err != nil {
		t.Fatal(err)
	}
}

func TestMigrate(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		place := b.place(t)
		o := b.open(t, place, "first_")
		var wg sync.WaitGroup
		for range 4 { // several processes start at once
			wg.Go(func() {
				db, err := sql.Open(b.driver, place)
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				s, err := sqlstore.New(db, sqlstore.Options{Dialect: b.dialect, Prefix: "second_"})
				if err == nil {
					err = s.Migrate(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := o.db.ExecContext(t.Context(), "UPDATE first_command_schema SET version = 99"); err != nil {
			t.Fatal(err)
		}
		if err := o.Migrate(t.Context()); err == nil {
			t.Error("tables of a later version were taken")
		}
	})
	for name, o := range map[string]sqlstore.Options{
		"no dialect": {}, "another": {Dialect: "oracle"}, "a prefix that is none": {Dialect: sqlstore.SQLite, Prefix: "x; DROP TABLE y"},
	} {
		if _, err := sqlstore.New(new(sql.DB), o); err == nil {
			t.Errorf("%s: a store", name)
		}
	}
}

// A REPLACE deletes the existing row without firing the trigger that forbids it.
func TestEvidenceIsNotReplaced(t *testing.T) {
	b := backends["SQLite"]
	o := b.open(t, b.place(t), "")
	if _, err := o.Advance(t.Context(), noon, []*command.Step{step()}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"REPLACE INTO evidence_items VALUES ('t', 1, '', '', '', '', x'00')", "DELETE FROM evidence_heads",
	} {
		if _, err := o.db.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("the database does this: %s", statement)
		}
	}
}

// paying counts how often orders are paid, in a table of the application.
func paying(effects *atomic.Int64) command.Handler {
	return command.HandlerFunc(func(_ context.Context, c *command.Call) (*command.Outcome, error) {
		effects.Add(1)
		return &command.Outcome{Summary: "Paid.", Effects: []command.Effect{mark(c.Intent.Target + "/" + c.CommandID)}}, nil
	})
}

// TestTwoProcesses runs two executors with a pool of connections each on one database. Every command takes effect once in
// a table of the application.
func TestTwoProcesses(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		trace.Covers(t, "IDS-STO-1", "IDS-DLV-5", "IDS-RPL-7")
		place := b.place(t)
		const orders, each = 12, 8
		var (
			runs      atomic.Int64
			executors [2]*command.Executor
			stores    [2]*opened
		)
		for i := range executors {
			stores[i] = b.open(t, place, "shop_")
			executors[i] = execute(t, stores[i], paying(&runs))
		}
		var wg sync.WaitGroup
		for n := range orders * each {
			wg.Go(func() {
				a, err := executors[n%2].Submit(t.Context(), shop, order(n, n%orders))
				if err != nil || a.Status == command.Failed {
					t.Errorf("submission %d: %+v, %v", n, a, err)
				}
			})
		}
		wg.Wait()
		for n := range orders {
			for _, x := range executors { // either executor may have run it; it has ended or is under way
				for a := (*command.Answer)(nil); a == nil || a.Outcome == nil; {
					var err error
					if a, err = x.Submit(t.Context(), shop, order(1000+n, n)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if found := stores[0].marks(t, fmt.Sprintf("O-%d/%%", n)); found != 1 {
				t.Errorf("order %d was paid %d times", n, found)
			}
		}
		if runs.Load() != orders {
			t.Errorf("the handler ran %d times for %d orders", runs.Load(), orders)
		}
	})
}

var shop = command.Caller{Tenant: "shop", Actor: "web"}

func order(submission, n int) *command.Envelope {
	return &command.Envelope{CommandID: fmt.Sprintf("cmd_0190a1b2-0000-7000-8000-%012d", submission), TenantID: "shop", ActorID: "web", IssuedAt: noon,
		Intent: command.Intent{Entity: "order", Action: "pay", Target: fmt.Sprintf("O-%d", n)}, Args: json.RawMessage(`{}`)}
}

func execute(t *testing.T, s command.Store, h command.Handler) *command.Executor {
	t.Helper()
	reg := command.NewRegistry()
	if err := reg.Register(command.Declaration{Entity: "order", Action: "pay", Description: "Pays an order."}, h); err != nil {
		t.Fatal(err)
	}
	sealer, err := command.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	x, err := command.New(command.Config{Store: s, Registry: reg, Sealer: sealer, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return noon },
		DuplicatesPerKey: -1, DuplicatesPerActor: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); x.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return x
}
