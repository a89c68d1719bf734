package ledger

import (
	"maps"
	"slices"
	"sync/atomic"

	"gpushare.io/scheduler/internal/sharenode"
)

// Version is what changes with a node. It is asked for each node in each attempt of a pod, without a lock.
type Version struct{ number atomic.Uint64 }

// Number is another one after every change of what Node and Known return for the node, and never returns to an earlier
// one. Sums that do not Last change without it. Once nothing is known of the node any more it is 0 for ever: should
// the node come back, it has another Version.
func (v *Version) Number() uint64 { return v.number.Load() }

// unknown is the Version of every node of which nothing is known.
var unknown Version

// Version returns that of a node.
func (l *Ledger) Version(name string) *Version {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	if record := l.nodes[name]; record != nil {
		return &record.version
	}
	return &unknown
}

// Known returns the sums of a node by what the ledger alone knows, nil where it knows nothing of the node: for those
// who must not look at the scheduler's view, which may be older or newer.
func (l *Ledger) Known(name string) *Node {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	record := l.nodes[name]
	if record == nil {
		return nil
	}
	return NewNode(record.share, slices.Collect(maps.Values(record.holders)))
}

// Names returns the names of the nodes that have a GPUShareNode, sorted.
func (l *Ledger) Names() []string {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	var names []string
	for name, record := range l.nodes {
		if record.share != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Reserved returns the UIDs of the pods with a reservation that no watch has shown as an allocation yet.
func (l *Ledger) Reserved() []string {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	return slices.Sorted(maps.Keys(l.reserved))
}

// IsReserved says whether a pod has a reservation that no watch has shown as an allocation yet.
func (l *Ledger) IsReserved(uid string) bool {
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	return l.reserved[uid]
}

// Leaving returns the UIDs of the pods that count on a node and that the scheduler does not show there: they are gone, and
// their units are expected back. Not so those with a reservation: nobody knows yet whether they are bound.
func (l *Ledger) Leaving(name string, isShown func(uid string) bool) []string {
	leaving := l.Unreleased(name)
	l.mutex.RLock()
	defer l.mutex.RUnlock()
	if record := l.nodes[name]; record != nil {
		for uid := range record.holders {
			if !isShown(uid) && l.boundTo[uid] == name && !l.reserved[uid] {
				leaving = append(leaving, uid)
			}
		}
	}
	slices.Sort(leaving)
	return slices.Compact(leaving)
}

// touch says that the node has changed.
func (l *Ledger) touch(name string) {
	if record := l.nodes[name]; record != nil {
		l.changes++
		record.version.number.Store(l.changes)
	}
}

// Lasts says whether the sums of the same pods stay as they are while the Version of their node does.
func (n *Node) Lasts() bool { return !n.changesElsewhere }

// HasUnits says whether a pod has units of the node's cards, booked or by its kubelet.
func (n *Node) HasUnits(uid string) bool {
	for _, holder := range n.holders {
		if holder.UID == uid {
			return true
		}
	}
	return isReported(n.share, uid)
}

// Booked returns the UIDs of the pods that have units of the node's cards by annotation or reservation.
func (n *Node) Booked() []string {
	uids := make([]string, len(n.holders))
	for place, holder := range n.holders {
		uids[place] = holder.UID
	}
	return uids
}

// IsSpread says whether a pod has units of several cards by annotation or reservation.
func (n *Node) IsSpread(uid string) bool {
	return slices.ContainsFunc(n.holders, func(holder *Holder) bool { return holder.UID == uid && len(holder.Cards) > 1 })
}

// Gone returns the UIDs of the pods that TakeAway was called for.
func (n *Node) Gone() []string { return slices.Clone(n.gone) }

// ShareNode returns the GPUShareNode that the sums are of, nil where there is none.
func (n *Node) ShareNode() *sharenode.Node { return n.share }

// Preempts says whether the node takes pods, and its policy allows that others are evicted to free a card.
func (n *Node) Preempts() bool { return n.isOpen() && n.share.Preempts }
