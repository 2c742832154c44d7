package postgres

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/command"
	"github.com/godwit-hq/godwit/evidence"
	"github.com/godwit-hq/godwit/internal/store"
)

// commanded fills a store with records of all kinds, and with evidence of four tenants.
func commanded(t *testing.T, s *Store) {
	t.Helper()
	item, err := evidence.Link(evidence.Head{}, "t1", told(evidence.Observation, "cmd_1"))
	if err != nil {
		t.Fatal(err)
	}
	for sql, args := range map[string][]any{
		`INSERT INTO command_records (tenant, idempotency_key, command_id, status, substatus, created_at, updated_at, ttl_expires_at,
				lease_until, version, fingerprint, document)
			SELECT 't' || i % 4, 'key_' || i, 'cmd_' || i, CASE WHEN i % 50 < 2 THEN 'in_progress' ELSE 'executed' END,
				CASE WHEN i % 50 = 0 THEN 'awaiting_confirmation' ELSE '' END, $1, $1, $1::timestamptz + i * interval '1 second',
				$1::timestamptz + i * interval '1 second', 1, '', '{}'
			FROM generate_series(1, 12000) AS i`: {suiteTime},
		`INSERT INTO evidence_items (tenant, seq, key, command_id, submitted_id, target, hash, line)
			SELECT 't' || i % 4, i, 'key_' || i / 3, 'cmd_' || i / 3, CASE WHEN i % 10 = 0 THEN 'cmd_again_' || i END, 'sub_' || i / 3, $1, $2
			FROM generate_series(1, 12000) AS i`: {item.Hash, evidence.Line(&item)},
		`INSERT INTO evidence_heads SELECT 't' || i, 7500, $1 FROM generate_series(0, 2000) AS i`: {item.Hash},
	} {
		if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), `ANALYZE command_records, evidence_items, evidence_heads`); err != nil {
		t.Fatal(err)
	}
}

// Queries about commands cost in proportion to their results: they use an index, and never sort or scan a table.
func TestCommandsAreFoundByIndex(t *testing.T) {
	heard := &listener{}
	s := openAt(t, Options{tracer: heard})
	commanded(t, s)
	ctx := t.Context()
	for name, c := range map[string]struct {
		ask     func() error
		indexes []string
		rows    float64 // largest number of rows that any node of the plan handles
	}{
		"lost": {func() error { _, err := s.Lost(ctx, suiteTime.Add(time.Hour), 20); return err }, []string{"command_records_lost"}, 20},
		"sweep": {func() error { _, err := s.SweepRecords(ctx, suiteTime.Add(time.Hour), 20); return err },
			[]string{"command_records_free"}, 20},
		"page": {func() error {
			return asked(s.Evidence(ctx, command.EvidenceQuery{Tenant: "t1", After: 9000, Limit: 20}))
		},
			[]string{"evidence_items_pkey"}, 20},
		"key": {func() error {
			return asked(s.Evidence(ctx, command.EvidenceQuery{Tenant: "t1", Key: "key_777", Limit: 20}))
		},
			[]string{"evidence_items_by_key"}, 3},
		"command": {func() error {
			return asked(s.Evidence(ctx, command.EvidenceQuery{Tenant: "t1", CommandID: "cmd_777", Limit: 20}))
		},
			[]string{"evidence_items_by_command", "evidence_items_by_submitted"}, 3},
		"target": {func() error {
			return asked(s.Evidence(ctx, command.EvidenceQuery{Tenant: "t1", Target: "sub_777", Limit: 20}))
		},
			[]string{"evidence_items_by_target"}, 3},
		"head":  {func() error { _, err := s.EvidenceHead(ctx, "t1"); return err }, []string{"evidence_heads_pkey"}, 1},
		"heads": {func() error { return asked(s.EvidenceHeads(ctx, "t2", 20)) }, []string{"evidence_heads_pkey"}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			heard.clear()
			if err := c.ask(); err != nil {
				t.Fatal(err)
			}
			for _, q := range heard.clear() {
				tx, err := s.pool.Begin(ctx)
				if err != nil {
					t.Fatal(err)
				}
				plan := explain(t, tx, `EXPLAIN (ANALYZE, FORMAT JSON) `+q.sql, q.args...)
				tx.Rollback(ctx)
				used := plan.indexes()
				slices.Sort(used)
				if found := plan.scans(nil); len(found) > 0 || !slices.Equal(used, c.indexes) || plan.mostRows() > c.rows {
					t.Errorf("%s: scans %v, uses %v, handles %v rows", q.sql, found, used, plan.mostRows())
				}
			}
		})
	}
}

