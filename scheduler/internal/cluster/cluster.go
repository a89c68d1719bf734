// Package cluster has what is free on each node of the cluster: by the scheduler's own view of the node's pods, and
// by the ledger.
//
// The scheduler's view decides where a pod fits. Pods that watches show are counted by the ledger as well; that view
// is older or newer than the scheduler's, and answers only what the scheduler's view cannot: what is not free yet
// though its pod is gone, and which pods wait in vain.
package cluster

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/podapi"
	"gpushare.io/scheduler/internal/sharenode"
)

// Cluster is what is known of all nodes. Methods may be called from several goroutines.
type Cluster struct {
	book *ledger.Ledger
	now  func() time.Time
	// freed is told the name of a node where more may be free than before.
	freed     func(node string)
	resources atomic.Pointer[[]cards.Resource]
	// attempts counts the attempts of pods.
	attempts atomic.Uint64

	mutex sync.RWMutex
	// nodes are those that the ledger knows, by name.
	nodes   map[string]*node
	numbers numbers
	// pods are the annotations of bound pods as they were read, by UID.
	pods map[types.UID]readPod
	// adopted are pods that were read at the start and that no watch has shown yet, and since when, by UID.
	adopted map[types.UID]time.Time
}

// node is what is remembered of a node.
type node struct {
	// room is by the scheduler's view, known by the ledger alone.
	room, known cachedRoom
	// number is no other node's.
	number int
	// since is the first attempt that can have seen the node.
	since uint64
}

// cachedRoom is a room, and what it was worked out from.
type cachedRoom struct {
	generation int64
	version    uint64
	room       *Room
}

type readPod struct {
	version, node string
	annotations   map[string]string
	pod           *ledger.Pod
}

// New returns a Cluster that knows nothing.
func New(now func() time.Time, freed func(node string)) *Cluster {
	c := &Cluster{
		book:    ledger.New(),
		now:     now,
		freed:   freed,
		nodes:   map[string]*node{},
		pods:    map[types.UID]readPod{},
		adopted: map[types.UID]time.Time{},
	}
	c.readResources()
	return c
}

// Resources returns the extended resources that are ours now.
func (c *Cluster) Resources() []cards.Resource { return *c.resources.Load() }

func (c *Cluster) readResources() {
	resources := c.book.Resources()
	c.resources.Store(&resources)
}

// ShareNode returns the GPUShareNode of a node, nil where there is none.
func (c *Cluster) ShareNode(name string) *sharenode.Node { return c.book.ShareNode(name) }

// SetShareNode counts with a GPUShareNode from now on.
func (c *Cluster) SetShareNode(node *sharenode.Node) {
	before := c.book.ShareNode(node.Name)
	freed := c.book.SetShareNode(node)
	c.remembered(node.Name)
	if before == nil || !slices.Equal(before.Resources, node.Resources) {
		c.readResources()
	}
	c.noteFreed(freed)
}

// DropShareNode says that a node takes no more pods.
func (c *Cluster) DropShareNode(name string) {
	c.book.DropShareNode(name)
	c.readResources()
	c.forgetUnknown(name)
}

// noteFreed passes on where more may be free, and forgets the nodes of which nothing is known any more.
func (c *Cluster) noteFreed(freed []string) {
	for _, name := range freed {
		c.forgetUnknown(name)
		c.freed(name)
	}
}

func (c *Cluster) forgetUnknown(name string) {
	if c.book.Version(name) > 0 {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if node := c.nodes[name]; node != nil {
		c.numbers.giveBack(node.number)
		delete(c.nodes, name)
	}
}

// SetPod says that a watch shows a bound pod that has not ended.
func (c *Cluster) SetPod(pod *v1.Pod) {
	if len(pod.Annotations) == 0 && c.Holder(pod.UID) == nil {
		return
	}
	if read, isNew := c.read(pod); isNew {
		c.noteFreed(c.book.SetPod(read))
	}
}

// read returns what the annotations of a bound pod say, and whether they say something else than before: most changes
// of a pod are of its status.
func (c *Cluster) read(pod *v1.Pod) (*ledger.Pod, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.adopted, pod.UID)
	known := c.pods[pod.UID]
	isNew := known.pod == nil || known.node != pod.Spec.NodeName || !maps.Equal(known.annotations, pod.Annotations)
	if isNew {
		known.pod = podapi.Read(pod, c.Resources)
	}
	c.pods[pod.UID] = readPod{pod.ResourceVersion, pod.Spec.NodeName, pod.Annotations, known.pod}
	return known.pod, isNew
}

// Adopt counts a bound pod that was read at the start, and that watches may not show yet.
func (c *Cluster) Adopt(uid types.UID, annotations map[string]string) {
	given, err := allocation.Read(annotations[allocation.Annotation], string(uid))
	if err != nil || c.book.Holder(string(uid)) != nil {
		return
	}
	c.mutex.Lock()
	c.adopted[uid] = c.now()
	c.mutex.Unlock()
	read, _ := ledger.ReadPod(string(uid), given.Node, annotations, func() cards.Request { return cards.Request{} })
	c.noteFreed(c.book.SetPod(read))
}

// adoptedTime is in which a watch shows a pod that was there at the start, or it is gone.
const adoptedTime = time.Minute

