package godwit

// A Node is a process that serves from a store.
type Node struct {
	Name     string // given by the operator, without spaces
	Instance string // random, new with every process
	Holder   string // host and process, for people
}

// Owner is how leases name the process. Two processes never have the same, whatever their names.
func (n *Node) Owner() string { return n.Name + " " + n.Instance }
