package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/bindcall"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/pauses"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/sharenodes"
	"gpushare.io/scheduler/internal/takeover"
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
	// synced say whether all is known that was there at the start.
	synced []cache.InformerSynced
	// adopt counts what is bound by the time that we begin to bind, as the API server says.
	adopt func(ctx context.Context) error

	mutex     sync.Mutex
	hasBegun  bool
	activator fwk.Handle
}

// Factory makes the plugin of each profile.
type Factory struct {
	mutex sync.Mutex
	core  *core
}

// New implements runtime.PluginFactory. It takes no arguments.
func (f *Factory) New(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.core == nil {
		made := newCore(handle, bindcall.RealClock())
		if err := made.start(ctx, handle); err != nil {
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
		adopt:     func(context.Context) error { return nil },
		activator: handle,
	}
}

// start begins to watch, and to wake pods, until ctx ends.
func (c *core) start(ctx context.Context, handle fwk.Handle) error {
	waker := newWaker(c.waiting, func(pods []*v1.Pod) { c.activate(ctx, pods) })
	c.know(handle, waker.note)
	registration, err := handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(c.podHandler())
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	c.synced = append(c.synced, registration.HasSynced)
	if config := handle.KubeConfig(); config != nil {
		if err := c.watch(ctx, config); err != nil {
			return err
		}
	}
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
			return handle.ClientSet().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
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

// watch begins to watch GPUShareNodes.
func (c *core) watch(ctx context.Context, config *rest.Config) error {
	watch, err := sharenodes.NewWatch(config, sharenodes.Handler{
		Set: c.setShareNode, Drop: c.cluster.DropShareNode,
	})
	if err != nil {
		return err
	}
	reader, err := takeover.NewReader(config)
	if err != nil {
		return err
	}
	c.synced = append(c.synced, watch.HasSynced)
	c.adopt = func(ctx context.Context) error { return reader.Read(ctx, c.cluster.Adopt) }
	go watch.Run(ctx)
	return nil
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

// adoptTime is for reading all pods of the largest clusters.
const adoptTime = time.Minute

var errNotSynced = errors.New("what is on the cards is not read yet")

// ready returns an error until all is known of what is on the cards. What another scheduler has bound a moment before
// we lead, our watches may not show yet: so all pods are read once before the first is placed.
func (c *core) ready(ctx context.Context) error {
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
	bounded, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	if err := c.adopt(bounded); err != nil {
		return fmt.Errorf("reading what other schedulers have bound: %w", err)
	}
	c.hasBegun = true
	return nil
}
