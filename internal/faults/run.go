//go:build unix

package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-hq/godwit/evidence"
)

// Options of a run.
type Options struct {
	Seed  uint64
	Nodes int
	// Nemeses to use, by name. Defaults to all.
	Nemeses []string
	// Faults to inject. Defaults to each nemesis once.
	Faults int
	// Duration for which to go on, in whole faults.
	Duration time.Duration
	// Lease is how long a node may be silent.
	Lease time.Duration
	// Balanced sends all requests through the balancer. Otherwise half of the producers use it.
	Balanced bool
	// Logs is an existing folder in which to leave the logs of nodes and PostgreSQL servers. Defaults to none.
	Logs string
}

// A Run is a cluster, its workload and its nemeses.
type Run struct {
	Cluster   *Cluster
	History   *History
	receivers *Receivers
	work      *Workload
	random    *rand.Rand
	lease     time.Duration
	joined    int
	skipped   []string // nemeses that this machine does not allow
	watching  sync.WaitGroup
}

var errNotHere = errors.New("not possible on this machine")

// Execute runs a cluster under faults, waits until all deliveries have ended, and reports what the checkers say. Violations fail the test.
func Execute(t testing.TB, o Options) *Report {
	t.Helper()
	t = withVerdict(t, o.Seed)
	t.Logf("seed %d", o.Seed)
	x := &Run{Cluster: StartCluster(t, o), History: NewHistory(), lease: o.Lease, random: rand.New(rand.NewPCG(o.Seed, o.Seed))}
	x.receivers = StartReceivers(t, x.History, x.Cluster.all)
	x.work = StartWorkload(t, x.History, x.Cluster, x.receivers, o)
	stop := make(chan struct{})
	x.watch(stop)
	x.strike(t, o)
	x.work.Await(some)
	x.work.Stop()
	x.settle(t)
	close(stop)
	x.watching.Wait()
	x.receivers.Close() // a request that its node gave up may still be handled
	return x.report(t, o)
}

// strike injects the faults, with some work between them.
func (x *Run) strike(t testing.TB, o Options) {
	t.Helper()
	s := &schedule{random: x.random}
	for _, n := range Nemeses {
		if len(o.Nemeses) == 0 || slices.Contains(o.Nemeses, n.Name) {
			s.all = append(s.all, n)
		}
	}
	count := o.Faults
	if count == 0 && o.Duration == 0 {
		count = len(s.all)
	}
	for i := 0; i < count || x.History.Now() < o.Duration; i++ {
		x.work.Await(some / 3)
		n, victim := s.next(), x.Cluster.Nodes[x.random.IntN(len(x.Cluster.Nodes))]
		f := Fault{Kind: n.Name, Node: victim.Name, Harm: n.Harm}
		if n.Whole || !x.others() {
			f.Node = ""
		}
		t.Logf("%s: %s %s", x.History.Now().Round(time.Millisecond), f.Kind, f.Node)
		end := x.History.open(f)
		err := n.Strike(x, victim)
		x.Cluster.awaitAll()
		x.work.AwaitNodes()
		end()
		switch {
		case errors.Is(err, errNotHere):
			x.skipped = append(x.skipped, fmt.Sprintf("%s: %v", n.Name, err))
		case err != nil:
			t.Fatalf("%s: %v", n.Name, err)
		}
	}
}

// settle waits until all deliveries and commands have ended.
func (x *Run) settle(t testing.TB) {
	t.Helper()
	left, progress := -1, time.Now()
	await(t, "the last deliveries", func() bool {
		var pending, commands int
		if err := x.Cluster.Database.Query(`SELECT (SELECT count(*) FROM pending_deliveries), (SELECT count(*) FROM command_records WHERE status = 'in_progress')`,
			&pending, &commands); err != nil {
			t.Fatal(err)
		}
		if now := pending + commands; now != left {
			left, progress = now, time.Now()
		}
		if time.Since(progress) > patience/2 {
			t.Fatalf("%d deliveries and %d commands do not end:\n%s", pending, commands, x.stuck())
		}
		return left == 0
	})
}

// stuck describes pending deliveries by who claims them.
func (x *Run) stuck() (text string) {
	err := x.Cluster.Database.Query(`SELECT coalesce(string_agg(line, E'\n'), '') FROM (
		SELECT format('%s deliveries of shard %s, due %s, claimed under epoch %s; the lease has epoch %s, owner %s',
			count(*), p.shard, min(due_at), claim_epoch, l.epoch, l.owner) AS line
		FROM pending_deliveries AS p JOIN leases AS l USING (shard) GROUP BY p.shard, claim_epoch, l.epoch, l.owner) AS lines`, &text)
	if err != nil {
		return err.Error()
	}
	return text
}

// stored checks what only the database can tell: an event for each key, an effect for each command, a sound chain of evidence.
func (x *Run) stored() (violations []string) {
	for what, query := range map[string]string{
		"events that share their key": `SELECT coalesce(string_agg(key, ' '), '') FROM (
			SELECT key FROM events WHERE type LIKE 'faults.%' GROUP BY key HAVING count(*) > 1) AS twice`,
		"commands with several effects": `SELECT coalesce(string_agg(n, ' '), '') FROM (
			SELECT convert_from(body, 'UTF8')::json->>'n' AS n FROM events WHERE type = 'ids.probe' GROUP BY 1 HAVING count(*) > 1) AS twice`,
		"dead letters": `SELECT coalesce(string_agg(reason, ' '), '') FROM dead_letters`,
		"claims of an epoch that is over": `SELECT coalesce(string_agg(DISTINCT p.shard::text, ' '), '') FROM pending_deliveries AS p
			JOIN leases AS l USING (shard) WHERE claim_epoch <> 0 AND claim_epoch <> l.epoch`,
	} {
		var found string
		if err := x.Cluster.Database.Query(query, &found); err != nil {
			found = err.Error()
		}
		if found != "" {
			violations = append(violations, what+": "+found)
		}
	}
	for _, n := range x.Cluster.Nodes {
		if err := x.verifyEvidence(n); err != nil {
			violations = append(violations, fmt.Sprintf("evidence by %s: %v", n.Name, err))
		}
	}
	return violations
}

// verifyEvidence exports the chain from a node and verifies it.
func (x *Run) verifyEvidence(n *Node) error {
	req, err := http.NewRequest(http.MethodGet, n.URL+"/ids/v1/evidence/export", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+x.Cluster.Key)
	resp, err := x.work.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	report, err := evidence.Verify(resp.Body, evidence.Options{})
	if err == nil && report.Broken != nil {
		return report.Broken
	}
	return err
}

// Names of all nemeses, for messages.
func Names() string {
	var names []string
	for _, n := range Nemeses {
		names = append(names, n.Name)
	}
	return strings.Join(names, ",")
}
