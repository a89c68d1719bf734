package plugin

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// GateName is the gate's name in the configuration of kube-scheduler.
const GateName = "GPUShareGate"

// Gate keeps pods that are at rest out of the scheduler's queues. With each pod that is bound, changed or gone, the scheduler
// looks at all others that wait, but for those that a gate keeps out and whose gate has not registered the event. So this is a
// plugin of its own: it registers no event of pods.
type Gate struct{ factory *Factory }

var (
	_ fwk.PreEnqueuePlugin  = &Gate{}
	_ fwk.EnqueueExtensions = &Gate{}
)

// Register makes both plugins known to the scheduler.
func (f *Factory) Register(registry frameworkruntime.Registry) error {
	return errors.Join(registry.Register(Name, f.New), registry.Register(GateName, f.newGate))
}

func (f *Factory) newGate(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if countsGated {
		f.gates.Store(handle.ProfileName(), true)
	}
	return &Gate{f}, nil
}

func (f *Factory) hasGate(profile string) bool {
	_, has := f.gates.Load(profile)
	return has
}

// Name implements fwk.Plugin.
func (g *Gate) Name() string { return GateName }

// EventsToRegister implements fwk.EnqueueExtensions: after these events the scheduler asks the hints of Plugin about pods at rest,
// too. Of a pod that is gone the waker hears by itself.
func (g *Gate) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	skip := func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.QueueSkip, nil }
	return []fwk.ClusterEventWithHint{
		{Event: nodeAdded, QueueingHintFn: skip}, {Event: nodeUpdated, QueueingHintFn: skip},
	}, nil
}

// PreEnqueue implements fwk.PreEnqueuePlugin. It keeps a pod out once, when the waker has the scheduler ask, unless the pod comes
// back from an attempt just then: another plugin may have refused it. Whoever has it ask later wants the pod tried: the waker, or
// the scheduler itself, such as after evictions that have failed.
func (g *Gate) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	g.factory.mutex.Lock()
	core := g.factory.core
	g.factory.mutex.Unlock()
	if core != nil && core.resting.remove(pod.UID) && core.waiting.IsAtRest(pod.UID) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod waits until a card is free")
	}
	return nil
}
