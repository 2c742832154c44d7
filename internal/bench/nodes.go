package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/internal/app"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// NodesReport compares several nodes on one database with one.
type NodesReport struct {
	Nodes       int     `json:"nodes"`
	Endpoints   int     `json:"endpoints"`
	OnePerS     float64 `json:"one_node_per_s"`
	PerS        float64 `json:"nodes_per_s"`
	Ratio       float64 `json:"ratio_one"`
	DBEachOne   float64 `json:"database_cpu_us_one_node"` // a delivery; 0 if the database runs elsewhere
	DBEach      float64 `json:"database_cpu_us_nodes"`
	CPUEachOne  float64 `json:"server_cpu_us_one_node"`
	CPUEach     float64 `json:"server_cpu_us_nodes"` // of all nodes together
	Rate        float64 `json:"rate"`                // of the latencies: half of nodes_per_s
	OwnHeld     float64 `json:"own_held"`
	OwnP50      float64 `json:"own_p50_ms"` // posted to the node that owns the endpoint's shard
	OwnP99      float64 `json:"own_p99_ms"`
	OtherHeld   float64 `json:"other_held"`
	OtherP50    float64 `json:"other_p50_ms"` // posted to another node
	OtherP99    float64 `json:"other_p99_ms"`
	OtherMax    float64 `json:"other_max_ms"`
	HeldSeconds float64 `json:"held_transaction_s,omitempty"` // a transaction was held open for so long
	HeldPerS    float64 `json:"held_transaction_per_s,omitempty"`
	HeldRatio   float64 `json:"held_transaction_ratio,omitempty"` // over nodes_per_s
}

func (r *NodesReport) print(t *table) {
	t.row("one node", "%.0f/s\t%.0f µs of server CPU a delivery, %.0f µs of the database", r.OnePerS, r.CPUEachOne, r.DBEachOne)
	t.row(fmt.Sprintf("%d nodes", r.Nodes), "%.0f/s\t%.2f of one node's; %.0f µs of server CPU, %.0f µs of the database", r.PerS, r.Ratio, r.CPUEach, r.DBEach)
	t.row(fmt.Sprintf("posted to the owner at %.0f/s", r.Rate), "p50 %.1f ms\tp99 %.1f ms; held %.0f/s", r.OwnP50, r.OwnP99, r.OwnHeld)
	t.row(fmt.Sprintf("posted to another node at %.0f/s", r.Rate), "p50 %.1f ms\tp99 %.1f ms, max %.1f ms; held %.0f/s", r.OtherP50, r.OtherP99, r.OtherMax, r.OtherHeld)
	if r.HeldSeconds > 0 {
		t.row(fmt.Sprintf("beside a transaction open for %.0f s", r.HeldSeconds), "%.0f/s\t%.2f of the rate before", r.HeldPerS, r.HeldRatio)
	}
}

// nodesEndpoints is the number of endpoints: enough that every node owns the shards of some.
const nodesEndpoints = 256

// cluster is a run of the scenario nodes.
type cluster struct {
	*bench
	data      string
	key       string
	endpoints []godwit.EndpointID
	sink      *sink
	servers   []*server
	report    *NodesReport
}

