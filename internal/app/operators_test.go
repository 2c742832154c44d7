package app_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/godwit-hq/godwit/client"
	"github.com/godwit-hq/godwit/internal/apptest"
	"github.com/godwit-hq/godwit/internal/config"
	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/store"
	"github.com/godwit-hq/godwit/internal/store/postgres"
)

// nodesOf asks the server for the nodes until they are as wanted.
func nodesOf(t *testing.T, s *apptest.Server, wanted func(*client.Nodes) bool) *client.Nodes {
	t.Helper()
	c, err := client.New(s.URL, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	for {
		n, err := c.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if wanted(n) {
			return n
		}
		runtime.Gosched()
	}
}

// Both nodes show the same: who is there, who owns what. A node that has stopped is not alive.
func TestEveryNodeShowsAllNodes(t *testing.T) {
	first := apptest.Start(t, apptest.Options{Postgres: true, Configure: func(c *config.Config) { c.Node = "first" }})
	second := apptest.Start(t, apptest.Options{Store: first.Config.Store, Configure: func(c *config.Config) { c.Node = "second" }})
	for _, s := range []*apptest.Server{first, second} {
		n := nodesOf(t, s, func(n *client.Nodes) bool {
			return len(n.Nodes) == 2 && n.Nodes[0].Shards == godwit.Shards/2 && n.Nodes[1].Shards == godwit.Shards/2
		})
		if n.AnsweredBy != s.Config.Node || n.FreeShards != 0 || len(n.Versions) != 1 || !slices.Equal(n.Versions[0].Nodes, []string{"first", "second"}) {
			t.Errorf("%s answers %+v", s.Config.Node, n)
		}
		for i, other := range []*apptest.Server{first, second} {
			if x := n.Nodes[i]; x.Name != other.Config.Node || x.Address != other.URL || !x.Alive || x.State != "running" || x.StartedAt.IsZero() || x.LastBeatAt.IsZero() || x.Process == "" {
				t.Errorf("%s shows the node %+v", s.Config.Node, x)
			}
		}
		owners := map[string]int{}
		for _, shard := range n.Shards {
			owners[shard.Owner]++
		}
		if owners["first"] != godwit.Shards/2 || owners["second"] != godwit.Shards/2 {
			t.Errorf("the owners are %v", owners)
		}
	}
	for what, want := range map[string]float64{
		"godwit_nodes_alive": 2, "godwit_shards_owned": godwit.Shards / 2, `godwit_shards_moved_total{change="given_up"}`: godwit.Shards / 2,
		`godwit_shards_moved_total{change="taken"}`: godwit.Shards,
	} {
		for metric(t, first, what) != want { // a node counts just after the database has it
			runtime.Gosched()
		}
	}
	for metric(t, second, "godwit_shard_handover_duration_seconds_count") != godwit.Shards/2 {
		runtime.Gosched()
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	n := nodesOf(t, first, func(n *client.Nodes) bool { return n.Nodes[0].Shards == godwit.Shards })
	if x := n.Nodes[1]; x.State != "leaving" || x.Shards != 0 {
		t.Errorf("the stopped node is %+v", x)
	}
}

// A node of another version, which takes none of its shards, one that is silent and one that did not start are shown as such.
func TestNodesShowOtherVersionsAndSilence(t *testing.T) {
	first := apptest.Start(t, apptest.Options{Postgres: true, Configure: func(c *config.Config) { c.Node = "first" }})
	s, err := postgres.Open(t.Context(), first.Config.Store, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for name, ttl := range map[string]time.Duration{"idle": time.Hour, "silent": time.Microsecond} {
		node := godwit.Node{Name: name, Instance: "1", Version: "v0.0.1", Schema: 8}
		if _, err := s.Beat(t.Context(), store.Beat{Node: node, TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ClaimNode(t.Context(), godwit.Node{Name: "stillborn", Instance: "1"}); err != nil { // and then its start fails
		t.Fatal(err)
	}
	n := nodesOf(t, first, func(n *client.Nodes) bool {
		return n.FreeShards == godwit.Shards/2 && n.Nodes[0].Shards == godwit.Shards/2
	})
	if idle := n.Nodes[1]; idle.Name != "idle" || !idle.Alive || idle.Shards != 0 || idle.Version != "v0.0.1" || idle.Schema != 8 {
		t.Errorf("the idle node is %+v", idle)
	}
	if silent := n.Nodes[2]; silent.Name != "silent" || silent.Alive || silent.State != "running" {
		t.Errorf("the silent node is %+v", silent)
	}
	if stillborn := n.Nodes[3]; stillborn.Name != "stillborn" || stillborn.Alive || stillborn.State != "starting" {
		t.Errorf("the node whose start failed is %+v", stillborn)
	}
	if len(n.Versions) != 2 || !slices.Equal(n.Versions[1].Nodes, []string{"idle"}) {
		t.Errorf("the versions are %+v", n.Versions)
	}
}

// On the schema of a later release, which permits this one, a node names its own schema.
func TestNodeNamesTheSchemaOfItsProgram(t *testing.T) {
	url := apptest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var own int
	err = conn.QueryRow(t.Context(), `INSERT INTO schema_migrations (version, name, beside)
		SELECT max(version) + 1, 'later', max(version) FROM schema_migrations RETURNING version - 1`).Scan(&own)
	if err != nil {
		t.Fatal(err)
	}
	n := nodesOf(t, apptest.Start(t, apptest.Options{Store: url}), func(*client.Nodes) bool { return true })
	if len(n.Nodes) != 1 || n.Nodes[0].Schema != own || n.Versions[0].Schema != own {
		t.Errorf("the program was made for schema %d; its node is %+v", own, n.Nodes)
	}
}
