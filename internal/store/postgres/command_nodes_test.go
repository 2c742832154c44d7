package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/postgrestest"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/trace"
)

// twoNodes opens one database twice, each with its own connections. The second one gets an isolation default that other
// programs may have set.
func twoNodes(t *testing.T) []*Store {
	url := postgrestest.URL(t)
	return []*Store{openURL(t, url), openURL(t, url+"&default_transaction_isolation=repeatable%20read")}
}

// Two hundred callers at two nodes reserve one key at once; one gets it, and all others see its record.
func TestOneOfManyReservesAtTwoNodes(t *testing.T) {
	trace.Covers(t, "IDS-STO-1")
	nodes := twoNodes(t)
	const many = 200
	var won, seen atomic.Int64
	ids := make([]atomic.Int64, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			r := reserved("t1", "key", fmt.Sprintf("cmd_%d", i))
			r.KeyVersion = i
			results, err := nodes[i%2].Advance(t.Context(), suiteTime, []*command.Step{reserve(r)})
			if err != nil {
				t.Error(err)
				return
			}
			if !results[0].Refused {
				won.Add(1)
			}
			ids[results[0].Stored.KeyVersion].Add(1)
			seen.Add(1)
		})
	}
	wg.Wait()
	r, err := nodes[0].Find(t.Context(), "t1", "key")
	if err != nil || r == nil || won.Load() != 1 || seen.Load() != many || ids[r.KeyVersion].Load() != many {
		t.Fatalf("%d won, %d have seen, the record is %+v, %v", won.Load(), seen.Load(), r, err)
	}
	chained(t, nodes[1], "t1", r.CommandID)
}

// Batches of two nodes name the same tenants, some of them new, in different orders; commits of deliveries append to the same
// chains. There is no deadlock, and no chain has a gap or a fork.
func TestNodesLockTenantsInOneOrder(t *testing.T) {
	nodes := twoNodes(t)
	const rounds, tenants, writers = 6, 10, 4
	names := make([]godwit.TenantID, rounds*tenants)
	for i := range names {
		names[i] = mintTenant(suiteTime)
	}
	want := map[string][]string{}
	for round := range rounds {
		// The second half of the tenants is new to all nodes. All start at once.
		list := names[max(0, round-1)*tenants : (round+1)*tenants]
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for w := range writers {
			id, list := fmt.Sprintf("cmd_%d_%d", round, w), slices.Clone(list)
			if w%2 == 1 {
				slices.Reverse(list)
			}
			for _, tenant := range list {
				want[tenant.String()] = append(want[tenant.String()], id)
			}
			wg.Go(func() {
				<-begin
				if err := appendTo(t.Context(), nodes[w%2], w, id, list); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		wg.Wait()
	}
	for tenant, ids := range want {
		chained(t, nodes[0], tenant, ids...)
	}
	heads, err := nodes[0].EvidenceHeads(t.Context(), "", len(names)+1)
	if err != nil || len(heads) != len(names) {
		t.Errorf("%d heads, %v", len(heads), err)
	}
}

// appendTo appends one entry to each chain: the last writers by a commit of deliveries, the others by steps.
func appendTo(ctx context.Context, s *Store, writer int, id string, tenants []godwit.TenantID) error {
	if writer < 2 {
		var steps []*command.Step
		for _, tenant := range tenants {
			steps = append(steps, reserve(reserved(tenant.String(), "key_"+id, id)))
		}
		results, err := s.Advance(ctx, suiteTime, steps)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		return err
	}
	b := &store.Batch{Now: suiteTime}
	for _, tenant := range tenants {
		b.Evidence = append(b.Evidence, store.NewEvidence{TenantID: tenant, Entry: told(evidence.Delivered, id)})
	}
	_, err := s.Commit(ctx, b)
	return err
}

// A transaction that waits for a tenant holds no lock of a later tenant, whatever the order of its input: neither while it
// creates heads nor while it locks them.
func TestWaitingHoldsNoLaterTenant(t *testing.T) {
	for name, c := range map[string]struct{ before, take string }{
		"heads are made":   {``, `INSERT INTO evidence_heads (tenant, seq, hash) VALUES ($1, 0, '')`},
		"heads are locked": {`INSERT INTO evidence_heads (tenant, seq, hash) VALUES ('a', 0, ''), ('b', 0, ''), ('c', 0, '')`, `SELECT FROM evidence_heads WHERE tenant = $1 FOR UPDATE`},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, Options{})
			if _, err := s.pool.Exec(t.Context(), c.before); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), c.take, "b"); err != nil {
					return err
				}
				go func() {
					_, err := s.Advance(t.Context(), suiteTime, []*command.Step{observe("c", "cmd_1"), observe("b", "cmd_1"), observe("a", "cmd_1")})
					done <- err
				}()
				awaitLock(t, s, `$1 = ANY (pg_blocking_pids(pid))`, tx.Conn().PgConn().PID())
				_, err := tx.Exec(t.Context(), c.take, "c") // a deadlock, if it were held
				return err
			})
			if err := errors.Join(err, <-done); err != nil {
				t.Fatal(err)
			}
			for _, tenant := range []string{"a", "b", "c"} {
				chained(t, s, tenant, "cmd_1")
			}
		})
	}
}

