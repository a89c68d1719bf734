package waiting

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/cluster"
)

// Next returns the pods to wake for a node, as many as fit there together, and each once. Of those that are as important one
// comes first that is nominated for the node: while it is, the scheduler lets no other pass. A pod whose attempt is under way
// keeps its place among them: it may take the room, or be refused by what the scheduler saw before the change. So does a
// pod that was woken for this node and not tried yet. One that was woken for another node is left out, until the next
// round.
func (p *Pods) Next(node string, nodes Nodes, scheduler Scheduler) []*v1.Pod {
	nominated, labels := scheduler.Nominated(node), scheduler.Node(node) // the scheduler's lock, which is held by who calls Anew
	p.mutex.Lock()
	defer p.mutex.Unlock()
	turns := p.turns(nominated, &turns{name: node, labels: labels, nodes: nodes, place: nodes.Place(node)})
	if len(turns.queues) == 0 {
		return nil
	}
	left := nodes.Known(node).Node()
	var woken []*v1.Pod
	for one := turns.next(); one != nil; one = turns.next() {
		holder, _ := left.Reserve(string(one.pod.UID), one.group.asked.Request)
		if holder == nil {
			turns.isFull[one.group] = true
			continue
		}
		left.Add(holder)
		if !one.isUnderWay(nodes) && one.wokenFor == "" {
			one.wokenFor = node
			one.group.open[node].woken[one.pod.UID] = true
			woken = append(woken, one.pod)
		}
	}
	return woken
}

// turns are the pods whose turn on a node is not over, one after the other.
type turns struct {
	name   string
	place  cluster.Place
	labels *v1.Node
	nodes  Nodes
	queues []*queue
	// isNominated says of a pod that it is nominated for the node: its turn is over once it was tried.
	isNominated map[*entry]bool
	// isFull says of a group that the node has no room for more of it.
	isFull map[*group]bool
	// returned are those that came first because they are nominated.
	returned map[*entry]bool
}

// queue are pods in their order.
type queue struct {
	pods        []*entry
	isNominated bool
}

// turns makes those of all groups for which the node is open. The node is open no more for a group that it does not fit, and for
// one of which nobody waits for it.
func (p *Pods) turns(nominated []*v1.Pod, t *turns) *turns {
	t.isFull, t.returned = map[*group]bool{}, map[*entry]bool{}
	t.isNominated = p.entries(nominated)
	for _, group := range p.groups {
		if group.open[t.name] == nil {
			continue
		}
		if t.nodes.Known(t.name).Fits(group.asked) && t.anyWaits(group) {
			t.queues = append(t.queues, &queue{pods: group.pods})
		} else {
			delete(group.open, t.name)
		}
	}
	first := &queue{isNominated: true}
	for one := range t.isNominated {
		if one.group.open[t.name] != nil {
			first.pods = append(first.pods, one)
		}
	}
	if len(t.queues) > 0 {
		slices.SortFunc(first.pods, compare)
		t.queues = append(t.queues, first)
	}
	return t
}

func (p *Pods) entries(pods []*v1.Pod) map[*entry]bool {
	found := map[*entry]bool{}
	for _, pod := range pods {
		if one := p.pods[pod.UID]; one != nil && one.group != nil {
			found[one] = true
		}
	}
	return found
}

func (t *turns) anyWaits(g *group) bool {
	for _, one := range g.pods {
		if t.waits(one) {
			return true
		}
	}
	return false
}

// waits says whether a pod waits for the node and its turn is not over: it was not woken for it since the node changed, or not
// tried yet. One that is nominated for it keeps its turn until then: the scheduler does not try it while it evicts others for it.
func (t *turns) waits(one *entry) bool {
	if one.isUnderWay(t.nodes) || one.wokenFor == t.name {
		return true
	}
	hadTurn := one.group.open[t.name].woken[one.pod.UID] && !t.isNominated[one]
	return one.refusedBy != nil && !hadTurn && one.refusedBy.Has(t.place) && one.mayGo(t.labels)
}

// next returns the first one of all queues, nil where none is left.
func (t *turns) next() *entry {
	var best *queue
	for _, queue := range t.queues {
		if t.skip(queue); len(queue.pods) > 0 && (best == nil || queue.isBefore(best)) {
			best = queue
		}
	}
	if best == nil {
		return nil
	}
	one := best.pods[0]
	best.pods = best.pods[1:]
	if best.isNominated {
		t.returned[one] = true
	}
	return one
}

// skip leaves out the first ones of a queue that have no turn: they do not wait for the node, were woken for another one, or were
// returned before.
func (t *turns) skip(q *queue) {
	for len(q.pods) > 0 {
		one := q.pods[0]
		isElsewhere := one.wokenFor != "" && one.wokenFor != t.name
		if !isElsewhere && !t.isFull[one.group] && !t.returned[one] && t.waits(one) {
			return
		}
		if t.isFull[one.group] && !q.isNominated {
			q.pods = nil // they are all of that group
			return
		}
		q.pods = q.pods[1:]
	}
}

// isBefore says whether the first one of a queue comes before the first one of another.
func (q *queue) isBefore(other *queue) bool {
	one, two := q.pods[0], other.pods[0]
	if one.priority == two.priority && q.isNominated != other.isNominated {
		return q.isNominated
	}
	return compare(one, two) < 0
}
