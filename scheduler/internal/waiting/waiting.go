// Package waiting has the pods that ask for cards and are not bound, and which of them are worth another attempt when
// a node has changed.
//
// An attempt of a pod that fits no card costs as much as one that binds a pod. So a pod waits for the nodes that
// refused it in its last attempt, and is woken only when one of them fits it. Where others than we refuse it, or nobody
// looked, it waits for something else, and others wake it. Of many that fit only as many are woken at a time as fit
// together: first the most important ones, then those that wait longest. The others' turn comes while the node still has
// room.
package waiting

import (
	"cmp"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

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

// group are pods that ask for the same, and that are being tried or wait for nodes.
type group struct {
	asked *cluster.Asked
	// pods are in their order.
	pods []*entry
	// open are the nodes that fit the pods since a change, by name.
	open map[string]*opening
	// full are the nodes that have changed and do not fit, and where evictions may help pods that were not tried since, by name:
	// with the number of the last attempt before the change.
	full map[string]uint64
	// helped are the nodes where evictions helped when they were last looked at, by name.
	helped map[string]help
}

func newGroup(asked *cluster.Asked) *group {
	return &group{asked, nil, map[string]*opening{}, map[string]uint64{}, map[string]help{}}
}

func (g *group) add(one *entry) {
	place, _ := slices.BinarySearchFunc(g.pods, one, compare)
	g.pods = slices.Insert(g.pods, place, one)
}

func (g *group) remove(one *entry) {
	if place, is := slices.BinarySearchFunc(g.pods, one, compare); is {
		g.pods = slices.Delete(g.pods, place, place+1)
	}
}

// compare is negative where a comes before b: the most important ones first, then those that wait longest.
func compare(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.since, b.since))
}

// opening is a change of a node.
type opening struct {
	// woken are those that were woken since.
	woken map[types.UID]bool
	// attempt is the number of the last attempt before.
	attempt uint64
}

type entry struct {
	pod *v1.Pod
	// group is nil for a pod that waits for no node.
	group    *group
	priority int32
	since    uint64
	// affinity are the labels that the pod needs of a node.
	affinity nodeaffinity.RequiredNodeAffinity
	// attempt is the number of its last attempt.
	attempt uint64
	// wokenFor is the node for which it was woken in this round, and not tried since; empty where there is none.
	wokenFor string
	// refusedBy are the nodes that refused it then; nil until the attempt has ended.
	refusedBy *cluster.NodeSet
	// isWokenToEvict says that it was woken to evict others, and not tried since. turn is for how many more rounds the others of
	// its group wait for it then.
	isWokenToEvict bool
	turn           int
	// rounds is how many have begun since its attempt began, or has ended. doublings is how often it was woken because nobody saw
	// the reason.
	rounds, doublings int
	// isForCardsAlone says that nobody but we refused it. isAtRest says that the scheduler need not look at it until it is woken.
	isForCardsAlone, isAtRest bool
}

// attemptRounds is more than an attempt takes. Of one that has failed by an error nobody says so.
const attemptRounds = 2

func (e *entry) isUnderWay(nodes Nodes) bool {
	return e.refusedBy == nil && e.attempt == nodes.Attempts() && e.rounds <= attemptRounds
}

// mayGo says whether the pod may be on a node by the node's labels and taints. Our filter comes first: that a node was full says
// nothing of that.
func (e *entry) mayGo(node *v1.Node) bool {
	if node == nil {
		return true
	}
	matches, err := e.affinity.Match(node)
	_, isKeptAway := corev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, e.pod.Spec.Tolerations,
		func(taint *v1.Taint) bool { return taint.Effect != v1.TaintEffectPreferNoSchedule }, true)
	return matches && err == nil && !isKeptAway
}

// ForCardsAlone says that nobody but we refused a pod.
func (p *Pods) ForCardsAlone(uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if one := p.pods[uid]; one != nil {
		one.isForCardsAlone = true
	}
}

// New returns a Pods without any.
func New() *Pods {
	return &Pods{groups: map[string]*group{}, pods: map[types.UID]*entry{}}
}

