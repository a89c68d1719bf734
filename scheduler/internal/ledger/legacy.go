package ledger

// legacyPods are pods that only a replaced system wrote on, and that do not count yet: their GPUShareNode, or its
// cards, are unknown, or it has another dialect. Anybody can write such annotations: there may be as many as pods.
type legacyPods struct {
	// byNode are by node, and there by UID.
	byNode map[string]map[string]*Pod
	// nodes are by UID where the pods are in byNode.
	nodes map[string]string
}

func newLegacyPods() legacyPods {
	return legacyPods{map[string]map[string]*Pod{}, map[string]string{}}
}

func (l legacyPods) put(pod *Pod) {
	l.drop(pod.UID)
	if l.byNode[pod.Node] == nil {
		l.byNode[pod.Node] = map[string]*Pod{}
	}
	l.byNode[pod.Node][pod.UID] = pod
	l.nodes[pod.UID] = pod.Node
}

func (l legacyPods) drop(uid string) {
	node, known := l.nodes[uid]
	if !known {
		return
	}
	delete(l.nodes, uid)
	delete(l.byNode[node], uid)
	if len(l.byNode[node]) == 0 {
		delete(l.byNode, node)
	}
}
