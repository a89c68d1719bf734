package waiting

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/podapi"
)

// maxLooks is how many times a round asks whether a request would fit a node in the place of others. That takes up to 0.1 ms each,
// and attempts wait for it meanwhile. What is left over is looked at in the next round.
const maxLooks = 200

// Preemptors returns the pods to wake because evictions have begun to help them on a node that has changed: a pod as important
// as they are has gone, or the policy allows evictions. It is called once a round, and of the pods that ask for the same it
// returns one at most, the most important one whose last attempt is the longest ago. Where evictions go on to help, nobody is
// woken again until that pod waits no more: whoever was woken in vain is kept away by something else than cards.
// isNominated says of a pod that others were evicted for it already, isPaused of a node that it takes no pods for a while.
func (p *Pods) Preemptors(nodes Nodes, isNominated func(*v1.Pod) bool, isPaused func(node string) bool) []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	look := &look{nodes, isNominated, isPaused, maxLooks}
	var woken []*v1.Pod
	for _, group := range p.groups {
		if one := look.preemptor(group); one != nil {
			woken = append(woken, one.pod)
		}
	}
	return woken
}

// look is a round of asking for which pods evictions help.
type look struct {
	nodes       Nodes
	isNominated func(*v1.Pod) bool
	isPaused    func(node string) bool
	left        int
}

// preemptor looks at one full node after the other, until evictions have begun to help a pod on one of them. While another pod
// of the group may still evict others it looks at none.
func (l *look) preemptor(g *group) *entry {
	if len(g.full) == 0 || g.isBusy(l.nodes) {
		return nil
	}
	waiting := l.candidates(g)
	for node, changedAt := range g.full {
		if l.left <= 0 {
			return nil
		}
		delete(g.full, node)
		if l.isPaused(node) { // it changes when the pause ends
			continue
		}
		if one := l.helped(g, node, changedAt, waiting); one != nil {
			one.evictsOn, one.isWokenToEvict = node, true
			return one
		}
	}
	return nil
}

// helped returns the first pod that evictions on a node help, and did not when the node was last looked at.
func (l *look) helped(g *group, node string, changedAt uint64, waiting []*entry) *entry {
	before, didHelp := g.helpedFrom[node]
	from, helps := l.helpsFrom(g, node, waiting)
	if !helps {
		delete(g.helpedFrom, node)
		return nil
	}
	g.helpedFrom[node] = from
	place := l.nodes.Place(node)
	for _, one := range waiting {
		priority := podapi.Priority(one.pod)
		isNew := priority >= from && (!didHelp || priority < before)
		if isNew && one.attempt <= changedAt && one.refusedBy.Has(place) {
			return one
		}
	}
	return nil
}

// helpsFrom returns the lowest priority of those that wait for which evictions on the node help. They help all higher ones, too.
func (l *look) helpsFrom(g *group, node string, waiting []*entry) (from int32, helps bool) {
	for _, one := range waiting {
		priority := podapi.Priority(one.pod)
		if helps && priority == from {
			continue
		}
		l.left--
		if !l.nodes.FitsInPlace(node, g.asked, priority) {
			break
		}
		from, helps = priority, true
	}
	return from, helps
}

// candidates returns the pods for which others may be evicted: the most important first, then the one whose last attempt is
// the longest ago.
func (l *look) candidates(g *group) []*entry {
	var found []*entry
	for _, one := range g.pods {
		if one.refusedBy != nil && podapi.Preempts(one.pod) && !l.isNominated(one.pod) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(podapi.Priority(b.pod), podapi.Priority(a.pod)), cmp.Compare(a.attempt, b.attempt))
	})
	return found
}

// isBusy says whether one of the group is being tried, or was woken to evict others and not tried yet.
func (g *group) isBusy(nodes Nodes) bool {
	for _, one := range g.pods {
		if one.isWokenToEvict || one.isUnderWay(nodes) {
			return true
		}
	}
	return false
}
