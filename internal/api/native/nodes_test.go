package native

import (
	"testing"
	"time"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/problem"
)

// GET /v1/nodes shows the node and its shards to operators only.
func TestNodesAreForOperators(t *testing.T) {
	h := newHarness(t)
	var n Nodes
	h.get("/v1/nodes").want(200).into(&n)
	if n.AnsweredBy != "test" || len(n.Nodes) != 1 || n.Nodes[0].Shards != godwit.Shards || len(n.Shards) != godwit.Shards || n.FreeShards != 0 || len(n.Versions) != 1 {
		t.Errorf("the nodes are %+v", n)
	}
	if x := n.Nodes[0]; x.Name != "test" || !x.Alive || x.State != "running" || x.LastBeatAt == nil {
		t.Errorf("the node is %+v", x)
	}
	for _, scope := range godwit.AllScopes {
		_, token := h.mint(h.tenant.ID, scope)
		a := h.do(call{method: "GET", path: "/v1/nodes", token: token})
		if scope == godwit.ScopeAdmin {
			a.want(200)
		} else {
			a.refused(403, problem.Forbidden, "")
		}
	}
	h.do(call{method: "GET", path: "/v1/nodes?all=1"}).refused(400, problem.InvalidRequest, "all")
}

// Leases of silent nodes are free, and do not count as theirs.
func TestNodesView(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	member := func(name, version string, schema int, alive bool, silent time.Duration) godwit.Member {
		return godwit.Member{
			Node: godwit.Node{Name: name, Instance: "1", Version: version, Schema: schema}, State: godwit.NodeRunning, Alive: alive, SeenAt: now.Add(-silent),
			Load: godwit.NodeLoad{Shards: 9, Held: 3, InFlight: 2, Lag: 1500 * time.Millisecond},
		}
	}
	c := &godwit.Cluster{
		Now: now,
		Members: []godwit.Member{
			member("a", "v1", 9, true, time.Second), member("b", "v2", 10, true, -time.Millisecond), member("c", "v1", 9, true, 0), member("dead", "v0", 8, false, time.Minute),
		},
		Leases: []godwit.Lease{
			{Shard: 0, Owner: "a 1", Epoch: 2}, {Shard: 1, Owner: "dead 1", Epoch: 1, Free: true}, {Shard: 2, Free: true}, {Shard: 3, Owner: "b 0", Epoch: 4, Free: true},
		},
	}
	c.Members[2].State = godwit.NodeStopping
	c.Members[3].State = godwit.NodeStopping
	v := nodesView(c, "b")
	if v.Nodes[2].State != "leaving" || v.Nodes[3].State != "running" { // the second died before it left
		t.Errorf("nodes that are about to leave: %+v", v.Nodes)
	}
	if v.FreeShards != 3 || v.Shards[0].Owner != "a" || v.Shards[1].Owner != "dead" || !v.Shards[1].Free || v.Shards[2].Owner != "" {
		t.Errorf("the shards are %+v", v.Shards)
	}
	if a, b, dead := v.Nodes[0], v.Nodes[1], v.Nodes[3]; a.Shards != 1 || b.Shards != 0 || dead.Shards != 0 || dead.Alive ||
		a.LastBeatAgeSeconds != 1 || b.LastBeatAgeSeconds != 0 || dead.LastBeatAgeSeconds != 60 || a.LagSeconds != 1.5 || a.Held != 3 || a.InFlight != 2 {
		t.Errorf("the nodes are %+v", v.Nodes)
	}
	if len(v.Versions) != 2 || len(v.Versions[0].Nodes) != 2 || v.Versions[1].Version != "v2" || v.Versions[1].Schema != 10 {
		t.Errorf("the versions are %+v; a silent node's does not count", v.Versions)
	}
}
