package godwit

// A Node is a server process that uses a store.
type Node struct {
	Name     string // given by the operator, without spaces
	Instance string // random, new with every process
	Holder   string // host and process, for people
}

// Owner is the name of the process in leases. It is unique, even if two processes have the same node name.
func (n *Node) Owner() string { return n.Name + " " + n.Instance }
