package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/bindcall"
	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/cluster"
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
	budgets policylisters.PodDisruptionBudgetLister
	clock   bindcall.Clock
	api     *connection
	slots   bindcall.Slots
	// synced say whether all is known that was there at the start.
	synced []cache.InformerSynced
	// lease is held by those who bind.
	lease *bindlease.Lease
	// hold is its Hold.
	hold func(ctx context.Context) (uint64, error)

	mutex     sync.Mutex
	hasBegun  bool
	postponed postponed
	activator fwk.Handle
}

// Factory makes the plugin of each profile.
type Factory struct {
	mutex sync.Mutex
	core  *core
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
	if f.core == nil {
		connecting := connect
		if f.connect != nil {
			connecting = f.connect
		}
		made := newCore(handle, bindcall.RealClock())
		if err := made.start(ctx, handle, func(handler sharenodes.Handler) (*connection, error) {
			return connecting(handle, args, handler)
		}); err != nil {
			return nil, err
		}
		f.core = made
	}
	return &Plugin{core: f.core, handle: handle}, nil
}

func newCore(handle fwk.Handle, clock bindcall.Clock) *core {
	return &core{
		waiting:   waiting.New(),
		budgets:   handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister(),
		clock:     clock,
		slots:     bindcall.NewSlots(),
		hold:      func(context.Context) (uint64, error) { return 0, nil },
		activator: handle,
	}
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
	waker := newWaker(c.waiting, func(pods []*v1.Pod) { c.activate(ctx, pods) })
	c.know(handle, waker.note)
	registration, err := handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(c.podHandler())
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	if c.api, err = connect(sharenodes.Handler{Set: c.setShareNode, Drop: c.cluster.DropShareNode}); err != nil {
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
			c.cluster.Forget(node)
			note(node)
		},
	})
}

// setShareNode counts with what the plugin of a node reports.
func (c *core) setShareNode(node *sharenode.Node) {
	c.pauses.Reported(node.Name)
	c.cluster.SetShareNode(node)
}

// activate has the scheduler try pods that may fit now.
func (c *core) activate(ctx context.Context, pods []*v1.Pod) {
	byName := make(map[string]*v1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Namespace+"/"+pod.Name] = pod
	}
	klog.FromContext(ctx).V(4).Info("Waking pods that may fit a card now", "pods", len(pods))
	c.activator.Activate(klog.FromContext(ctx), byName)
}

// podHandler counts the bound pods, and forgets those that wait no more.
func (c *core) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { c.setPod(now) },
		UpdateFunc: func(_, now any) { c.setPod(now) },
		DeleteFunc: func(before any) {
			if last, is := before.(cache.DeletedFinalStateUnknown); is {
				before = last.Obj
			}
			if pod, is := before.(*v1.Pod); is {
				c.waiting.Remove(pod.UID)
				c.postponed.remove(pod.UID)
				c.pauses.Gone(pod.UID, c.cluster.IsReported(pod.Spec.NodeName, pod.UID))
				c.cluster.PodGone(pod.UID)
			}
		},
	}
}

func (c *core) setPod(now any) {
	if pod, is := now.(*v1.Pod); is && pod.Spec.NodeName != "" {
		c.waiting.Remove(pod.UID)
		c.cluster.SetPod(pod)
	}
}

var errNotSynced = errors.New("pods and GPUShareNodes are not read yet: the scheduler's log says why, if they cannot be read")

// ready returns an error until all is known of what is on the cards.
func (c *core) ready() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.hasBegun {
		return nil
	}
	for _, synced := range c.synced {
		if !synced() {
			return errNotSynced
		}
	}
	c.hasBegun = true
	return nil
}
