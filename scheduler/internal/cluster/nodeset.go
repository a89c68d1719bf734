package cluster

// NodeSet are the nodes that refused a pod in one attempt: it waits for those, and for no others. It never changes.
//
// Of thousands of pods that wait, each is refused by thousands of nodes: a node is a bit here.
type NodeSet struct {
	attempt uint64
	bits    []uint64
	// names are nil where the attempt looked at every node.
	names map[string]bool
}

// Place is a node as a NodeSet has it.
type Place struct {
	name string
	// number is negative for a node of which nothing is known.
	number int
	// since is the first attempt that saw the node.
	since uint64
}

// NamedNodes returns the set of some nodes where an attempt looked at no others: it has no node that comes later.
func NamedNodes(names []string) *NodeSet {
	set := &NodeSet{names: make(map[string]bool, len(names))}
	for _, name := range names {
		set.names[name] = true
	}
	return set
}

// NodeSet returns the set of some nodes where an attempt looked at all of them: it has every node that comes later.
func (c *Cluster) NodeSet(attempt uint64, names []string) *NodeSet {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	set := &NodeSet{attempt: attempt, bits: make([]uint64, (c.numbers.next+63)/64)}
	for _, name := range names {
		if node := c.nodes[name]; node != nil {
			set.bits[node.number/64] |= 1 << (node.number % 64)
		}
	}
	return set
}

// Place returns a node as NodeSets have it.
func (c *Cluster) Place(name string) Place {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	if node := c.nodes[name]; node != nil {
		return Place{name, node.number, node.since}
	}
	return Place{name: name, number: -1}
}

// Has says whether the pod waits for a node.
func (s *NodeSet) Has(place Place) bool {
	switch {
	case s.names != nil:
		return s.names[place.name]
	case place.number < 0:
		return false
	case s.attempt < place.since || place.number/64 >= len(s.bits):
		return true
	}
	return s.bits[place.number/64]>>(place.number%64)&1 == 1
}

// IsEmpty says whether the pod waits for no node, not even for one that comes later.
func (s *NodeSet) IsEmpty() bool { return s.names != nil && len(s.names) == 0 }

// numbers are those of nodes. A number that is free is used again, so that the greatest does not grow for ever.
type numbers struct {
	next int
	free []int
}

func (n *numbers) take() int {
	if last := len(n.free) - 1; last >= 0 {
		number := n.free[last]
		n.free = n.free[:last]
		return number
	}
	n.next++
	return n.next - 1
}

func (n *numbers) giveBack(number int) { n.free = append(n.free, number) }
