package cluster

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// HelpsFrom returns the lowest priority of a pod that a request would fit, by the ledger alone, once less important pods have
// gone that may be evicted, beside those that are gone already. False where that is above highest, where nobody's going helps or
// is needed, and where the node's policy lets nobody be evicted.
func (c *Cluster) HelpsFrom(name string, asked *Asked, highest int32) (from int32, helps bool) {
	room := c.Known(name)
	if !room.Preempts() {
		return 0, false
	}
	node := room.Node()
	node.TakeAway(c.book.Unreleased(name)...)
	if node.Fits(asked.Request) {
		return 0, false
	}
	byPriority := c.lessImportant(node.Booked(), highest)
	for _, priority := range slices.Sorted(maps.Keys(byPriority)) {
		node.TakeAway(byPriority[priority]...)
		if node.Fits(asked.Request) {
			return priority + 1, true
		}
	}
	return 0, false
}

// WillFit says whether a request will fit a node, by the ledger alone, once all is released of the pods that are gone, or less
// important than a priority and being deleted.
func (c *Cluster) WillFit(name string, asked *Asked, priority int32) bool {
	node := c.Known(name).Node()
	leaving := c.book.Unreleased(name)
	c.mutex.RLock()
	for _, uid := range node.Booked() {
		if read := c.pods[types.UID(uid)]; read.isEnding && read.priority < priority {
			leaving = append(leaving, uid)
		}
	}
	c.mutex.RUnlock()
	node.TakeAway(leaving...)
	return node.Fits(asked.Request)
}

// lessImportant returns those of pods, by UID, that may be evicted for one of a priority, by theirs.
func (c *Cluster) lessImportant(uids []string, than int32) map[int32][]string {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	byPriority := map[int32][]string{}
	for _, uid := range uids {
		if read := c.pods[types.UID(uid)]; read.mayGo && read.priority < than {
			byPriority[read.priority] = append(byPriority[read.priority], uid)
		}
	}
	return byPriority
}