// awaitLock waits until a connection waits for a lock.
func awaitLock(t *testing.T, s *Store, which string, pid uint32) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for waits := false; !waits; {
		err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND `+which+`)`, pid).Scan(&waits)
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// Another program has locked rows in another order. The server aborts one of the two transactions; its caller may repeat it.
func TestDeadlockIsUnavailable(t *testing.T) {
	url := postgrestest.URL(t)
	s := openURL(t, url+"&deadlock_timeout=10ms")
	l := newLoad(t, s)
	e := &godwit.Endpoint{ID: l.endpoint, TenantID: l.tenant, URL: "https://receiver.example/", Status: godwit.EndpointActive, Version: 1}
	if err := s.CreateEndpoint(t.Context(), e, nil); err != nil {
		t.Fatal(err)
	}
	tenant := l.tenant.String()
	applied(t, s, observe(tenant, "cmd_0"))

	other, err := pgx.Connect(t.Context(), url+"&deadlock_timeout=1min")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	for _, sql := range []string{`BEGIN`, `SELECT FROM endpoints FOR UPDATE`} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	waited := make(chan error, 1)
	var once sync.Once
	r := reserved(tenant, "key", "cmd_1")
	first := reserve(r)
	settle := first.Settle
	first.Settle = func(a command.Applied) (command.Change, error) { // this step holds the head; the other one starts to wait for it
		once.Do(func() {
			go func() {
				_, err := other.Exec(context.Background(), `SELECT FROM evidence_heads FOR UPDATE`)
				_, rolled := other.Exec(context.Background(), `ROLLBACK`)
				waited <- errors.Join(err, rolled)
			}()
			awaitLock(t, s, `pid = $1`, other.PgConn().PID())
		})
		return settle(a)
	}
	e.URL, e.Version = "https://moved.example/", 2
	second := observe(tenant, "cmd_2")
	second.Effects = []command.Effect{store.ChangeEndpoint{Endpoint: e}}
	steps := []*command.Step{first, second}
	if _, err := s.Advance(t.Context(), suiteTime, steps); !errors.Is(err, store.ErrUnavailable) || sqlState(err) != "40P01" {
		t.Fatalf("advance in a circle gave %v", err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	chained(t, s, tenant, "cmd_0")
	applied(t, s, steps...)
	chained(t, s, tenant, "cmd_0", "cmd_1", "cmd_2")
	if got, err := s.Endpoint(t.Context(), l.tenant, l.endpoint); err != nil || got.Version != 2 {
		t.Errorf("endpoint is %+v, %v", got, err)
	}
}
