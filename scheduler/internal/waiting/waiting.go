// Package waiting has the pods that ask for cards and are not bound, and which of them are worth another attempt when
// a node has changed.
//
// An attempt of a pod that fits no card costs as much as one that binds a pod. So a pod is woken only where a node
// fits it now and did not before, and of many that fit only as many at a time as fit together: first the most
// important ones, then those that wait longest. The others' turn comes while the node still has room.
package waiting

import (
	"cmp"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/podapi"
)

// Pods are the pods that wait. Methods may be called from several goroutines.
type Pods struct {
	mutex sync.Mutex
	// groups are by what their pods ask for.
	groups map[string]*group
	pods   map[types.UID]*entry
	added  uint64
}

// group are pods that ask for the same.
type group struct {
	asked *cluster.Asked
	pods  map[types.UID]*entry
	// open are, by node, those that were woken since a change after which the node fits them.
	open map[string]map[types.UID]bool
}

type entry struct {
	pod   *v1.Pod
	group *group
	since uint64
	// attempt is the number of its last attempt.
	attempt uint64
}

// New returns a Pods without any.
func New() *Pods {
	return &Pods{groups: map[string]*group{}, pods: map[types.UID]*entry{}}
}

// Add says that an attempt of a pod begins, and its number. To be called before any node is looked at: what changes
// from then on wakes the pod, also while its attempt is under way.
func (p *Pods) Add(pod *v1.Pod, asked *cluster.Asked, attempt uint64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before := p.pods[pod.UID]
	if before != nil && before.group.asked.Key() == asked.Key() {
		before.pod, before.attempt = pod, attempt
		return
	}
	p.added++
	one := &entry{pod: pod, since: p.added, attempt: attempt}
	if before != nil {
		one.since = before.since
		p.remove(before)
	}
	one.group = p.groups[asked.Key()]
	if one.group == nil {
		one.group = &group{asked, map[types.UID]*entry{}, map[string]map[types.UID]bool{}}
		p.groups[asked.Key()] = one.group
	}
	one.group.pods[pod.UID], p.pods[pod.UID] = one, one
}

// Remove says that a pod waits no more.
func (p *Pods) Remove(uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if one := p.pods[uid]; one != nil {
		p.remove(one)
	}
}

func (p *Pods) remove(one *entry) {
	uid := one.pod.UID
	delete(p.pods, uid)
	delete(one.group.pods, uid)
	for _, woken := range one.group.open {
		delete(woken, uid)
	}
	if len(one.group.pods) == 0 {
		delete(p.groups, one.group.asked.Key())
	}
}

// Asked returns what a pod that waits asks for; nil for others.
func (p *Pods) Asked(uid types.UID) *cluster.Asked {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if one := p.pods[uid]; one != nil {
		return one.group.asked
	}
	return nil
}

// Len returns how many pods wait.
func (p *Pods) Len() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.pods)
}

// Nodes is what is known of the nodes when one has changed.
type Nodes interface {
	// Known returns what a node offers now.
	Known(node string) *cluster.Room
	// FitsSince returns since which attempt the scheduler finds that the node fits a request, 0 where it does not:
	// who was tried since then, and waits, waits for something else.
	FitsSince(node string, asked *cluster.Asked) uint64
	// Refuses notes that the node does not fit a request any more.
	Refuses(node string, asked *cluster.Asked)
}

// Changed says that a node has changed.
func (p *Pods) Changed(node string, nodes Nodes) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.groups) == 0 {
		return
	}
	now := nodes.Known(node)
	for _, group := range p.groups {
		if now.Fits(group.asked) {
			group.open[node] = map[types.UID]bool{}
		} else {
			nodes.Refuses(node, group.asked)
		}
	}
}

// Open returns the nodes that had room for more pods than were woken.
func (p *Pods) Open() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var nodes []string
	for _, group := range p.groups {
		for node := range group.open {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// Next returns the pods to wake for a node, as many as fit there together, and each once.
func (p *Pods) Next(node string, nodes Nodes) []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	candidates := p.candidates(node, nodes)
	if len(candidates) == 0 {
		return nil
	}
	left, full := nodes.Known(node).Node(), map[*group]bool{}
	var woken []*v1.Pod
	for _, one := range candidates {
		if full[one.group] {
			continue
		}
		holder, _ := left.Reserve(string(one.pod.UID), one.group.asked.Request)
		if holder == nil {
			full[one.group] = true
			continue
		}
		left.Add(holder)
		one.group.open[node][one.pod.UID] = true
		woken = append(woken, one.pod)
	}
	return woken
}

// candidates returns those that fit the node and were not woken since it fits them, in their order.
func (p *Pods) candidates(node string, nodes Nodes) []*entry {
	var found []*entry
	for _, group := range p.groups {
		if _, isOpen := group.open[node]; !isOpen {
			continue
		}
		own := group.candidates(node, nodes)
		if len(own) == 0 {
			delete(group.open, node)
		}
		found = append(found, own...)
	}
	slices.SortFunc(found, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(podapi.Priority(b.pod), podapi.Priority(a.pod)), cmp.Compare(a.since, b.since))
	})
	return found
}

// candidates returns those of the group that fit the node, and were not tried or woken since then.
func (g *group) candidates(node string, nodes Nodes) []*entry {
	if !nodes.Known(node).Fits(g.asked) {
		return nil
	}
	var found []*entry
	fitsSince, woken := nodes.FitsSince(node, g.asked), g.open[node]
	for uid, one := range g.pods {
		if !woken[uid] && (fitsSince == 0 || one.attempt < fitsSince) {
			found = append(found, one)
		}
	}
	return found
}
