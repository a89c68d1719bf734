package waiting

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gpushare.io/scheduler/internal/podapi"
)

const (
	// maxWork is what a round may cost: attempts wait for it meanwhile. What is left over is looked at in the next round.
	maxWork = 10000
	// lookWork is for the question from which priority on evictions help on a node. That takes up to 0.1 ms.
	lookWork = 50
	// turnRounds is for how many rounds the others wait for one that was woken to evict others and is not tried: something
	// may keep the scheduler from trying it, such as a claim that is gone.
	turnRounds = 10
)

// Preemptors returns the pods to wake because evictions have begun to help them on a node that has changed: a pod as important
// as they are has gone, or the policy allows evictions. It is called once a round, and of the pods that ask for the same it
// returns one at most: the most important one whose last attempt is the longest ago. Where that one is tried in vain, something
// else than cards keeps it away, and the next one's turn comes. Each is woken once until evictions begin to help anew.
func (p *Pods) Preemptors(nodes Nodes, scheduler Scheduler) []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	look := &look{nodes, scheduler, maxWork}
	var woken []*v1.Pod
	for _, group := range p.groups {
		if one := look.preemptor(group); one != nil {
			one.isWokenToEvict, one.turn = true, turnRounds
			woken = append(woken, one.pod)
		}
	}
	return woken
}

// Anew says that a node is kept no more for a pod that was nominated for it, or that it was added: evictions there may help those
// again that were tried meanwhile.
func (p *Pods) Anew(node string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, group := range p.groups {
		delete(group.helped, node)
	}
}

// Updated says that a node has changed while a pod waits. Where its labels or taints kept the pod away before and do not now,
// evictions there may help those like it again that were tried meanwhile.
func (p *Pods) Updated(uid types.UID, before, now *v1.Node) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if one := p.pods[uid]; one != nil && one.group != nil && !one.mayGo(before) && one.mayGo(now) {
		delete(one.group.helped, now.Name)
	}
}

// Taken says that a pod of a priority has got units of a node: evictions there may help nobody else now who is not more important.
func (p *Pods) Taken(node string, priority int32) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, group := range p.groups {
		if help := group.helped[node]; len(help) > 0 && help[len(help)-1].from <= priority {
			group.helped[node] = help.now(priority+1, 0)
		}
	}
}

// look is a round of asking for which pods evictions help.
type look struct {
	nodes     Nodes
	scheduler Scheduler
	left      int
}

// preemptor looks at one full node after the other, until evictions help a pod on one of them. While another pod of the group
// may still evict others it looks at none. A node is looked at again until everybody's turn there is over.
func (l *look) preemptor(g *group) *entry {
	if len(g.full) == 0 || g.isBusy(l.nodes) {
		return nil
	}
	waiting, kept := l.candidates(g)
	for node, changedAt := range g.full {
		if l.left <= 0 {
			return nil
		}
		if kept[node] {
			continue
		}
		if l.scheduler.IsPaused(node) { // it changes when the pause ends
			delete(g.helped, node)
		} else if one := l.helped(g, node, changedAt, waiting); one != nil {
			return one
		}
		delete(g.full, node)
	}
	return nil
}

// helped returns the first pod that evictions on a node help, and that was not tried since they began to.
func (l *look) helped(g *group, node string, changedAt uint64, waiting []*entry) *entry {
	if len(waiting) == 0 {
		delete(g.helped, node)
		return nil
	}
	l.left -= lookWork
	from, helps := l.nodes.HelpsFrom(node, g.asked, podapi.Priority(waiting[0].pod))
	if !helps {
		delete(g.helped, node)
		return nil
	}
	began := g.helped[node].now(from, changedAt)
	g.helped[node] = began
	place, labels := l.nodes.Place(node), l.scheduler.Node(node)
	for _, one := range waiting {
		since, helps := began.since(podapi.Priority(one.pod))
		if !helps {
			break
		}
		if one.attempt > since || !one.refusedBy.Has(place) {
			continue
		}
		l.left--
		if one.mayGo(labels) {
			return one
		}
	}
	return nil
}

// candidates returns the pods for which others may be evicted: the most important first, then the one whose last attempt is
// the longest ago. kept are the nodes for which pods of the group are nominated: it is not known yet what those leave.
func (l *look) candidates(g *group) (found []*entry, kept map[string]bool) {
	kept = map[string]bool{}
	for _, one := range g.pods {
		if nominated := l.scheduler.NominatedNode(one.pod); nominated != "" {
			kept[nominated] = true
		} else if one.refusedBy != nil && !one.isWokenToEvict && podapi.Preempts(one.pod) {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(podapi.Priority(b.pod), podapi.Priority(a.pod)), cmp.Compare(a.attempt, b.attempt))
	})
	return found, kept
}

// isBusy says whether one of the group is being tried, or was woken to evict others and is to be tried first.
func (g *group) isBusy(nodes Nodes) bool {
	for _, one := range g.pods {
		if one.turn > 0 || one.isUnderWay(nodes) {
			return true
		}
	}
	return false
}

// help says since when evictions on a node help pods, the most important ones first.
type help []helpStep

// helpStep is for pods of a priority and above, which are not in a step before.
type helpStep struct {
	from int32
	// attempt is the number of the last attempt before evictions began to help.
	attempt uint64
}

// now returns the help where evictions help from a priority on now, and those whom they did not help before since an attempt.
func (h help) now(from int32, attempt uint64) help {
	for len(h) > 0 && h[len(h)-1].from < from {
		attempt = h[len(h)-1].attempt
		h = h[:len(h)-1]
	}
	if len(h) > 0 && h[len(h)-1].from == from {
		return h
	}
	return append(h, helpStep{from, attempt})
}

// since returns the last attempt before evictions began to help pods of a priority; false where they do not.
func (h help) since(priority int32) (attempt uint64, helps bool) {
	for _, step := range h {
		if step.from <= priority {
			return step.attempt, true
		}
	}
	return 0, false
}
