package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
)

// small lists the tables that may be scanned: they do not grow with the traffic.
var small = map[string]bool{"leases": true, "kept_events": true}

// crowd fills a store: most deliveries finished, a fifth waiting for one endpoint.
func crowd(t *testing.T, s *Store, events int) *load {
	t.Helper()
	l := newLoad(t, s)
	l.body = []byte(`{}`)
	const size = 1000
	for i := range events / size {
		b := l.accepts(size, i%10 == 0)
		if i%5 == 0 {
			for j := range b.Accepts {
				b.Accepts[j].Events[0].Deliveries[0].ClaimEpoch = 0
			}
			l.commit(t, b)
			continue
		}
		l.commit(t, b, l.results(b))
	}
	if _, err := s.pool.Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	return l
}

// planNode is a node of a plan as EXPLAIN prints it.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Cond     string     `json:"Index Cond"`
	Rows     float64    `json:"Actual Rows"`
	Removed  float64    `json:"Rows Removed by Filter"`
	Plans    []planNode `json:"Plans"`
}

// scans lists the tables that a plan scans, except those in ignore.
func (n *planNode) scans(ignore map[string]bool) []string {
	var found []string
	if strings.Contains(n.Type, "Seq Scan") && !ignore[n.Relation] {
		found = append(found, n.Type+" on "+n.Relation)
	}
	for i := range n.Plans {
		found = append(found, n.Plans[i].scans(ignore)...)
	}
	return found
}

// indexes lists the indexes that a plan uses.
func (n *planNode) indexes() []string {
	var found []string
	if n.Index != "" {
		found = append(found, n.Index)
	}
	for i := range n.Plans {
		found = append(found, n.Plans[i].indexes()...)
	}
	return found
}

// tiny lists the tables that are nearly empty.
func tiny(t *testing.T, s *Store) map[string]bool {
	t.Helper()
	r, err := s.pool.Query(t.Context(), `SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples < 100`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(r, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	empty := map[string]bool{}
	for _, name := range names {
		empty[name] = true
	}
	return empty
}

func explain(t *testing.T, q querier, sql string, args ...any) *planNode {
	t.Helper()
	r, err := q.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := pgx.CollectExactlyOneRow(r, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return &plans[0].Plan
}

// Plans are made once per connection: while the tables are empty, and later.
func TestHotStatementsNeverScan(t *testing.T) {
	s := openAt(t, Options{HotConnections: 2})
	check := func(when string) {
		conn, err := s.hot.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		d := conn.Conn().PgConn().CustomData()[connStateKey].(*connState)
		for st, description := range d.described {
			sql := `EXPLAIN (FORMAT JSON) EXECUTE ` + st.name
			if n := len(description.ParamOIDs); n > 0 {
				sql += `(` + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + `)`
			}
			plan := explain(t, conn, sql, pgx.QueryExecModeSimpleProtocol)
			if found := plan.scans(small); len(found) > 0 {
				t.Errorf("%s, %s: %v", st.name, when, found)
			}
		}
	}
	check("in an empty database")
	crowd(t, s, 100_000)
	s.hot.Reset()
	check("in a full one")
}

// Queries of users are planned for each query's values. None may scan a table unless it is nearly empty.
func TestListsNeverScan(t *testing.T) {
	heard := &listener{}
	s := openAt(t, Options{tracer: heard})
	l := crowd(t, s, 100_000)
	ctx := t.Context()
	ds, err := s.ListDeliveries(ctx, store.DeliveryFilter{TenantID: l.tenant}, store.Page{Limit: 50})
	if err != nil || len(ds) != 50 {
		t.Fatalf("%d deliveries, %v", len(ds), err)
	}
	d := ds[40]
	page := store.Page{After: d.ID, Limit: 50}
	hour := d.CreatedAt.Add(-time.Hour)
	heard.clear()
	for _, f := range []store.DeliveryFilter{
		{}, {EventID: d.EventID}, {EndpointID: l.endpoint}, {Status: godwit.DeliveryAccepted},
		{Status: godwit.DeliveryTerminal}, {Status: godwit.DeliveryPending}, {Since: hour},
		{EndpointID: l.endpoint, Status: godwit.DeliveryCancelled, Since: hour}, {EventType: "order.paid"}, {Tried: new(bool)},
	} {
		f.TenantID = l.tenant
		must(t)(s.ListDeliveries(ctx, f, page))
	}
	for _, f := range []store.EventFilter{{}, {Type: "order.paid"}, {Type: "order.*"}, {Key: "none"}, {Since: hour}} {
		f.TenantID = l.tenant
		must(t)(s.ListEvents(ctx, f, page))
	}
	for _, f := range []store.AttemptFilter{
		{}, {Since: hour}, {Until: hour}, {Outcomes: []godwit.Outcome{godwit.Transient, godwit.Terminal}}, {Outcomes: []godwit.Outcome{godwit.Accepted}},
	} {
		f.TenantID, f.EndpointID = l.tenant, l.endpoint
		must(t)(s.ListAttempts(ctx, f, 50))
	}
	for _, r := range []store.EventRange{{After: d.EventID}, {Patterns: []string{"order.*", "none"}}, {Since: hour}} {
		r.TenantID, r.Limit, r.MaxBytes = l.tenant, 50, 1<<20
		must(t)(s.EventsAfter(ctx, r))
	}
	must(t)(s.Event(ctx, l.tenant, d.EventID))
	must(t)(s.Delivery(ctx, l.tenant, d.ID))
	must(t)(s.Attempts(ctx, l.tenant, d.ID))
	must(t)(s.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: l.tenant}, page))
	must(t)(s.ListDeadLetters(ctx, store.DeadLetterFilter{TenantID: l.tenant, Replayed: true}, page))
	must(t)(s.EndpointByCode(ctx, l.tenant, "X2M8KD"))
	must(t)(s.Recorded(ctx, [32]byte{1}, d.CreatedAt))
	must(t)(s.Requeue(ctx, store.Requeue{TenantID: l.tenant, Deliveries: []godwit.DeliveryID{d.ID}, Now: d.CreatedAt}))
	queries := heard.clear()
	empty := tiny(t, s)
	for _, q := range queries {
		if strings.HasPrefix(q.sql, "begin") || strings.HasPrefix(q.sql, "commit") {
			continue
		}
		plan := explain(t, s.pool, `EXPLAIN (FORMAT JSON) `+q.sql, q.args...)
		if found := plan.scans(empty); len(found) > 0 {
			t.Errorf("%s: %v", q.sql, found)
		}
	}
}

func must(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil && !strings.Contains(err.Error(), "not found") {
			t.Error(err)
		}
	}
}