// Hot statements are planned once, perhaps while the tables are empty and any index looks right.
func TestHotCommandStatementsUseTheirIndex(t *testing.T) {
	s := openAt(t, Options{HotConnections: 1})
	check := func(when string) {
		conn, err := s.hot.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		for st, c := range map[*statement]struct{ values, index, column string }{
			findCommands:  {`('{t1}', '{key_5}')`, "command_records_pkey", "idempotency_key"},
			findCommandID: {`('t1', 'cmd_5')`, "command_records_by_command", "command_id"},
			lockCommands:  {`('{t1,t2}', '{key_5,key_6}')`, "command_records_pkey", "idempotency_key"},
			lockHeads:     {`('{t1,t2}')`, "evidence_heads_pkey", "tenant"},
			moveHeads:     {`('{t1,t2}', '{7501,7501}', '{a,b}', '{now,now}')`, "evidence_heads_pkey", "tenant"},
		} {
			plan := explain(t, conn, `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE `+st.name+c.values, pgx.QueryExecModeSimpleProtocol)
			if used := plan.indexes(); !slices.Equal(used, []string{c.index}) || !plan.looksUp(c.column) || plan.mostRows() > 2 {
				t.Errorf("%s, %s: uses %v and handles %v rows", st.name, when, used, plan.mostRows())
			}
		}
	}
	check("in an empty database")
	commanded(t, s)
	check("in a full one, planned before")
	s.hot.Reset()
	check("in a full one")
}

// looksUp reports whether the plan searches an index by the column.
func (n *planNode) looksUp(column string) bool {
	return strings.Contains(n.Cond, column) || slices.ContainsFunc(n.Plans, func(p planNode) bool { return p.looksUp(column) })
}

func asked[T any](_ []T, err error) error { return err }

// Effects get the plans of the cold pool on a hot connection, which plans differently before and after.
func TestEffectsArePlannedForTheirValues(t *testing.T) {
	s := openAt(t, Options{HotConnections: 1})
	conn, err := s.hot.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	const hot, cold = "force_generic_plan off off off off", "force_custom_plan on on on on"
	look := func(when, want string) {
		t.Helper()
		r, err := conn.Query(t.Context(), `SELECT concat_ws(' ', current_setting('plan_cache_mode'), current_setting('enable_seqscan'),
			current_setting('enable_hashjoin'), current_setting('enable_mergejoin'), current_setting('enable_bitmapscan'))`)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectExactlyOneRow(r, pgx.RowTo[string]); err != nil || got != want {
			t.Errorf("%s: %s, %v", when, got, err)
		}
	}
	tx := &transaction{conn: conn.Conn()}
	look("before", hot)
	if err := tx.run(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	effect := store.PurgeDead{Filter: store.DeadLetterFilter{}}
	for range 2 {
		if err := tx.Savepoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, refusal, err := tx.Apply(t.Context(), []command.Effect{effect}); refusal != nil || err != nil {
			t.Fatal(refusal, err)
		}
		look("with effects", cold)
	}
	if err := tx.RollBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("with effects that were undone", cold)
	abandon(t.Context(), tx.conn)
	look("after", hot)
}