// nodes measures one node, and then several on the same database with the producers spread over them.
func (b *bench) nodes(ctx context.Context) (err error) {
	if storeName(b.o.Store) != "postgres" {
		return errors.New("bench: the scenario nodes needs --store postgres")
	}
	c := &cluster{bench: b, report: &NodesReport{Nodes: b.o.Nodes, Endpoints: nodesEndpoints}}
	b.report.Nodes = c.report
	if c.data, err = os.MkdirTemp("", "godwit-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.data)
	if c.sink, err = startSink(accepts); err != nil {
		return err
	}
	defer c.sink.close()
	if err := app.EnsureEvidenceKey(c.data, benchRing); err != nil {
		return err
	}
	b.o.Progress("making %d endpoints", nodesEndpoints)
	specs := make([]management.EndpointSpec, nodesEndpoints)
	for i := range specs {
		specs[i] = management.EndpointSpec{URL: c.sink.url(), Profile: b.o.Profile, Patterns: []string{variantType(0, i)}}
	}
	made, err := b.seed(ctx, c.data, benchRing, specs)
	if err != nil {
		return err
	}
	c.key, c.endpoints = made.key, made.endpoints
	defer func() {
		for _, srv := range c.servers {
			if err != nil {
				srv.kill()
				continue
			}
			err = srv.stop()
		}
	}()
	return c.run(ctx)
}

func (c *cluster) run(ctx context.Context) error {
	one, err := c.full(ctx, 1)
	if err != nil {
		return err
	}
	several, err := c.full(ctx, c.o.Nodes)
	if err != nil {
		return err
	}
	r := c.report
	r.OnePerS, r.CPUEachOne, r.DBEachOne = round(one.deliveriesPerS, 0), one.serverCPU, one.databaseCPU
	r.PerS, r.CPUEach, r.DBEach = round(several.deliveriesPerS, 0), several.serverCPU, several.databaseCPU
	r.Ratio = round(several.deliveriesPerS/one.deliveriesPerS, 3)
	rate := c.o.Rate
	if rate == 0 {
		rate = several.deliveriesPerS / 2
	}
	r.Rate = round(rate, 0)
	for _, other := range []bool{false, true} {
		m, err := c.atHalf(ctx, rate, other)
		if err != nil {
			return err
		}
		if other {
			r.OtherHeld, r.OtherP50, r.OtherP99, r.OtherMax = round(m.deliveriesPerS, 0), ms(m.p50), ms(m.p99), ms(m.max)
		} else {
			r.OwnHeld, r.OwnP50, r.OwnP99 = round(m.deliveriesPerS, 0), ms(m.p50), ms(m.p99)
		}
	}
	u, err := c.servers[0].usage()
	if err != nil {
		return err
	}
	c.bench.report.ServerPeakRSS = mb(u.peakRSS)
	if c.o.HeldTransaction == 0 {
		return nil
	}
	return c.held(ctx)
}

// clusterResult is a measurement with the CPU time of all parts.
type clusterResult struct {
	result
	serverCPU, databaseCPU float64 // µs a delivery
}

// full measures n nodes at full load; it starts those that are missing.
func (c *cluster) full(ctx context.Context, n int) (*clusterResult, error) {
	if err := c.grow(ctx, n); err != nil {
		return nil, err
	}
	warm := c.load(5 * time.Second)
	warm.events = max(20*c.o.Connections, 4*nodesEndpoints)
	if _, err := c.measure(ctx, warm, c.sink); err != nil {
		return nil, err
	}
	c.o.Progress("%d nodes at full load", n)
	return c.measured(ctx, c.load(c.share(25)))
}

// measured measures a load and the CPU time that it takes.
func (c *cluster) measured(ctx context.Context, l load) (*clusterResult, error) {
	servers, database, err := c.cpu(ctx)
	if err != nil {
		return nil, err
	}
	m := &clusterResult{}
	if m.result, err = c.measure(ctx, l, c.sink); err != nil {
		return nil, err
	}
	c.count(m.result)
	servers2, database2, err := c.cpu(ctx)
	m.serverCPU, m.databaseCPU = each(servers2-servers, m.arrived), each(database2-database, m.arrived)
	c.o.Progress("%.0f/s delivered, %.0f/s acknowledged", m.deliveriesPerS, m.acksPerS)
	return m, err
}

// load spreads the connections over the nodes, and the events over the endpoints.
func (c *cluster) load(length time.Duration) load {
	l := c.bench.load(c.servers[0].target(variantType(0, 0)), length)
	l.turns = nodesEndpoints
	l.addrs = make([]string, len(c.servers))
	for i, srv := range c.servers {
		l.addrs[i] = hostOf(srv.url)
	}
	return l
}

// atHalf measures the latency at a fixed rate. The events are posted to the owner of the endpoint's shard, or all to other nodes.
func (c *cluster) atHalf(ctx context.Context, rate float64, other bool) (result, error) {
	owners, err := c.owners(ctx)
	if err != nil {
		return result{}, err
	}
	l := c.load(c.share(20))
	l.rate, l.events, l.pick = rate, 0, make([][]int, len(c.servers))
	for node := range c.servers {
		for i, id := range c.endpoints {
			if own := owners[id.Shard()] == nodeName(node); own != other {
				l.pick[node] = append(l.pick[node], i)
			}
		}
		if len(l.pick[node]) == 0 {
			return result{}, fmt.Errorf("no endpoint for node %s (other: %t); shards are owned by %v", nodeName(node), other, owners)
		}
	}
	c.o.Progress("posting %.0f/s to %s", rate, map[bool]string{false: "owners", true: "other nodes"}[other])
	r, err := c.measure(ctx, l, c.sink)
	c.count(r)
	return r, err
}

func nodeName(i int) string { return "bench" + strconv.Itoa(i+1) }

// grow starts nodes until there are n and every one has its part of the shards.
func (c *cluster) grow(ctx context.Context, n int) error {
	for len(c.servers) < n {
		srv, err := c.restart(ctx, c.data, c.key, "GODWIT_NODE="+nodeName(len(c.servers)))
		if err != nil {
			return err
		}
		c.servers = append(c.servers, srv)
	}
	began := time.Now()
	for {
		owners, err := c.owners(ctx)
		if err != nil {
			return err
		}
		parts := map[string]int{}
		for _, owner := range owners {
			parts[owner]++
		}
		balanced := true
		for i := range c.servers {
			balanced = balanced && parts[nodeName(i)] >= godwit.Shards/n
		}
		if balanced {
			c.o.Progress("%d nodes share the shards after %s: %v", n, time.Since(began).Round(10*time.Millisecond), parts)
			return nil
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("the nodes did not share the shards within a minute: %v", parts)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// onDatabase runs f on a connection of its own.
func (c *cluster) onDatabase(ctx context.Context, f func(*pgx.Conn) error) (err error) {
	db, err := pgx.Connect(ctx, c.o.Store)
	if err != nil {
		return errors.New("connect to the database") // the driver's error may quote a password
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	return f(db)
}

// owners returns the node that owns each shard.
func (c *cluster) owners(ctx context.Context) (owners [godwit.Shards]string, err error) {
	err = c.onDatabase(ctx, func(db *pgx.Conn) error {
		rows, err := db.Query(ctx, "SELECT shard, owner FROM leases")
		if err != nil {
			return err
		}
		var shard int
		var owner string
		_, err = pgx.ForEachRow(rows, []any{&shard, &owner}, func() error {
			owners[shard], _, _ = strings.Cut(owner, " ") // name and instance
			return nil
		})
		return err
	})
	return owners, err
}

// cpu returns the CPU time of all nodes so far, and that of the database, which is 0 if it runs on another machine.
func (c *cluster) cpu(ctx context.Context) (servers, database time.Duration, err error) {
	for _, srv := range c.servers {
		u, err := srv.usage()
		if err != nil {
			return 0, 0, err
		}
		servers += u.cpu
	}
	err = c.onDatabase(ctx, func(db *pgx.Conn) error {
		var pid int
		if err := db.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		database = databaseCPU(pid)
		return nil
	})
	return servers, database, err
}

// held measures the nodes at full load at the end of a long transaction of another session, which keeps the database from removing
// old rows.
func (c *cluster) held(ctx context.Context) error {
	return c.onDatabase(ctx, func(db *pgx.Conn) error {
		tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id(), count(*) FROM leases"); err != nil {
			return err
		}
		began := time.Now()
		last := min(c.share(25), c.o.HeldTransaction)
		if fill := c.o.HeldTransaction - last; fill > 0 {
			c.o.Progress("a transaction is held open; full load for %s beside it", fill)
			if _, err := c.measured(ctx, c.load(fill)); err != nil {
				return err
			}
		}
		m, err := c.measured(ctx, c.load(last))
		if err != nil {
			return err
		}
		r := c.report
		r.HeldSeconds, r.HeldPerS = round(time.Since(began).Seconds(), 0), round(m.deliveriesPerS, 0)
		r.HeldRatio = round(m.deliveriesPerS/r.PerS, 3)
		return nil
	})
}
