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
	// rooms are by the scheduler's view, known are by the ledger alone; by node.
	rooms, known map[string]cachedRoom
	// pods are the annotations of bound pods as they were read, by UID.
	pods map[types.UID]readPod
	// unreleased are nodes with pods that are gone and count still.
	unreleased map[string]bool
	// histories are by node.
	histories map[string]*history
	// adopted are pods that were read at the start and that no watch has shown yet, and since when, by UID.
	adopted map[types.UID]time.Time
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
		book:       ledger.New(),
		now:        now,
		freed:      freed,
		rooms:      map[string]cachedRoom{},
		known:      map[string]cachedRoom{},
		pods:       map[types.UID]readPod{},
		unreleased: map[string]bool{},
		histories:  map[string]*history{},
		adopted:    map[types.UID]time.Time{},
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
	c.book.SetShareNode(node)
	if before == nil || !slices.Equal(before.Resources, node.Resources) {
		c.readResources()
	}
	c.freed(node.Name)
}

// DropShareNode says that a node takes no more pods.
func (c *Cluster) DropShareNode(name string) {
	c.book.DropShareNode(name)
	c.readResources()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.rooms, name)
	delete(c.known, name)
	delete(c.histories, name)
}

// SetPod says that a watch shows a bound pod that has not ended.
func (c *Cluster) SetPod(pod *v1.Pod) {
	if len(pod.Annotations) == 0 {
		return
	}
	if read, isNew := c.read(pod); isNew {
		c.count(read)
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

// count counts what the annotations of a bound pod say.
func (c *Cluster) count(pod *ledger.Pod) {
	before := c.book.Holder(pod.UID)
	if before == nil {
		c.book.SetPod(pod)
		c.taken(pod.UID)
		return
	}
	version := c.book.Version(before.Node)
	c.book.SetPod(pod)
	now := c.book.Holder(pod.UID)
	if c.book.Version(before.Node) != version || now != nil && now.Node != before.Node {
		c.taken(pod.UID)
		c.freed(before.Node)
	}
}

// taken notes that a pod has units that others may have found free.
func (c *Cluster) taken(uid string) {
	if holder := c.book.Holder(uid); holder != nil {
		c.historyOf(holder.Node).forget()
	}
}

func (c *Cluster) historyOf(node string) *history {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.histories[node] == nil {
		c.histories[node] = &history{attempts: &c.attempts}
	}
	return c.histories[node]
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
	c.count(read)
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
	held := c.book.Holder(string(uid))
	c.book.PodGone(string(uid), c.now())
	c.mutex.Lock()
	delete(c.pods, uid)
	delete(c.adopted, uid)
	if held != nil {
		c.unreleased[held.Node] = true
	}
	c.mutex.Unlock()
	if held != nil {
		c.freed(held.Node)
	}
}

// Expire frees what pods had that are gone for so long that their nodes' plugins would have reported them. It has to
// be called from time to time.
func (c *Cluster) Expire() {
	c.mutex.Lock()
	versions := make(map[string]uint64, len(c.unreleased))
	for node := range c.unreleased {
		versions[node] = c.book.Version(node)
	}
	c.mutex.Unlock()
	if len(versions) == 0 {
		return
	}
	c.book.Expire(c.now())
	for node, version := range versions {
		if len(c.book.Unreleased(node)) == 0 {
			c.mutex.Lock()
			delete(c.unreleased, node)
			c.mutex.Unlock()
		}
		if c.book.Version(node) != version {
			c.freed(node)
		}
	}
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
func (c *Cluster) Reserve(holder *ledger.Holder) error {
	if err := c.book.Reserve(holder); err != nil {
		return err
	}
	c.historyOf(holder.Node).forget()
	return nil
}

// Forget notes that what the scheduler found of a node counts no longer: it was kept from it, or is no more.
func (c *Cluster) Forget(node string) { c.historyOf(node).forget() }

// IsReported says whether the plugin of a node reports a pod: its kubelet has admitted it.
func (c *Cluster) IsReported(node string, uid types.UID) bool {
	share := c.book.ShareNode(node)
	return share != nil && slices.ContainsFunc(share.Cards, func(card sharenode.Card) bool {
		return card.IsHeldBy(string(uid))
	})
}

// Attempt says that an attempt of a pod begins, and returns its number; the first has 1.
func (c *Cluster) Attempt() uint64 { return c.attempts.Add(1) }

// FitsSince returns the first of the attempts that all found, by the scheduler's view, that a node fits a request, and
// that nobody has taken units of the node since; 0 where there are none.
func (c *Cluster) FitsSince(node string, asked *Asked) uint64 {
	return c.historyOf(node).fitsSince(asked.key)
}

// Refuses notes that a node does not fit a request any more.
func (c *Cluster) Refuses(node string, asked *Asked) { c.historyOf(node).note(asked.key, false) }

// Release says that a pod is surely not bound by us. Without effect on what a watch has shown.
func (c *Cluster) Release(uid types.UID) { c.book.Release(string(uid)) }

// Room returns what a node offers by the scheduler's view.
func (c *Cluster) Room(info fwk.NodeInfo) *Room {
	name := info.Node().Name
	key := cachedRoom{generation: info.GetGeneration(), version: c.book.Version(name)}
	if key.version == 0 {
		return nowhere
	}
	return c.cached(c.rooms, name, key, func() *Room {
		return &Room{node: c.book.Node(name, c.podsOf(info)), history: c.historyOf(name)}
	})
}

// Known returns what a node offers by the ledger alone.
func (c *Cluster) Known(name string) *Room {
	key := cachedRoom{version: c.book.Version(name)}
	if key.version == 0 {
		return nowhere
	}
	return c.cached(c.known, name, key, func() *Room {
		if node := c.book.Known(name); node != nil {
			return &Room{node: node}
		}
		return nowhere
	})
}

// cached returns the room of rooms that was worked out from the same; else a new one, kept where it lasts. A version
// that is read before the sums is never too new for them.
func (c *Cluster) cached(
	rooms map[string]cachedRoom, name string, key cachedRoom, work func() *Room,
) *Room {
	c.mutex.RLock()
	found := rooms[name]
	c.mutex.RUnlock()
	if found.room != nil && found.generation == key.generation && found.version == key.version {
		return found.room
	}
	key.room = work()
	if !key.room.node.Lasts() {
		return key.room
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	rooms[name] = key
	return key.room
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
