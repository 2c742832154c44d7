package godwit

import (
	"strings"
	"time"
)

// A Node is a server process that uses a store.
type Node struct {
	Name     string // given by the operator, without spaces
	Instance string // random, new with every process
	Holder   string // host and process, for people

	Address   string    // URL at which clients reach it
	Version   string    // of the program
	Schema    int       // version of the store's schema that the program was made for
	StartedAt time.Time // by the store's clock; the store sets it
}

// Owner is the name of the process in leases. It is unique, even if two processes have the same node name.
func (n *Node) Owner() string { return n.Name + " " + n.Instance }

// NodeOf returns the node that is named as an owner in a lease.
func NodeOf(owner, holder string) Node {
	name, instance, _ := strings.Cut(owner, " ")
	return Node{Name: name, Instance: instance, Holder: holder}
}

// String describes the process to an operator.
func (n Node) String() string {
	if n.Holder == "" {
		return n.Name
	}
	return n.Name + " (" + n.Holder + ")"
}

// A Member is a node as the store knows it.
type Member struct {
	Node
	State  NodeState
	SeenAt time.Time // its last beat, by the store's clock
	Alive  bool      // its leases have not expired
	// Left is how long its leases last without another beat; 0 if it is not alive.
	Left time.Duration
	Load NodeLoad
}

// Leaves reports whether the node is stopping, with its shards or already giving them up.
func (m *Member) Leaves() bool { return m.State == NodeStopping || m.State == NodeLeaving }

// NodeState says what a node is about to do.
type NodeState string

// The states of a node.
const (
	NodeStarting NodeState = "starting" // it has claimed its name, and no beat has come yet
	NodeRunning  NodeState = "running"
	NodeStopping NodeState = "stopping" // it is about to leave, and keeps its shards while it still answers requests
	NodeLeaving  NodeState = "leaving"  // it is stopping and gives its shards to others
)

// NodeLoad is how much a node has to do.
type NodeLoad struct {
	Shards   int           // owned
	Held     int           // deliveries in memory
	InFlight int           // requests in flight
	Lag      time.Duration // how long the oldest due delivery of its shards has been waiting
}

// A Cluster is all nodes and leases of a store at one moment.
type Cluster struct {
	Now     time.Time // by the store's clock
	Members []Member  // by name
	Leases  []Lease   // of all shards, in order
}
