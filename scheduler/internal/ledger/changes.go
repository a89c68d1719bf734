package ledger

import (
	"maps"
	"slices"
	"time"

	"gpushare.io/scheduler/internal/sharenode"
)

// node returns the record of a node, a new one where there is none.
func (l *Ledger) node(name string) *nodeRecord {
	if l.nodes[name] == nil {
		l.nodes[name] = &nodeRecord{
			holders: map[string]*Holder{}, gone: map[string]time.Time{}, givenBack: map[string]bool{},
		}
	}
	return l.nodes[name]
}

// countServing counts a node that serves other resources than before; nil stands for none.
func (l *Ledger) countServing(before, now *sharenode.Node) {
	if before != nil {
		for _, resource := range before.Resources {
			l.serving[resource.Name]--
		}
	}
	if now != nil {
		for _, resource := range now.Resources {
			l.serving[resource.Name]++
		}
	}
}

func (l *Ledger) forgetEmpty(name string) {
	if node := l.nodes[name]; node.share == nil && len(node.holders) == 0 {
		node.version.number.Store(0)
		delete(l.nodes, name)
	}
}

// put counts what a pod has now.
func (l *Ledger) put(holder *Holder) {
	uid, before := holder.UID, l.holders[holder.UID]
	_, isUnreleased := l.unreleased[uid]
	if before != nil && before.countsAs(holder) && !isUnreleased {
		l.holders[uid] = holder
		l.nodes[holder.Node].put(holder)
		return
	}
	if isUnreleased {
		l.free(uid)
	}
	if before != nil {
		l.freed[before.Node], l.freed[holder.Node] = true, true
	}
	if before != nil && before.Node != holder.Node {
		if l.earlier[uid] == nil {
			l.earlier[uid] = map[string]bool{}
		}
		l.earlier[uid][before.Node] = true
		delete(l.earlier[uid], holder.Node)
	}
	l.holders[uid] = holder
	l.node(holder.Node).put(holder)
	l.touch(holder.Node)
	l.countOnOneNode(uid)
}

// bind says where a pod is bound. Whether it counts where the scheduler does not show it depends on that.
func (l *Ledger) bind(uid, name string) {
	before := l.boundTo[uid]
	if before == name {
		return
	}
	l.touch(before)
	l.boundTo[uid] = name
	for _, counting := range l.nodesOf(uid) {
		l.touch(counting)
	}
}

// nodesOf returns the nodes on which a pod counts that is not gone.
func (l *Ledger) nodesOf(uid string) []string {
	holder := l.holders[uid]
	if holder == nil {
		return nil
	}
	return append(slices.Sorted(maps.Keys(l.earlier[uid])), holder.Node)
}

// countLegacyPod counts a pod that only a replaced system wrote on, as soon as what it has is known.
func (l *Ledger) countLegacyPod(pod *Pod) {
	node := l.nodes[pod.Node]
	if node == nil {
		return
	}
	if holder := pod.legacyHolder(node.share); holder != nil {
		l.legacy.drop(pod.UID)
		l.bind(pod.UID, pod.Node)
		l.put(holder)
	}
}

// countOnOneNode has a pod count on one node alone, once the kubelet of the node in its annotation has the pod.
func (l *Ledger) countOnOneNode(uid string) {
	earlier, counts := l.earlier[uid]
	if counts && isReported(l.nodes[l.holders[uid].Node].share, uid) {
		delete(l.earlier, uid)
		l.removeFrom(slices.Collect(maps.Keys(earlier)), uid)
	}
}

// forget returns the nodes on which the pod still counts, each once.
func (l *Ledger) forget(uid string) []string {
	nodes := l.nodesOf(uid)
	l.touch(l.boundTo[uid])
	delete(l.reserved, uid)
	l.legacy.drop(uid)
	delete(l.boundTo, uid)
	delete(l.holders, uid)
	delete(l.earlier, uid)
	return nodes
}

// free frees what a pod had that is gone.
func (l *Ledger) free(uid string) {
	pod := l.unreleased[uid]
	delete(l.unreleased, uid)
	l.deleteFrom(pod.nodes, uid, pod.since)
}

func (l *Ledger) removeFrom(names []string, uid string) {
	for _, name := range names {
		l.nodes[name].remove(uid)
		l.touch(name)
		l.freed[name] = true
		l.forgetEmpty(name)
	}
}

// deleteFrom removes a pod that is gone: GPUShareNodes will not name it for long.
func (l *Ledger) deleteFrom(names []string, uid string, since time.Time) {
	for _, name := range names {
		node := l.nodes[name]
		node.remove(uid)
		if isReported(node.share, uid) {
			node.gone[uid] = since
		}
		l.touch(name)
		l.freed[name] = true
		l.forgetEmpty(name)
	}
}

func (l *Ledger) takeFreed() []string {
	if len(l.freed) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(l.freed))
	clear(l.freed)
	return names
}

func (r *nodeRecord) setShare(share *sharenode.Node) {
	for uid := range r.holders {
		if isReported(r.share, uid) && !isReported(share, uid) && r.isReportedInFull(uid) {
			r.givenBack[uid] = true
		}
	}
	maps.DeleteFunc(r.gone, func(uid string, _ time.Time) bool { return !isReported(share, uid) })
	r.share = share
}

func (r *nodeRecord) put(holder *Holder) {
	delete(r.gone, holder.UID)
	r.holders[holder.UID] = holder
}

func (r *nodeRecord) remove(uid string) {
	delete(r.holders, uid)
	delete(r.givenBack, uid)
}

// isReportedInFull says whether the GPUShareNode reports as many units as the pod has by our records: the kubelet
// gives each container its own.
func (r *nodeRecord) isReportedInFull(uid string) bool {
	if r.share == nil {
		return false
	}
	given, booked := int64(0), int64(0)
	for place := range r.share.Cards {
		given += surelyGiven(&r.share.Cards[place], uid)
	}
	if holder := r.holders[uid]; holder != nil {
		for _, own := range holder.Cards {
			booked += inNodeUnit(r.share, holder, own)
		}
	}
	return given >= max(1, booked)
}

// wasReported says whether some GPUShareNode has reported all that the kubelet has given to a holder.
func (r *nodeRecord) wasReported(uid string) bool {
	return r.givenBack[uid] || r.isReportedInFull(uid)
}
