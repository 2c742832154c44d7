package native

import (
	"context"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/godwit-hq/godwit/internal/godwit"
	"github.com/godwit-hq/godwit/internal/management"
)

// Node is a server process as the API shows it.
type Node struct {
	Name               string     `json:"name" example:"a"`
	Process            string     `json:"process" doc:"Process and host" example:"process 4711 on host-1"`
	Address            string     `json:"address" doc:"URL at which clients reach it" example:"http://10.0.0.5:8080"`
	Version            string     `json:"version" doc:"Version of the program"`
	Schema             int        `json:"schema" doc:"Version of the database's schema that the program was made for"`
	StartedAt          *time.Time `json:"started_at,omitempty" doc:"By the database's clock"`
	State              string     `json:"state" enum:"starting,running,leaving" doc:"starting: it has taken its name and not run yet, or its start failed; leaving: it is stopping and gives its shards to others, or has stopped"`
	Alive              bool       `json:"alive" doc:"It has said so within the time that its leases last"`
	LastBeatAt         *time.Time `json:"last_beat_at,omitempty" doc:"When it last said that it is alive, by the database's clock"`
	LastBeatAgeSeconds float64    `json:"last_beat_age_seconds" doc:"How long ago that was"`
	Shards             int        `json:"shards" doc:"How many shards it owns now"`
	Held               int        `json:"held" doc:"Deliveries in its memory, as of its last beat"`
	InFlight           int        `json:"in_flight" doc:"Requests in flight, as of its last beat"`
	LagSeconds         float64    `json:"lag_seconds" doc:"How long the oldest delivery had been waiting for the node alone at its last beat"`
}

// Shard is the lease of a shard as the API shows it.
type Shard struct {
	Shard int    `json:"shard"`
	Owner string `json:"owner" doc:"Name of the node that has the lease, or had it until it fell silent; empty: released"`
	Epoch int64  `json:"epoch" doc:"Grows with every change of owner"`
	Free  bool   `json:"free" doc:"No live node owns it"`
}

// NodeVersion is a version that live nodes run.
type NodeVersion struct {
	Version string   `json:"version"`
	Schema  int      `json:"schema"`
	Nodes   []string `json:"nodes" doc:"Names of the nodes that run it"`
}

// Nodes are all nodes and shards at one moment.
type Nodes struct {
	AnsweredBy string        `json:"answered_by" doc:"Name of the node that answered this request"`
	At         time.Time     `json:"at" doc:"By the database's clock"`
	Nodes      []Node        `json:"nodes" doc:"By name; also those that have stopped, for 30 days"`
	Shards     []Shard       `json:"shards"`
	FreeShards int           `json:"free_shards" doc:"How many shards no live node owns"`
	Versions   []NodeVersion `json:"versions" doc:"What the live nodes run. More than one: an upgrade is not finished."`
}

type nodesOutput struct{ Body Nodes }

var listNodesDoc = huma.Operation{
	OperationID: "list-nodes", Summary: "List nodes and shards",
	Description: "The nodes that share this server's database, which of them owns each shard of endpoints, and which versions they run. Every node gives the same answer.",
}

type nodeStore interface {
	Cluster(ctx context.Context) (*godwit.Cluster, error)
}

// nodeHandlers show the nodes to operators.
type nodeHandlers struct {
	store nodeStore
	name  string // of this node
}

func (h *nodeHandlers) list(ctx context.Context, _ *management.Caller, _ *struct{}) (*nodesOutput, error) {
	c, err := h.store.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return &nodesOutput{nodesView(c, h.name)}, nil
}

func nodesView(c *godwit.Cluster, answeredBy string) Nodes {
	v := Nodes{AnsweredBy: answeredBy, At: c.Now.UTC(), Nodes: []Node{}, Shards: []Shard{}, Versions: []NodeVersion{}}
	owned := map[string]int{}
	for _, l := range c.Leases {
		owner := godwit.NodeOf(l.Owner, "")
		v.Shards = append(v.Shards, Shard{Shard: l.Shard, Owner: owner.Name, Epoch: l.Epoch, Free: l.Free})
		if l.Free {
			v.FreeShards++
		} else {
			owned[l.Owner]++
		}
	}
	for i := range c.Members {
		m := &c.Members[i]
		n := nodeView(m, c.Now)
		n.Shards = owned[m.Owner()]
		v.Nodes = append(v.Nodes, n)
		if m.Alive {
			v.addVersion(m)
		}
	}
	return v
}

func nodeView(m *godwit.Member, now time.Time) Node {
	state := m.State
	switch {
	case m.Alive && m.Leaves():
		state = godwit.NodeLeaving
	case state == godwit.NodeStopping:
		state = godwit.NodeRunning // it died before it left
	}
	return Node{
		Name: m.Name, Process: m.Holder, Address: m.Address, Version: m.Version, Schema: m.Schema, StartedAt: timestamp(m.StartedAt),
		State: string(state), Alive: m.Alive, LastBeatAt: timestamp(m.SeenAt), LastBeatAgeSeconds: max(now.Sub(m.SeenAt), 0).Seconds(),
		Held: m.Load.Held, InFlight: m.Load.InFlight, LagSeconds: m.Load.Lag.Seconds(),
	}
}

func (v *Nodes) addVersion(m *godwit.Member) {
	i := slices.IndexFunc(v.Versions, func(o NodeVersion) bool { return o.Version == m.Version && o.Schema == m.Schema })
	if i < 0 {
		i = len(v.Versions)
		v.Versions = append(v.Versions, NodeVersion{Version: m.Version, Schema: m.Schema})
	}
	v.Versions[i].Nodes = append(v.Versions[i].Nodes, m.Name)
}
