package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/sharenode"
)

const (
	// UnreleasedTime is in which a plugin has reported a pod that the kubelet admitted, behind a burst of others.
	UnreleasedTime = 4 * time.Second
	// GoneTime is in which a plugin stops reporting a pod that is gone. Where it does not, the pod was deleted by
	// force and hangs, as in its driver: nobody knows when it ends.
	GoneTime = time.Minute
)

// Ledger is what is known of who has which cards besides what the scheduler shows of a node: which pods are gone
// whose units the kubelet may not have released yet, what an annotation said before it was changed, and what other
// nodes' pods claim of a node.
//
// A bound pod never changes its node. Where its annotation names another node than before, one of the two is wrong:
// the pod counts on both until its annotation and the GPUShareNode of the node in it agree.
//
// A pod can be gone while the kubelet still has its units. The plugin of its node reports when they are back. Where
// the plugin has not even reported that they were given out, they count for as long as that may take.
//
// What changes the ledger returns the names of the nodes where more may be free than before, sorted: of the node that
// is meant, and of every other on which a pod counts no longer.
//
// Methods may be called from several goroutines.
type Ledger struct {
	mutex sync.RWMutex
	nodes map[string]*nodeRecord
	// serving is how many nodes serve each extended resource, by its name.
	serving map[string]int
	// holders are by pod UID, as seen last; those with a reservation as well.
	holders map[string]*Holder
	// earlier are, by pod UID, the other nodes on which the pod counts: its annotation named them before.
	earlier map[string]map[string]bool
	// boundTo is where a pod with units is bound, by pod UID.
	boundTo map[string]string
	// reserved are the UIDs of pods with a reservation that no watch has shown as an allocation yet.
	reserved map[string]bool
	// unreleased are, by UID, pods that are gone and still count on nodes.
	unreleased map[string]unreleasedPod
	// legacy are those that do not count yet.
	legacy legacyPods
	// changes counts the changes of all nodes.
	changes uint64
	// freed are the nodes where the change under way may have freed units.
	freed map[string]bool
}

type unreleasedPod struct {
	nodes []string
	since time.Time
}

// nodeRecord is what is known of one node.
type nodeRecord struct {
	share   *sharenode.Node
	holders map[string]*Holder
	// gone are, by UID, pods that are gone and that the GPUShareNode still names, since when.
	gone map[string]time.Time
	// givenBack are the UIDs of the holders that a GPUShareNode reported in full, and that the next one did not
	// name.
	givenBack map[string]bool
	// version is what changes was at the node's last change.
	version Version
}

// New returns a Ledger that knows nothing.
func New() *Ledger {
	return &Ledger{
		nodes:      map[string]*nodeRecord{},
		serving:    map[string]int{},
		holders:    map[string]*Holder{},
		earlier:    map[string]map[string]bool{},
		boundTo:    map[string]string{},
		reserved:   map[string]bool{},
		unreleased: map[string]unreleasedPod{},
		legacy:     newLegacyPods(),
		freed:      map[string]bool{},
	}
}

// SetShareNode counts with a GPUShareNode from now on.
func (l *Ledger) SetShareNode(share *sharenode.Node) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	node := l.node(share.Name)
	l.countServing(node.share, share)
	node.setShare(share)
	l.touch(share.Name)
	l.freed[share.Name] = true
	for _, pod := range l.legacy.byNode[share.Name] {
		l.countLegacyPod(pod)
	}
	for _, uid := range slices.Collect(maps.Keys(node.holders)) {
		if holder := l.holders[uid]; holder != nil && holder.Node == share.Name {
			l.countOnOneNode(uid)
		}
		if _, isUnreleased := l.unreleased[uid]; isUnreleased && node.isReportedInFull(uid) {
			l.free(uid)
		}
	}
	return l.takeFreed()
}

// DropShareNode says that a node takes no more pods; what its pods have still counts.
func (l *Ledger) DropShareNode(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if node := l.nodes[name]; node != nil {
		l.countServing(node.share, nil)
		node.setShare(nil)
		l.touch(name)
		l.forgetEmpty(name)
	}
}

// ShareNode returns the GPUShareNode of a node as it was seen last, nil where there is none.
func (l *Ledger) ShareNode(name string) *sharenode.Node {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	if node := l.nodes[name]; node != nil {
		return node.share
	}
	return nil
}

// SetPod says that a bound pod was seen. Its annotation replaces its reservation. Where the annotation is gone, what
// it said still counts: the pod has its units until it is gone.
func (l *Ledger) SetPod(pod *Pod) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case pod.holder != nil:
		delete(l.reserved, pod.UID)
		l.legacy.drop(pod.UID)
		l.bind(pod.UID, pod.Node)
		l.put(pod.holder)
	case pod.claims != nil && l.holders[pod.UID] == nil:
		l.legacy.put(pod)
		l.countLegacyPod(pod)
	}
	return l.takeFreed()
}

// Reserve keeps units for a pod that is being bound. It refuses a pod that has units, or had them until just now:
// what the kubelet may still have of it would be free as soon as the reservation is released.
func (l *Ledger) Reserve(holder *Holder) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, had := l.unreleased[holder.UID]; had {
		return errUnreleased
	}
	if present := l.holders[holder.UID]; present != nil {
		return fmt.Errorf("the pod already holds units on node %s", present.Node)
	}
	l.reserved[holder.UID] = true
	l.bind(holder.UID, holder.Node)
	l.put(holder)
	return nil
}

var errUnreleased = errors.New("the pod had units until just now, and the kubelet may still hold them")

// Holder returns what a pod has, allocated or reserved; nil when it has no units.
func (l *Ledger) Holder(uid string) *Holder {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	return l.holders[uid]
}

