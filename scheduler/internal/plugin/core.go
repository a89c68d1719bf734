package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	kubemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/bindcall"
	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/inspection"
	"gpushare.io/scheduler/internal/metrics"
	"gpushare.io/scheduler/internal/pauses"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/sharenodes"
	"gpushare.io/scheduler/internal/waiting"
)

// core is what the plugins of all profiles share: pods of each take the same cards.
type core struct {
	cluster *cluster.Cluster
	waiting *waiting.Pods
	// note is told which nodes may have more room than before.
	note    func(node string)
	pauses  *pauses.Pauses
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	budgets policylisters.PodDisruptionBudgetLister
	metrics *metrics.Metrics
	places  places
	clock   bindcall.Clock
	api     *connection
	slots   bindcall.Slots
	// synced say whether all is known that was there at the start.
	synced []cache.InformerSynced
	// lease is held by those who bind.
	lease *bindlease.Lease
	// hold is its Hold.
	hold func(ctx context.Context) (uint64, error)
	// hasGate says whether a profile of the scheduler has our Gate.
	hasGate func(profile string) bool

	// hasBegun is true once they have all said so.
	hasBegun atomic.Bool
	// postponed are pods that were not tried because another scheduler may be binding pods. The scheduler tries those that are
	// not nominated again in its own time. All of them are tried as soon as the Lease is held.
	postponed podSet
	// resting are those about which the scheduler is to ask the gate now.
	resting podSet
	// soon are the pods that the next tick has tried, once all is read.
	soon podSet
	// handle is that of the first profile.
	handle fwk.Handle
}

// Factory makes the plugin of each profile.
type Factory struct {
	// Show is told once of the metrics, and of what is counted on each card; nil where nobody asks for them.
	Show  func(kubemetrics.StableCollector, *inspection.Inspection)
	mutex sync.Mutex
	core  *core
	// args are those of core.
	args Args
	// gates are by the names of the profiles that have one.
	gates sync.Map
	// connect is replaced in tests.
	connect func(handle fwk.Handle, args Args, handler sharenodes.Handler) (*connection, error)
}

// New implements runtime.PluginFactory, with Args.
func (f *Factory) New(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := readArgs(raw)
	if err != nil {
		return nil, err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.core != nil && f.args != args {
		return nil, fmt.Errorf("the plugin %s needs the same args in pluginConfig of every profile:"+
			" extenderLeaseNamespace is %s in one and %s in another", Name, f.args.ExtenderLeaseNamespace, args.ExtenderLeaseNamespace)
	}
	if f.core == nil {
		growLess()
		connecting := connect
		if f.connect != nil {
			connecting = f.connect
		}
		made := newCore(handle, bindcall.RealClock())
		made.hasGate = f.hasGate
		if err := made.start(ctx, handle, func(handler sharenodes.Handler) (*connection, error) {
			return connecting(handle, args, handler)
		}); err != nil {
			return nil, err
		}
		if f.Show != nil {
			f.Show(made.metrics, inspection.New(made.inspect))
		}
		f.core, f.args = made, args
	}
	return &Plugin{core: f.core, handle: handle}, nil
}

// heapGrowth is by how many percent the heap may grow between two collections; Go's own default is 100. What the plugin keeps
// of a large cluster would count twice in the program's resident memory.
const heapGrowth = 75

// growLess has the garbage collector run earlier, unless GOGC says when.
func growLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}

func newCore(handle fwk.Handle, clock bindcall.Clock) *core {
	made := &core{
		waiting: waiting.New(),
		pods:    handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		nodes:   handle.SharedInformerFactory().Core().V1().Nodes().Lister(),
		budgets: handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister(),
		clock:   clock,
		slots:   bindcall.NewSlots(),
		hold:    func(context.Context) (uint64, error) { return 0, nil },
		hasGate: func(string) bool { return false },
		handle:  handle,
	}
	made.metrics = metrics.New(clock.Now, made.readings)
	return made
}

// Stop lets no further pod be bound, and returns once all Bindings under way have ended: the next scheduler may bind
// at once then. Where ctx ends before, it returns an error, and the next one waits until that is certain.
func (f *Factory) Stop(ctx context.Context) error {
	f.mutex.Lock()
	core := f.core
	f.mutex.Unlock()
	if core == nil {
		return nil
	}
	return core.lease.Stop(ctx)
}

// start begins to watch, and to wake pods, until ctx ends.
func (c *core) start(
	ctx context.Context, handle fwk.Handle, connect func(sharenodes.Handler) (*connection, error),
) error {
	waker := newWaker(c.waiting, func(pods []*v1.Pod) { c.activate(ctx, pods) }, func(pods []*v1.Pod) { c.rest(ctx, pods) })
	c.know(handle, waker.note)
	registration, err := handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(c.podHandler())
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	if c.api, err = connect(sharenodes.Handler{Set: c.setShareNode, Drop: c.dropShareNode}); err != nil {
		return err
	}
	c.synced = append(c.synced, c.api.shareNodes.HasSynced)
	c.lease = c.newLease(ctx)
	c.hold = c.lease.Hold
	go c.api.shareNodes.Run(ctx)
	go c.lease.Run(ctx)
	go c.confirm(ctx)
	ticker := time.NewTicker(tickTime)
	go func() {
		defer ticker.Stop()
		waker.run(ctx, c, ticker.C)
	}()
	return nil
}

