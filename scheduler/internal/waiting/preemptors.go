package waiting

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/podapi"
)

// Preemptors returns the pods to wake because others may be evicted for them on a node that has changed: a pod as important
// as they are has gone, or the node takes pods again. It is called once a round, and of the pods that ask for the same it
// returns one at most, the one whose last attempt is the longest ago. isNominated says of a pod that others were evicted for
// it already.
func (p *Pods) Preemptors(nodes Nodes, isNominated func(*v1.Pod) bool) []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var woken []*v1.Pod
	for _, group := range p.groups {
		if len(group.full) == 0 {
			continue
		}
		if one := group.preemptor(nodes, isNominated); one != nil {
			woken = append(woken, one.pod)
		}
	}
	return woken
}

// preemptor looks at one full node after the other, until one of them would fit a pod in the place of others.
func (g *group) preemptor(nodes Nodes, isNominated func(*v1.Pod) bool) *entry {
	waiting := g.preemptors(isNominated)
	for node := range g.full {
		delete(g.full, node)
		place, fits := nodes.Place(node), map[int32]bool{}
		for _, one := range waiting {
			priority := podapi.Priority(one.pod)
			if _, known := fits[priority]; !known {
				fits[priority] = nodes.FitsInPlace(node, g.asked, priority)
			}
			if fits[priority] && one.refusedBy.Has(place) {
				return one
			}
		}
	}
	return nil
}

// preemptors returns the pods for which others may be evicted, first the one whose last attempt is the longest ago.
func (g *group) preemptors(isNominated func(*v1.Pod) bool) []*entry {
	var found []*entry
	for _, one := range g.pods {
		if one.refusedBy != nil && podapi.Preempts(one.pod) && !isNominated(one.pod) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int { return cmp.Compare(a.attempt, b.attempt) })
	return found
}