// HeldElsewhere returns why a pod that already has units does not fit a node where it does not have them: it must not
// get a second share. Nil for all others.
func (l *Ledger) HeldElsewhere(uid, node string) *Refusal {
	holder := l.Holder(uid)
	if holder == nil || holder.Node == node {
		return nil
	}
	return &Refusal{Kind: HeldElsewhere, Message: fmt.Sprintf(
		"node(s) other than %s, where the pod already holds its share of cards and is being bound", holder.Node)}
}

// Release says that a pod is surely not bound by us. Without effect on what a watch has shown.
func (l *Ledger) Release(uid string) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.reserved[uid] {
		nodes := l.forget(uid)
		l.removeFrom(nodes, uid)
	}
	return l.takeFreed()
}

// PodGone says that a bound pod is gone, or has ended. What it had is free on a node whose plugin has reported it:
// the plugin also reports its release by the kubelet. Elsewhere it counts until Expire.
func (l *Ledger) PodGone(uid string, now time.Time) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	nodes := l.forget(uid)
	wasReported := slices.ContainsFunc(nodes, func(name string) bool { return l.nodes[name].wasReported(uid) })
	switch {
	case len(nodes) == 0:
	case wasReported:
		l.deleteFrom(nodes, uid, now)
	default:
		l.unreleased[uid] = unreleasedPod{nodes, now}
		for _, name := range nodes {
			l.touch(name)
		}
	}
	return l.takeFreed()
}

// Expire frees what pods had that are gone for so long that their node's plugin would have reported them. A pod that
// the plugin still reports long after it is gone is no longer expected to give anything back: its node is returned too, for
// whoever waits for that.
func (l *Ledger) Expire(now time.Time) []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for uid, pod := range maps.Clone(l.unreleased) {
		if now.Sub(pod.since) >= UnreleasedTime {
			l.free(uid)
		}
	}
	for name, node := range l.nodes {
		expected := len(node.gone)
		maps.DeleteFunc(node.gone, func(_ string, since time.Time) bool { return now.Sub(since) >= GoneTime })
		if len(node.gone) < expected {
			l.freed[name] = true
		}
	}
	return l.takeFreed()
}

// Unreleased returns the UIDs of the pods that are gone and still count on a node: the next reports of its plugin
// free what they had.
func (l *Ledger) Unreleased(name string) []string {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	node := l.nodes[name]
	if node == nil {
		return nil
	}
	uids := slices.Collect(maps.Keys(node.gone))
	for uid := range node.holders {
		if _, is := l.unreleased[uid]; is {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

// Resources returns the extended resources that are ours now. A name that others' plugins offer as well is ours
// only while a GPUShareNode has it.
func (l *Ledger) Resources() []cards.Resource {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	return dialects.Resources(func(name string) bool { return l.serving[name] > 0 })
}

// Node returns the sums of a node whose pods, by the scheduler's own view, are pods. Besides them it counts what
// only the ledger knows.
func (l *Ledger) Node(name string, pods []*Pod) *Node {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	record := l.nodes[name]
	if record == nil {
		return NewNode(nil, nil)
	}
	holders := make([]*Holder, 0, len(pods))
	for _, pod := range pods {
		if holder := l.holderOf(name, record, pod); holder != nil {
			holders = append(holders, holder)
		}
	}
	node := NewNode(record.share, append(holders, l.besides(name, record, holders)...))
	node.changesElsewhere = slices.ContainsFunc(pods, func(pod *Pod) bool {
		return l.mayChangeElsewhere(name, record, pod)
	})
	return node
}

// mayChangeElsewhere says whether what a pod has of a node, by the scheduler's view its own, may change without a
// change of the node: what a replaced system wrote counts until some record, perhaps of another node, knows the pod.
// Where a record knows the pod, and that it is bound to the node, what becomes of the record is a change of the node.
func (l *Ledger) mayChangeElsewhere(name string, record *nodeRecord, pod *Pod) bool {
	return pod.claims != nil && l.boundTo[pod.UID] != name && record.holders[pod.UID] == nil &&
		pod.legacyHolder(record.share) != nil
}

// holderOf returns what a pod of the node has of it, nil where that is nothing. Where its annotation does not say,
// what it said before counts, and only where it never said anything what a replaced system wrote.
func (l *Ledger) holderOf(name string, record *nodeRecord, pod *Pod) *Holder {
	if pod.holder != nil && pod.holder.Node == name {
		return pod.holder
	}
	if l.holders[pod.UID] != nil {
		return record.holders[pod.UID]
	}
	return pod.legacyHolder(record.share)
}

// besides returns those who have units of a node and are not among shown, who are the node's pods by the scheduler's
// view.
func (l *Ledger) besides(name string, record *nodeRecord, shown []*Holder) []*Holder {
	if len(record.holders) == 0 {
		return nil
	}
	isShown := make(map[string]bool, len(shown))
	for _, holder := range shown {
		isShown[holder.UID] = true
	}
	var others []*Holder
	for uid, holder := range record.holders {
		if !isShown[uid] && l.countsUnseen(uid, name, record) {
			others = append(others, holder)
		}
	}
	return others
}

// countsUnseen says whether a pod counts on a node where the scheduler does not show it. It does where it is bound
// elsewhere, or gone. Where it is bound there, the scheduler knows before us that it is gone, or after us that it
// came: it counts as PodGone would have it count.
func (l *Ledger) countsUnseen(uid, name string, record *nodeRecord) bool {
	node, isBound := l.boundTo[uid]
	return !isBound || node != name || !record.wasReported(uid)
}