// expireAdopted has those gone that no watch has shown: they were deleted before it began.
func (c *Cluster) expireAdopted() {
	var gone []types.UID
	c.mutex.Lock()
	for uid, since := range c.adopted {
		if c.now().Sub(since) >= adoptedTime {
			delete(c.adopted, uid)
			gone = append(gone, uid)
		}
	}
	c.mutex.Unlock()
	for _, uid := range gone {
		c.PodGone(uid)
	}
}

// PodGone says that a watch shows that a bound pod is gone, or has ended.
func (c *Cluster) PodGone(uid types.UID) {
	freed := c.book.PodGone(string(uid), c.now())
	c.mutex.Lock()
	delete(c.pods, uid)
	delete(c.adopted, uid)
	c.mutex.Unlock()
	c.noteFreed(freed)
}

// Expire frees what pods had that are gone for so long that their nodes' plugins would have reported them. It has to
// be called from time to time.
func (c *Cluster) Expire() {
	c.expireAdopted()
	c.noteFreed(c.book.Expire(c.now()))
}

// Leaving returns the UIDs of the pods of a node that are gone or being deleted, and still count there.
func (c *Cluster) Leaving(info fwk.NodeInfo) []string {
	shown, ending := map[string]bool{}, []string(nil)
	for _, one := range info.GetPods() {
		pod := one.GetPod()
		shown[string(pod.UID)] = true
		if pod.DeletionTimestamp != nil {
			ending = append(ending, string(pod.UID))
		}
	}
	return append(ending, c.book.Leaving(info.Node().Name, func(uid string) bool { return shown[uid] })...)
}

// Holder returns what a pod has, allocated or reserved; nil when it has no units.
func (c *Cluster) Holder(uid types.UID) *ledger.Holder { return c.book.Holder(string(uid)) }

// HeldElsewhere returns why a pod that already has units does not fit another node; nil for all others.
func (c *Cluster) HeldElsewhere(uid types.UID, node string) *ledger.Refusal {
	return c.book.HeldElsewhere(string(uid), node)
}

// Reserve keeps units for a pod that is being bound: the scheduler shows the pod on its node from now on, and the pod
// has no annotation yet. It returns an error for a pod that has units.
func (c *Cluster) Reserve(holder *ledger.Holder) error { return c.book.Reserve(holder) }

// Release says that a pod is surely not bound by us. Without effect on what a watch has shown.
func (c *Cluster) Release(uid types.UID) { c.noteFreed(c.book.Release(string(uid))) }

// IsReported says whether the plugin of a node reports a pod: its kubelet has admitted it.
func (c *Cluster) IsReported(node string, uid types.UID) bool {
	share := c.book.ShareNode(node)
	return share != nil && slices.ContainsFunc(share.Cards, func(card sharenode.Card) bool {
		return card.IsHeldBy(string(uid))
	})
}

// Attempt says that an attempt of a pod begins, and returns its number; the first has 1.
func (c *Cluster) Attempt() uint64 { return c.attempts.Add(1) }

// Attempts returns the number of the last attempt.
func (c *Cluster) Attempts() uint64 { return c.attempts.Load() }

// NodeReturned says that a node is there again: attempts until now may not have seen it.
func (c *Cluster) NodeReturned(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if node := c.nodes[name]; node != nil {
		node.since = c.Attempts() + 1
	}
}

// Room returns what a node offers by the scheduler's view.
func (c *Cluster) Room(info fwk.NodeInfo) *Room {
	name := info.Node().Name
	version := c.book.Version(name)
	if version == 0 {
		return nowhere
	}
	node := c.remembered(name)
	return c.cached(&node.room, info.GetGeneration(), version, func() *Room {
		return &Room{node: c.book.Node(name, c.podsOf(info))}
	})
}

// Known returns what a node offers by the ledger alone.
func (c *Cluster) Known(name string) *Room {
	version := c.book.Version(name)
	if version == 0 {
		return nowhere
	}
	return c.cached(&c.remembered(name).known, 0, version, func() *Room {
		if node := c.book.Known(name); node != nil {
			return &Room{node: node}
		}
		return nowhere
	})
}

func (c *Cluster) remembered(name string) *node {
	c.mutex.RLock()
	known := c.nodes[name]
	c.mutex.RUnlock()
	if known != nil {
		return known
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.nodes[name] == nil {
		c.nodes[name] = &node{number: c.numbers.take(), since: c.Attempts() + 1}
	}
	return c.nodes[name]
}

// cached returns the room that was worked out from the same; else a new one, kept where it lasts. A version that is
// read before the sums is never too new for them.
func (c *Cluster) cached(last *cachedRoom, generation int64, version uint64, work func() *Room) *Room {
	c.mutex.RLock()
	found := *last
	c.mutex.RUnlock()
	if found.room != nil && found.generation == generation && found.version == version {
		return found.room
	}
	room := work()
	if room.node.Lasts() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		*last = cachedRoom{generation, version, room}
	}
	return room
}

// podsOf returns the pods that the scheduler shows on a node.
func (c *Cluster) podsOf(info fwk.NodeInfo) []*ledger.Pod {
	shown := info.GetPods()
	pods := make([]*ledger.Pod, len(shown))
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	for place, one := range shown {
		pod := one.GetPod()
		if len(pod.Annotations) == 0 {
			pods[place] = &ledger.Pod{UID: string(pod.UID), Node: pod.Spec.NodeName}
			continue
		}
		read := c.pods[pod.UID]
		if read.pod == nil || read.version != pod.ResourceVersion {
			read.pod = podapi.Read(pod, c.Resources)
		}
		pods[place] = read.pod
	}
	return pods
}