// The cost of a claim depends on its limit, not on the number of waiting deliveries.
func TestClaimCostsItsLimit(t *testing.T) {
	s := openAt(t, Options{HotConnections: 1})
	l := crowd(t, s, 100_000)
	conn, err := s.hot.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	other := mintEndpoint(time.Now())
	plan := explain(t, conn, fmt.Sprintf(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE %s('{%d, %d}', '{%x, %x}', '{%d, 1}', ARRAY[now(), now()], '{50, 20}', '{1000000, 1000000}')`,
		claimDue.name, l.endpoint.Shard(), other.Shard(), [16]byte(l.endpoint), [16]byte(other), l.epoch), pgx.QueryExecModeSimpleProtocol)
	if plan.Rows != 50 {
		t.Errorf("claimed %v, want 50", plan.Rows)
	}
	if most := plan.mostRows(); most > 50 {
		t.Errorf("a step of a claim of 50 handled %v rows", most)
	}
	plan = explain(t, conn, fmt.Sprintf(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE %s('{%d}')`, endpointsDue.name, l.endpoint.Shard()),
		pgx.QueryExecModeSimpleProtocol)
	if most := plan.mostRows(); most > 2 {
		t.Errorf("a step in listing one endpoint handled %v rows", most)
	}
}

func (n *planNode) mostRows() float64 {
	most := n.Rows + n.Removed
	for i := range n.Plans {
		most = max(most, n.Plans[i].mostRows())
	}
	return most
}

// listener records queries with their values.
type listener struct {
	mu      sync.Mutex
	queries []heardQuery
}

type heardQuery struct {
	sql  string
	args []any
}

func (l *listener) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries = append(l.queries, heardQuery{d.SQL, d.Args})
	return ctx
}

func (*listener) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *listener) clear() []heardQuery {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.queries
	l.queries = nil
	return heard
}