// Add says that an attempt of a pod begins, and its number. Refused or Remove says how it ends; neither where it fails by
// an error: then the scheduler tries the pod again by itself.
func (p *Pods) Add(pod *v1.Pod, asked *cluster.Asked, attempt uint64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before := p.pods[pod.UID]
	if before != nil && before.group != nil && before.group.asked.Key() == asked.Key() {
		before.pod, before.attempt, before.wokenFor, before.refusedBy = pod, attempt, "", nil
		before.isWokenToEvict, before.turn, before.rounds = false, 0, 0
		before.isForCardsAlone, before.isAtRest = false, false
		return
	}
	p.added++
	one := &entry{
		pod: pod, priority: podapi.Priority(pod), since: p.added, attempt: attempt,
		affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
	}
	if before != nil {
		one.since, one.doublings = before.since, before.doublings
		p.leave(before)
	}
	one.group = p.groups[asked.Key()]
	if one.group == nil {
		one.group = newGroup(asked)
		p.groups[asked.Key()] = one.group
	}
	one.group.add(one)
	p.pods[pod.UID] = one
}

// Refused says which nodes refused a pod in its attempt, which has ended. It returns those of them that have changed since
// the attempt began, and fit now. One that refuses a pod that was woken for it keeps the others like it away as well, as
// where another pod is nominated: nobody else is woken until it changes again. A pod that no node has refused waits for
// something else, and leaves its group.
func (p *Pods) Refused(uid types.UID, by *cluster.NodeSet, nodes Nodes) []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	one := p.pods[uid]
	if one == nil || one.group == nil { // the pod's attempt has ended already
		return nil
	}
	one.refusedBy, one.rounds = by, 0
	if by.IsEmpty() {
		p.leave(one)
		return nil
	}
	var changed []string
	for node, opening := range one.group.open {
		switch {
		case !by.Has(nodes.Place(node)):
		case opening.woken[uid]:
			delete(one.group.open, node)
		case opening.attempt >= one.attempt:
			changed = append(changed, node)
		}
	}
	return changed
}

// Remove says that a pod waits no more.
func (p *Pods) Remove(uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if one := p.pods[uid]; one != nil {
		p.leave(one)
		delete(p.pods, uid)
	}
}

// leave takes a pod out of its group.
func (p *Pods) leave(one *entry) {
	left := one.group
	if left == nil {
		return
	}
	one.group = nil
	left.remove(one)
	for _, opening := range left.open {
		delete(opening.woken, one.pod.UID)
	}
	if len(left.pods) == 0 {
		delete(p.groups, left.asked.Key())
	}
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
	// HelpsFrom returns the lowest priority of a pod that a request would fit in the place of less important ones; false where
	// it is above highest, or there is none.
	HelpsFrom(node string, asked *cluster.Asked, highest int32) (from int32, helps bool)
	// Place returns the node as the sets of those that refuse pods have it.
	Place(node string) cluster.Place
	// Attempts returns the number of the last attempt. No other can be under way.
	Attempts() uint64
}

// Scheduler is what the scheduler knows of pods and nodes besides cards.
type Scheduler interface {
	// Node returns a node, nil where it is not known.
	Node(name string) *v1.Node
	// Nominated returns the pods that are nominated for a node.
	Nominated(node string) []*v1.Pod
	// NominatedNode returns the node for which a pod is nominated, empty where others were evicted for it on none.
	NominatedNode(pod *v1.Pod) string
	// IsPaused says whether a node takes no pods for a while.
	IsPaused(node string) bool
	// IsExplained says whether the API server shows why a pod waits, as far as is known, or does not have the pod any more.
	IsExplained(pod *v1.Pod) bool
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
		delete(group.open, node)
		delete(group.full, node)
		switch {
		case now.Fits(group.asked):
			delete(group.helped, node)
			group.open[node] = &opening{map[types.UID]bool{}, nodes.Attempts()}
		case now.Preempts():
			group.full[node] = nodes.Attempts()
		default:
			delete(group.helped, node)
		}
	}
}

// Open begins a round: it returns the nodes that had room for more pods than were woken. Who was woken and not tried
// since then may be woken for another one of them now.
func (p *Pods) Open() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range p.pods {
		one.wokenFor, one.turn = "", max(0, one.turn-1)
	}
	var nodes []string
	for _, group := range p.groups {
		for node := range group.open {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
