package client

import (
	"context"
	"net/http"
	"time"
)

// Nodes are the nodes that share the server's database, and their shards, at one moment.
type Nodes struct {
	AnsweredBy string        `json:"answered_by"` // name of the node that answered
	At         time.Time     `json:"at"`          // by the database's clock
	Nodes      []Node        `json:"nodes"`       // by name; also those that have stopped, for 30 days
	Shards     []Shard       `json:"shards"`
	FreeShards int           `json:"free_shards"` // how many shards no live node owns
	Versions   []NodeVersion `json:"versions"`    // what the live nodes run
}

// A Node is a server process.
type Node struct {
	Name               string    `json:"name"`
	Process            string    `json:"process"`
	Address            string    `json:"address"`
	Version            string    `json:"version"`
	Schema             int       `json:"schema"` // version of the database's schema that the program was made for
	StartedAt          time.Time `json:"started_at,omitzero"`
	State              string    `json:"state"` // starting, running or leaving
	Alive              bool      `json:"alive"` // it has said so within the time that its leases last
	LastBeatAt         time.Time `json:"last_beat_at,omitzero"`
	LastBeatAgeSeconds float64   `json:"last_beat_age_seconds"`
	Shards             int       `json:"shards"`      // owned
	Held               int       `json:"held"`        // deliveries in memory
	InFlight           int       `json:"in_flight"`   // requests
	LagSeconds         float64   `json:"lag_seconds"` // how long the oldest delivery has been waiting for the node alone
}

// A Shard is a part of the endpoints, for which one node delivers.
type Shard struct {
	Shard int    `json:"shard"`
	Owner string `json:"owner"` // name of a node; empty: released
	Epoch int64  `json:"epoch"` // grows with every change of owner
	Free  bool   `json:"free"`  // no live node owns it
}

// A NodeVersion is a version that live nodes run.
type NodeVersion struct {
	Version string   `json:"version"`
	Schema  int      `json:"schema"`
	Nodes   []string `json:"nodes"`
}

// Nodes lists nodes and shards. The key needs the scope admin.
func (c *Client) Nodes(ctx context.Context) (*Nodes, error) {
	var n Nodes
	if err := c.do(ctx, http.MethodGet, "/v1/nodes", nil, nil, &n); err != nil {
		return nil, err
	}
	return &n, nil
}
