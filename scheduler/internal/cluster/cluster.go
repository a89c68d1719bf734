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
	freed func(node string)
	// Doubted is told why something that is written on a bound pod is not believed, once; nil where nobody asks. It is
	// to be set before the first pod, and must not ask the Cluster anything.
	Doubted   func(pod *v1.Pod, why string)
	resources atomic.Pointer[[]cards.Resource]
	// attempts counts the attempts of pods.
	attempts atomic.Uint64

	// changing is held while what is known of a pod changes, here and in book: what is read at a takeover is no newer than what a
	// watch shows meanwhile.
	changing sync.Mutex

	mutex sync.RWMutex
	// nodes are those that the ledger knows, by name.
	nodes   map[string]*node
	numbers numbers
	// pods are bound pods that have units, or whose annotations are not believed, as they were read, by UID: few of all pods.
	pods map[types.UID]readPod
	// adopted are pods that were read at the start and that no watch has shown yet, and since when, by UID.
	adopted map[types.UID]time.Time
}

// node is what is remembered of a node.
type node struct {
	version *ledger.Version
	// room is by the scheduler's view, known by the ledger alone.
	room, known atomic.Pointer[cachedRoom]
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
	// doubt is why something of the annotations is not believed.
	doubt string
	// priority is the pod's, mayGo says whether it may be evicted, and isEnding that it is being deleted.
	priority        int32
	mayGo, isEnding bool
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

// Names returns the names of the nodes that have a GPUShareNode, sorted.
func (c *Cluster) Names() []string { return c.book.Names() }

// Offers returns what a node offers of each resource that it serves, by the ledger alone; nothing where it takes no
// pods of ours. Nothing of it is kept.
func (c *Cluster) Offers(name string) []ledger.ResourceRoom {
	if node := c.book.Known(name); node != nil {
		return node.Room()
	}
	return nil
}

// Sums returns the sums of a node whose bound pods are pods, by a view that is not the scheduler's. Nothing of it is kept.
func (c *Cluster) Sums(name string, pods []*v1.Pod) *ledger.Node {
	read := make([]*ledger.Pod, len(pods))
	c.mutex.RLock()
	for place, pod := range pods {
		read[place] = c.podOf(pod)
	}
	c.mutex.RUnlock()
	return c.book.Node(name, read)
}

// Reserved returns the UIDs of the pods that have units and that no watch shows as bound yet.
func (c *Cluster) Reserved() []types.UID {
	reserved := c.book.Reserved()
	uids := make([]types.UID, len(reserved))
	for place, uid := range reserved {
		uids[place] = types.UID(uid)
	}
	return uids
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
	if c.book.Version(name).Number() > 0 {
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
	c.changing.Lock()
	defer c.changing.Unlock()
	if read, isNew := c.read(pod); isNew {
		c.noteFreed(c.book.SetPod(read))
	}
}

// read returns what the annotations of a bound pod say, and whether the ledger is to be told: where they claim units, and
// say something else than before. Most pods have none, and most changes of a pod are of its status.
func (c *Cluster) read(pod *v1.Pod) (*ledger.Pod, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.adopted, pod.UID)
	known := c.pods[pod.UID]
	isNew := known.pod == nil || known.node != pod.Spec.NodeName || !maps.Equal(known.annotations, pod.Annotations)
	if isNew {
		before := known.doubt
		known.pod, known.doubt = c.readAnnotations(pod)
		if known.doubt != "" && known.doubt != before && c.Doubted != nil {
			c.Doubted(pod, known.doubt)
		}
	}
	if !known.pod.ClaimsUnits() && known.doubt == "" && c.Holder(pod.UID) == nil {
		delete(c.pods, pod.UID)
		return known.pod, false
	}
	c.pods[pod.UID] = readPod{
		pod.ResourceVersion, pod.Spec.NodeName, pod.Annotations, known.pod, known.doubt,
		podapi.Priority(pod), !podapi.ComesBack(pod), pod.DeletionTimestamp != nil,
	}
	return known.pod, isNew
}

// readAnnotations returns what the annotations of a bound pod say, and for people why something of that is not
// believed; empty where all is.
func (c *Cluster) readAnnotations(pod *v1.Pod) (*ledger.Pod, string) {
	read, err := podapi.Read(pod, c.Resources)
	switch {
	case err != nil:
		return read, err.Error()
	case read.IsOfAnotherNode():
		return read, "its annotation names another node, and its units count on both"
	}
	return read, ""
}

// Adopt counts a bound pod that was read at a takeover, and that watches may not show yet. Where units are reserved for it,
// another one has bound it since: what its annotation says counts, whatever becomes of the reservation.
func (c *Cluster) Adopt(uid types.UID, annotations map[string]string) {
	c.changing.Lock()
	defer c.changing.Unlock()
	given, err := allocation.Read(annotations[allocation.Annotation], string(uid))
	isShown := c.book.Holder(string(uid)) != nil && !c.book.IsReserved(string(uid))
	if err != nil || isShown {
		return
	}
	c.mutex.Lock()
	c.adopted[uid] = c.now()
	c.mutex.Unlock()
	read, _ := ledger.ReadPod(string(uid), given.Node, annotations, func() cards.Request { return cards.Request{} })
	c.noteFreed(c.book.SetPod(read))
}

// unseenTime is in which a watch usually shows a pod that was there at the start.
const unseenTime = time.Minute

// Unseen returns the adopted pods that no watch has shown for long: they were deleted before it began, or it is late.
func (c *Cluster) Unseen() []types.UID {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	var unseen []types.UID
	for uid, since := range c.adopted {
		if c.now().Sub(since) >= unseenTime {
			unseen = append(unseen, uid)
		}
	}
	return unseen
}

// Confirm says which of unseen are present in the API server's storage. The others are gone.
func (c *Cluster) Confirm(unseen []types.UID, present map[types.UID]bool) {
	for _, uid := range unseen {
		if c.isStillUnseen(uid, present[uid]) {
			c.PodGone(uid)
		}
	}
}

// isStillUnseen says whether a pod is gone that no watch has shown since it was called unseen.
func (c *Cluster) isStillUnseen(uid types.UID, isPresent bool) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	_, isUnseen := c.adopted[uid]
	if isUnseen && isPresent {
		c.adopted[uid] = c.now()
	}
	return isUnseen && !isPresent
}

