package godwit

import "strings"

// A Node is a server process that uses a store.
type Node struct {
	Name     string // given by the operator, without spaces
	Instance string // random, new with every process
	Holder   string // host and process, for people
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