// know has the core know nothing of the cluster yet.
func (c *core) know(handle fwk.Handle, note func(node string)) {
	c.note, c.cluster = note, cluster.New(c.clock.Now, note)
	c.pauses = pauses.New(pauses.Cluster{
		Now: c.clock.Now,
		Read: func(ctx context.Context, namespace, name string) (*v1.Pod, error) {
			return c.api.bindings.Read(ctx, namespace, name)
		},
		Rejection: func(node string, pod *v1.Pod) string {
			share := c.cluster.ShareNode(node)
			if share == nil {
				return ""
			}
			return pauses.Rejection(pod, share.Resources, c.cluster.Resources())
		},
		Changed: func(node string) {
			c.logPause(node)
			note(node)
		},
	})
	c.cluster.Doubted = logDoubt
}

// setShareNode counts with what the plugin of a node reports.
func (c *core) setShareNode(node *sharenode.Node) {
	c.logClosed(node)
	c.pauses.Reported(node.Name)
	c.serve(func() { c.cluster.SetShareNode(node) })
}

// dropShareNode says that a node takes no more pods. Who waits for it is looked at.
func (c *core) dropShareNode(name string) {
	c.serve(func() { c.cluster.DropShareNode(name) })
	c.note(name)
}

// serve has a GPUShareNode come, change or go. A resource that others offer as well may be ours from then on, or no more: pods that
// are not bound are tried again if they ask for something else than before.
func (c *core) serve(change func()) {
	before := c.cluster.Resources()
	change()
	now := c.cluster.Resources()
	if slices.Equal(before, now) {
		return
	}
	pods, _ := c.pods.List(labels.Everything()) // a lister has no error of its own
	c.soon.add(slices.DeleteFunc(pods, func(pod *v1.Pod) bool {
		return pod.Spec.NodeName != "" || cluster.Ask(pod, before).Key() == cluster.Ask(pod, now).Key()
	})...)
}

// activate has the scheduler try pods that may fit now.
func (c *core) activate(ctx context.Context, pods []*v1.Pod) {
	klog.FromContext(ctx).V(4).Info("Waking pods that may fit a card now", "pods", len(pods))
	c.enqueue(ctx, pods)
}

// rest has the scheduler ask the gate, which keeps pods out that are at rest. Some it does not ask about, such as one that is in a
// queue: that one is tried.
func (c *core) rest(ctx context.Context, pods []*v1.Pod) {
	pods = slices.DeleteFunc(pods, func(pod *v1.Pod) bool { return !c.hasGate(pod.Spec.SchedulerName) })
	c.resting.add(pods...)
	c.enqueue(ctx, pods)
	c.resting.take()
}

func (c *core) enqueue(ctx context.Context, pods []*v1.Pod) {
	byName := make(map[string]*v1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Namespace+"/"+pod.Name] = pod
	}
	c.handle.Activate(klog.FromContext(ctx), byName)
}

// podHandler counts the bound pods, and forgets those that wait no more.
func (c *core) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: c.setPod, UpdateFunc: c.changePod, DeleteFunc: c.dropPod}
}

func (c *core) setPod(now any) {
	pod, is := now.(*v1.Pod)
	switch {
	case !is:
	case pod.Spec.NodeName != "":
		c.waitsNoMore(pod.UID)
		c.cluster.SetPod(pod)
	case pod.DeletionTimestamp != nil: // the scheduler does not try it any more
		c.keptNoMore(pod)
		c.waitsNoMore(pod.UID)
	}
}

// changePod counts with a pod as it is now. A watch that was interrupted shows as one change that a pod is gone and
// that there is another one of its name. Up to 1.36 the scheduler leaves the other one where the first one was: at rest, say.
func (c *core) changePod(before, now any) {
	earlier, wasPod := before.(*v1.Pod)
	pod, isPod := now.(*v1.Pod)
	switch {
	case !wasPod || !isPod:
	case earlier.UID != pod.UID:
		c.dropPod(earlier)
		c.soon.add(pod)
	case cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName) != nominatedFor(earlier):
		c.keptNoMore(earlier)
	}
	c.setPod(now)
}

func (c *core) dropPod(before any) {
	if last, is := before.(cache.DeletedFinalStateUnknown); is {
		before = last.Obj
	}
	if pod, is := before.(*v1.Pod); is {
		c.keptNoMore(pod)
		c.waitsNoMore(pod.UID)
		c.pauses.Gone(pod.UID, c.cluster.IsReported(pod.Spec.NodeName, pod.UID))
		c.cluster.PodGone(pod.UID)
	}
}

// waitsNoMore says that a pod is bound, gone, or being deleted.
func (c *core) waitsNoMore(uid types.UID) {
	c.waiting.Remove(uid)
	c.postponed.remove(uid)
	c.soon.remove(uid)
	c.metrics.Shown(uid)
	c.places.Delete(uid)
}

// forgetUnlessPending forgets a pod that is gone, or bound by others, since its attempt began: nobody would say so later.
func (c *core) forgetUnlessPending(pod *v1.Pod) {
	known, err := c.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || known.UID != pod.UID || known.Spec.NodeName != "" || known.DeletionTimestamp != nil {
		c.waitsNoMore(pod.UID)
	}
}

func (c *core) isSynced() bool {
	return !slices.ContainsFunc(c.synced, func(synced cache.InformerSynced) bool { return !synced() })
}

var errNotSynced = errors.New("pods and GPUShareNodes are not read yet: the scheduler's log says why, if they cannot be read")

// named are all resources that may be ours: which of them are is not known before all GPUShareNodes are read.
var named = dialects.Resources(func(string) bool { return true })

// ready returns an error until pods and GPUShareNodes are read.
func (c *core) ready() error {
	if !c.hasBegun.Load() && !c.isSynced() {
		return errNotSynced
	}
	c.hasBegun.Store(true)
	return nil
}