// PodGone says that a watch shows that a bound pod is gone, or has ended.
func (c *Cluster) PodGone(uid types.UID) {
	c.changing.Lock()
	defer c.changing.Unlock()
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
	c.noteFreed(c.book.Expire(c.now()))
}

// Leaving returns the UIDs of the pods of a node that still count there and are gone, or are being deleted and less important than a
// priority.
func (c *Cluster) Leaving(info fwk.NodeInfo, than int32) []string {
	leaving := c.Gone(info)
	for _, one := range info.GetPods() {
		if pod := one.GetPod(); pod.DeletionTimestamp != nil && podapi.Priority(pod) < than {
			leaving = append(leaving, string(pod.UID))
		}
	}
	return leaving
}

// Gone returns the UIDs of the pods of a node that are gone, and still count there. Those are not gone that no watch has shown yet.
func (c *Cluster) Gone(info fwk.NodeInfo) []string {
	shown := map[string]bool{}
	c.mutex.RLock()
	for uid := range c.adopted {
		shown[string(uid)] = true
	}
	c.mutex.RUnlock()
	for _, one := range info.GetPods() {
		shown[string(one.GetPod().UID)] = true
	}
	return c.book.Leaving(info.Node().Name, func(uid string) bool { return shown[uid] })
}

// IsReleasing says whether pods of a node are gone, and their units are not free yet.
func (c *Cluster) IsReleasing(name string) bool { return len(c.book.Unreleased(name)) > 0 }

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
	node := c.remembered(name)
	if node == nil {
		return nowhere
	}
	return cached(&node.room, info.GetGeneration(), node.version, func() *Room {
		return &Room{node: c.book.Node(name, c.podsOf(info))}
	})
}

// Known returns what a node offers by the ledger alone.
func (c *Cluster) Known(name string) *Room {
	node := c.remembered(name)
	if node == nil {
		return nowhere
	}
	return cached(&node.known, 0, node.version, func() *Room {
		if node := c.book.Known(name); node != nil {
			return &Room{node: node}
		}
		return nowhere
	})
}

// remembered returns nil for a node of which the ledger knows nothing.
func (c *Cluster) remembered(name string) *node {
	c.mutex.RLock()
	known := c.nodes[name]
	c.mutex.RUnlock()
	if known != nil && known.version.Number() > 0 {
		return known
	}
	return c.remember(name, c.book.Version(name))
}

// remember remembers a node, be it one that was gone in between.
func (c *Cluster) remember(name string, version *ledger.Version) *node {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if version.Number() == 0 {
		return nil
	}
	known := c.nodes[name]
	switch {
	case known == nil:
		known = &node{version: version, number: c.numbers.take(), since: c.Attempts() + 1}
	case known.version != version:
		known = &node{version: version, number: known.number, since: known.since}
	}
	c.nodes[name] = known
	return known
}

// cached returns the room that was worked out from the same; else a new one, kept where it lasts. A version that is
// read before the sums is never too new for them.
func cached(last *atomic.Pointer[cachedRoom], generation int64, version *ledger.Version, work func() *Room) *Room {
	number := version.Number()
	if found := last.Load(); found != nil && found.generation == generation && found.version == number {
		return found.room
	}
	room := work()
	if room.node.Lasts() {
		last.Store(&cachedRoom{generation, number, room})
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
		pods[place] = c.podOf(one.GetPod())
	}
	return pods
}

// podOf returns what the annotations of a bound pod say, remembered where its version was seen. The caller holds mutex.
func (c *Cluster) podOf(pod *v1.Pod) *ledger.Pod {
	if len(pod.Annotations) == 0 {
		return &ledger.Pod{UID: string(pod.UID), Node: pod.Spec.NodeName}
	}
	read := c.pods[pod.UID]
	if read.pod == nil || read.version != pod.ResourceVersion {
		read.pod, _ = podapi.Read(pod, c.Resources)
	}
	return read.pod
}
